"""Work that one of all does: it ends when it is cancelled, and goes no further when its lease is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import cast

import pytest

from redrive.dead_letter import Status
from redrive.errors import Refused, Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import Store, open_store
from redrive.stores.duty_store import DutyStore
from redrive.testing import ManualClock
from redrive.testing.letters import an_entry
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.duty import LEASE, Duty, Lease
from redrive.upkeep.expiry import LOOK_EVERY, QueueExpiry
from support.patience import until

DAY = 86400.0


class Duties:
    """A store whose answers a test chooses."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.ended: list[bool] = []
        self.held: bool | Exception = True
        self.away = False

    async def take_duty(self, name: str, *, holder: str, every: float, lease: float) -> datetime | None:
        assert (name, holder, every, lease) == ("sweep", "ann", DAY, LEASE)
        return self._clock.now()

    async def hold_duty(self, name: str, *, holder: str, lease: float) -> bool:
        assert (name, holder, lease) == ("sweep", "ann", LEASE)
        if isinstance(self.held, Exception):
            raise self.held
        return self.held

    async def end_duty(self, name: str, *, holder: str, done: bool) -> bool:
        assert (name, holder) == ("sweep", "ann")
        if self.away:
            raise Unreachable("the store is away")
        self.ended.append(done)
        return True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def duties(clock: ManualClock) -> Duties:
    return Duties(clock)


@pytest.fixture
def duty(clock: ManualClock, duties: Duties) -> Duty:
    return Duty("sweep", store=cast("DutyStore", duties), clock=clock, holder="ann", every=DAY)


class Work:
    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.going = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, lease: Lease) -> str:
        self.leases.append(lease)
        self.going.set()
        await self.may_end.wait()
        return "done"


@pytest.mark.parametrize("away", [False, True], ids=["store there", "store away"])
async def test_work_that_is_cancelled_ends_even_if_the_store_is_away(
    duty: Duty, duties: Duties, *, away: bool
) -> None:
    duties.away = away
    work = Work()
    looking = asyncio.create_task(duty.look(work))
    await work.going.wait()

    looking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await looking
    assert duties.ended == ([] if away else [False])


async def test_a_lease_that_is_renewed_holds(duty: Duty, duties: Duties, clock: ManualClock) -> None:
    work = Work()
    looking = asyncio.create_task(duty.look(work))
    await work.going.wait()
    for _ in range(9):
        await until(lambda: clock.sleeping > 0)
        clock.advance(LEASE / 3)
        await until(lambda: clock.sleeping > 0)
        work.leases[0].check()
    work.may_end.set()
    assert await looking == "done"
    assert duties.ended == [True]


async def test_a_lease_that_somebody_else_has_taken_is_lost(
    duty: Duty, duties: Duties, clock: ManualClock
) -> None:
    duties.held = False
    work = Work()
    looking = asyncio.create_task(duty.look(work))
    await work.going.wait()
    await until(lambda: clock.sleeping > 0)
    work.leases[0].check()
    clock.advance(LEASE / 3)
    await until(lambda: clock.sleeping == 0)
    await asyncio.sleep(0)

    with pytest.raises(Refused, match="lease of sweep was lost"):
        work.leases[0].check()
    work.may_end.set()
    await looking


async def test_a_lease_that_could_not_be_renewed_in_time_is_lost(
    duty: Duty, duties: Duties, clock: ManualClock
) -> None:
    duties.held = Unreachable("away")
    work = Work()
    looking = asyncio.create_task(duty.look(work))
    await work.going.wait()
    for _ in range(3):
        work.leases[0].check()
        await until(lambda: clock.sleeping > 0)
        clock.advance(LEASE / 3)

    with pytest.raises(Refused, match="lost"):
        work.leases[0].check()
    work.may_end.set()
    await looking


# Expiry


@pytest.fixture
async def store(clock: ManualClock) -> AsyncIterator[Store]:
    store = open_store("sqlite:///:memory:", clock=clock)
    await ClockNote(store, clock).check(keep=DAY, is_right=True)
    yield store
    await store.close()


def expiry(store: Store, clock: ManualClock, holder: str = "ann") -> QueueExpiry:
    return QueueExpiry("orders", DAY, store=store, clock=clock, holder=holder)


async def pending(store: Store) -> int:
    return len(await store.find(LetterQuery(status=Status.PENDING)))


async def test_old_letters_expire_by_one_process_of_all(store: Store, clock: ManualClock) -> None:
    await store.record(an_entry(at=clock.now()))
    clock.advance(DAY + 1)
    await store.record(an_entry(at=clock.now()))

    assert await expiry(store, clock).look() == 1
    assert await expiry(store, clock, "bob").look() is None
    assert await pending(store) == 1
    clock.advance(LOOK_EVERY)
    assert await expiry(store, clock, "bob").look() == 0


async def test_f21_a_clock_that_jumped_expires_nothing(store: Store, clock: ManualClock) -> None:
    await store.record(an_entry(at=clock.now()))
    clock.set_wall(clock.now() + timedelta(days=3650))

    for _ in range(2):
        with pytest.raises(Refused, match="clock jumped"):
            await expiry(store, clock).look()
        clock.advance(LEASE)

    assert await pending(store) == 1


async def test_a_worker_whose_clock_is_not_the_stores_expires_nothing(store: Store, clock: ManualClock) -> None:
    await store.record(an_entry(at=clock.now()))
    ahead = ManualClock(clock.now() + timedelta(days=2))

    with pytest.raises(Refused, match="apart"):
        await expiry(store, ahead).look()

    assert await pending(store) == 1
