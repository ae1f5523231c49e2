"""Retention by itself: one process of all, once per interval; a clock that jumps purges nothing (F21)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from redrive.dead_letter import Transition
from redrive.errors import Refused, Unreachable
from redrive.keeping import KeepRules
from redrive.letter_query import LetterQuery
from redrive.stores import Store, open_store
from redrive.testing import ManualClock
from redrive.testing.letters import an_entry
from redrive.testing.store_case import ANN
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_file import read_archive
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.duty import LEASE
from redrive.upkeep.retention import Retained, Retention
from redrive.upkeep.retention_duty import RetentionDuty
from support.patience import until

DAY = 86400.0
KEEP = 90 * DAY


class House:
    """Any number of processes on one store and one clock, each with a machine, and a folder, of its own."""

    def __init__(self, url: str, folder: Path, closing: AsyncExitStack) -> None:
        self.clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
        self._url = url
        self._folder = folder
        self._closing = closing
        self.store = self.opened(self.clock)

    def opened(self, clock: ManualClock) -> Store:
        store = open_store(self._url, clock=clock)
        self._closing.push_async_callback(store.close)
        return store

    def process(self, name: str = "ann", *, clock: ManualClock | None = None) -> RetentionDuty:
        own, store, folder = clock or self.clock, self.opened(self.clock), self._folder / name

        def make() -> Retention:
            archive, note = Archive(folder / "archive"), ClockNote(store, own)
            return Retention(store=store, archive=archive, clock=own, clock_note=note, actor="retention")

        rules = KeepRules.alike(KEEP)
        return RetentionDuty(rules, make, store=store, clock=own, holder=name, every=DAY, batch=100)

    async def settled(self, number: int) -> set[str]:
        ids = [(await self.store.record(an_entry(at=self.clock.now())))[0] for _ in range(number)]
        assert await self.store.change(ids, Transition.DISCARD, by=ANN) == {}
        return set(ids)

    async def in_store(self) -> set[str]:
        return {letter.id for letter in await self.store.find(LetterQuery(limit=500))}

    def archived(self, name: str = "ann") -> list[str]:
        files = Archive(self._folder / name / "archive").files()
        return [letter.id for path in files for letter in read_archive(path)]


@pytest.fixture(params=["sqlite", "postgresql"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    is_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/redrive.db" if is_file else request.getfixturevalue("postgres_store_url")
    async with AsyncExitStack() as closing:
        house = House(url, tmp_path, closing)
        await ClockNote(house.store, house.clock).check(keep=KEEP, is_right=True)
        yield house


async def test_old_letters_go_once_per_interval_and_others_stay(house: House) -> None:
    duty = house.process()
    await duty.look()  # the clock is noted while nothing is old
    old = await house.settled(3)
    house.clock.advance(KEEP + 1)
    await house.store.record(an_entry(at=house.clock.now()))

    assert await duty.look() == Retained(purged=3, files=1)
    assert set(house.archived()) == old
    assert len(await house.in_store()) == 1

    await house.settled(1)
    house.clock.advance(DAY - 1)
    assert await duty.look() is None
    house.clock.advance(1)
    assert await duty.look() == Retained()


async def test_of_all_processes_that_look_at_once_one_does_it(house: House) -> None:
    duties = [house.process(f"p{number}") for number in range(4)]
    old = await house.settled(20)
    house.clock.advance(KEEP + 1)
    await house.store.record(an_entry(at=house.clock.now()))

    done = await asyncio.gather(*(each.look() for each in duties))

    assert [each for each in done if each is not None] == [Retained(purged=20, files=1)]
    kept = [letter_id for number in range(4) for letter_id in house.archived(f"p{number}")]
    assert sorted(kept) == sorted(old)


async def test_a_run_that_takes_long_is_not_begun_by_another_process(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed beside it."""
    slow, other = house.process("slow"), house.process("other")
    going, ended = asyncio.Event(), asyncio.Event()

    async def run(_self: Retention, *_given: object, **_more: object) -> Retained:
        going.set()
        await ended.wait()
        return Retained()

    monkeypatch.setattr(Retention, "run", run)
    working = asyncio.create_task(slow.look())
    await going.wait()
    try:
        for _ in range(6):
            await until(lambda: house.clock.sleeping > 0)
            house.clock.advance(LEASE / 3)
            await until(lambda: house.clock.sleeping > 0)  # renewed, and waiting for the next time
            # Whoever took it here would wait for ever.
            assert await asyncio.wait_for(other.look(), 30) is None
    finally:
        ended.set()
    assert await working == Retained()


