"""F30, SD4, K5: every failpoint of retention (`retention.*`) by kill -9, error and standing still, on both stores.
Whatever is gone from the store is whole in an archive, nothing but settled letters is gone, no letter is archived
twice, and the next run brings it to its end.
"""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import DeadLetter, Status
from redrive.faults import POINTS
from redrive.letter_query import LetterQuery
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_file import read_archive
from support.dead_letters import dead
from support.desk import Desk
from support.server_desk import ServerDesk, settled

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport

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


def in_store(desk: Desk) -> dict[str, DeadLetter]:
    async def work(store: DeadLetterStore, _transport: Transport) -> dict[str, DeadLetter]:
        found = await store.find(LetterQuery(limit=500))
        return {letter.id: letter async for letter in store.whole([each.id for each in found])}

    letters: dict[str, DeadLetter] = desk.do(work)
    return letters


def in_archive(desk: Desk) -> list[DeadLetter]:
    return [letter for path in Archive(desk.folder / ".redrive/archive").files() for letter in read_archive(path)]


def check(desk: Desk, whole: dict[str, DeadLetter], may_go: set[str]) -> None:
    left, kept = in_store(desk), in_archive(desk)
    archived = {letter.id: letter for letter in kept}
    gone = whole.keys() - left.keys()
    assert gone <= may_go
    assert {each: archived.get(each) for each in gone} == {each: whole[each] for each in gone}
    assert {each: left[each] for each in left if each in whole} == {each: whole[each] for each in left}
    assert len(kept) == len(archived), "a letter is archived twice"


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
