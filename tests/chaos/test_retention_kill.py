"""F30, SD4, K5: every failpoint of retention (`retention.*`) by kill -9, error and standing still, on both stores.
Whatever is gone from the store is whole in an archive, nothing but settled letters is gone, no letter is archived
twice, and the next run brings it to its end.
"""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from redrive.dead_letter import Status
from redrive.faults import POINTS
from support.dead_letters import dead
from support.desk import Desk
from support.retained import check, in_archive, in_store
from support.server_desk import ServerDesk, settled

STEPS = [point for point in POINTS if point.startswith("retention.")]
COMMITS = ["store.before_commit", "store.after_commit"]
NUMBER, BATCH = 10, 4


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if request.param == "sqlite":
        desk = Desk(tmp_path)
    else:
        desk = ServerDesk(tmp_path, request.getfixturevalue("postgres_store_url"))
    file = tmp_path / "redrive.toml"
    file.write_text(f"{file.read_text() if file.exists() else ''}\n[retention]\nbatch = {BATCH}\n")
    return desk


@pytest.mark.parametrize("point", STEPS)
def test_killed_at_this_step_again_and_again_nothing_is_lost_and_the_next_run_ends_it(
    desk: Desk, point: str
) -> None:
    may_go = {*settled(desk, NUMBER), *settled(desk, 1, Status.DISCARDED)}
    desk.record(dead())
    for status in (Status.PENDING, Status.QUARANTINED, Status.REDRIVING):
        settled(desk, 2, status)
    whole = in_store(desk)

    for _ in range(2):
        ended = desk.process("retention", "run", "--yes", faults=f"{point}=kill9")
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        check(desk, whole, may_go)
    last = desk.redrive("retention", "run", "--yes")

    assert last.code == 0, last.err
    check(desk, whole, may_go)
    assert not in_store(desk).keys() & may_go
    assert {letter.id for letter in in_archive(desk)} == may_go
    assert not list((desk.folder / ".redrive/archive").glob("*.part"))
    assert desk.redrive("db", "check").code == 0


@pytest.mark.parametrize("point", STEPS)
def test_an_error_at_this_step_is_told_and_loses_nothing(desk: Desk, point: str) -> None:
    may_go = set(settled(desk, NUMBER))
    desk.record(dead())
    whole = in_store(desk)

    ended = desk.process("retention", "run", "--yes", faults=f"{point}=raise")

    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    check(desk, whole, may_go)
    assert desk.redrive("retention", "run", "--yes").code == 0
    assert {letter.id for letter in in_archive(desk)} == may_go


@pytest.mark.parametrize("point", STEPS)
def test_two_runs_of_which_one_stands_still_at_this_step_lose_nothing(desk: Desk, point: str) -> None:
    """Whoever comes second is refused, or begins when the first has ended."""
    may_go = set(settled(desk, NUMBER))
    desk.record(dead())
    whole = in_store(desk)

    with ThreadPoolExecutor() as both:
        slow = both.submit(desk.process, "retention", "run", "--yes", faults=f"{point}=hang:0.2")
        other = both.submit(desk.process, "retention", "run", "--yes")
    codes = {slow.result().returncode, other.result().returncode}

    assert codes <= {0, 5}, slow.result().stderr + other.result().stderr
    assert 0 in codes
    check(desk, whole, may_go)
    assert not in_store(desk).keys() & may_go
    assert {letter.id for letter in in_archive(desk)} == may_go


@pytest.mark.parametrize("point", COMMITS)
def test_killed_in_the_store_while_purging_nothing_is_lost(tmp_path: Path, point: str) -> None:
    desk = Desk(tmp_path)
    may_go = set(settled(desk, NUMBER))
    desk.record(dead())
    whole = in_store(desk)

    assert desk.process("retention", "run", "--yes", faults=f"{point}=kill9").returncode == -signal.SIGKILL

    check(desk, whole, may_go)
    assert desk.redrive("retention", "run", "--yes").code == 0
    check(desk, whole, may_go)
    assert {letter.id for letter in in_archive(desk)} == may_go
