"""F30: retention that `redrive serve` does by itself, killed at every step. Nothing is lost, nobody else begins
while the dead one's lease lives, and the next one brings it to its end.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from redrive.clock import SystemClock
from redrive.dead_letter import Status
from redrive.faults import POINTS
from redrive.keeping import KeepRules
from redrive.upkeep.archive import Archive
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.retention import Retained, Retention
from redrive.upkeep.retention_duty import RetentionDuty
from support.dead_letters import dead
from support.desk import Desk, LaterClock
from support.patience import until_now
from support.retained import check, in_archive, in_store
from support.server_desk import ServerDesk, settled
from support.serving import serving

if TYPE_CHECKING:
    from redrive.clock import Clock
    from redrive.stores import Store

STEPS = [point for point in POINTS if point.startswith(("retention.", "duty."))]
NUMBER, BATCH = 6, 4
DAY = 86400.0


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if request.param == "sqlite":
        desk = Desk(tmp_path)
    else:
        desk = ServerDesk(tmp_path, request.getfixturevalue("postgres_store_url"))
    file = tmp_path / "redrive.toml"
    before = file.read_text() if file.exists() else ""
    file.write_text(f'{before}\n[retention]\nevery = "1d"\nbatch = {BATCH}\n')
    return desk


def next_process(desk: Desk, clock: Clock) -> Retained | None:
    """What another process does when it looks, by that clock."""

    async def look() -> Retained | None:
        store = cast("Store", desk.store(clock=clock))
        folder = desk.folder / ".redrive"

        def make() -> Retention:
            archive, note = Archive(folder / "archive"), ClockNote(store, clock)
            return Retention(store=store, archive=archive, clock=clock, clock_note=note, actor="retention")

        duty = RetentionDuty(
            KeepRules.alike(90 * DAY), make, store=store, clock=clock, holder="next", every=DAY, batch=BATCH
        )
        try:
            return await duty.look()
        finally:
            await store.close()

    return asyncio.run(look())


@pytest.mark.parametrize("point", STEPS)
def test_a_server_that_is_killed_at_this_step_loses_nothing_and_the_next_process_ends_it(
    desk: Desk, point: str
) -> None:
    may_go = {*settled(desk, NUMBER), *settled(desk, 1, Status.DISCARDED)}
    desk.record(dead())
    for status in (Status.PENDING, Status.QUARANTINED, Status.REDRIVING):
        settled(desk, 1, status)
    whole = in_store(desk)

    ended = desk.process("serve", "--port", "0", faults=f"{point}=kill9")

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    check(desk, whole, may_go)
    assert next_process(desk, SystemClock()) is None, "the lease of the dead one lives"
    check(desk, whole, may_go)
    assert next_process(desk, LaterClock()) is not None
    check(desk, whole, may_go)
    assert {letter.id for letter in in_archive(desk)} == may_go
    assert not in_store(desk).keys() & may_go
    assert next_process(desk, LaterClock()) is None, "it is done for today"


def test_a_server_does_it_by_itself_and_says_so_in_the_history(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "redrive.toml").write_text('[retention]\nevery = "1d"\n')
    old = settled(desk, 3)
    desk.record(dead())

    with serving(desk) as served:
        until_now(lambda: "retention has run" in served.said)

    assert sorted(letter.id for letter in in_archive(desk)) == sorted(old)
    desk.redrive("import", ".redrive/archive", "--yes")
    line = desk.letter(old[0]).history[-2]
    assert (line.what, line.by) == ("purged", "retention")
    assert next_process(desk, SystemClock()) is None


def test_a_server_that_was_not_asked_to_leaves_everything_where_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    settled(desk, 3)
    desk.record(dead())

    with serving(desk):
        pass

    assert len(in_store(desk)) == 4