async def test_a_process_that_is_ended_lets_go_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    going = asyncio.Event()

    async def run(_self: Retention, *_given: object, **_more: object) -> Retained:
        going.set()
        await asyncio.Event().wait()
        return Retained()

    with monkeypatch.context() as patched:
        patched.setattr(Retention, "run", run)
        working = asyncio.create_task(house.process("ann").serve())
        await going.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    assert await house.process("bob").look() == Retained()


async def test_what_goes_wrong_is_tried_again_after_the_lease(house: House, tmp_path: Path) -> None:
    """F30: the place of the archives is away."""
    old = await house.settled(2)
    house.clock.advance(KEEP + 1)
    await house.store.record(an_entry(at=house.clock.now()))
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "archive").write_text("a file where the folder should be")
    duty = house.process()

    with pytest.raises(Unreachable):
        await duty.look()
    assert await house.in_store() >= old
    assert await house.process("bob").look() is None

    (tmp_path / "ann" / "archive").unlink()
    house.clock.advance(LEASE)
    assert await duty.look() == Retained(purged=2, files=1)


@pytest.mark.parametrize("jump", [2 * 3600.0, 10 * 365 * DAY], ids=["two hours", "ten years"])
async def test_f21_a_clock_that_jumps_ahead_purges_nothing_however_often_it_is_tried(
    house: House, jump: float
) -> None:
    duty = house.process()
    await duty.look()
    await house.settled(3)
    house.clock.advance(KEEP - 3600)
    await house.store.record(an_entry(at=house.clock.now()))
    before = await house.in_store()

    house.clock.set_wall(house.clock.now() + timedelta(seconds=jump))
    for _ in range(3):
        with pytest.raises(Refused, match="clock jumped"):
            await duty.look()
        await house.store.record(an_entry(at=house.clock.now()))  # failures go on, by the same wrong clock
        house.clock.advance(LEASE)

    assert await house.in_store() >= before
    assert house.archived() == []


async def test_f21_a_machine_whose_clock_is_not_the_store_s_purges_nothing(house: House) -> None:
    await house.settled(3)
    house.clock.advance(60 * DAY)
    await house.store.record(an_entry(at=house.clock.now()))
    before = await house.in_store()
    ahead = ManualClock(house.clock.now() + timedelta(days=31))
    await ClockNote(house.store, ahead).check(keep=KEEP, is_right=True)

    with pytest.raises(Refused, match="apart"):
        await house.process("ahead", clock=ahead).look()

    assert await house.in_store() == before


async def test_it_goes_on_after_whatever_went_wrong(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[type[Exception]] = [Refused, RuntimeError]
    looks: list[int] = []

    async def look(_self: RetentionDuty) -> Retained | None:
        looks.append(len(looks))
        if came:
            raise came.pop()("no")
        return None

    monkeypatch.setattr(RetentionDuty, "look", look)
    serving = asyncio.create_task(house.process().serve())
    for number in range(1, 4):
        await until(partial(_has_looked, looks, number, house.clock))
        house.clock.advance(60)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


def _has_looked(looks: list[int], times: int, clock: ManualClock) -> bool:
    return len(looks) == times and clock.sleeping > 0
