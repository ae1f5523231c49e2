"""Work that one process of all does at a time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from redrive.testing.store_case import StoreCase
from redrive.uptime import NotedClock, Uptime

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore
    from redrive.stores.clock_note_store import ClockNoteStore
    from redrive.stores.duty_store import DutyStore
    from redrive.testing.clock import ManualClock

DAY, LEASE = 86400.0, 60.0


def _duties(store: DeadLetterStore) -> DutyStore:
    return cast("DutyStore", store)


async def _takes(store: DeadLetterStore, holder: str, *, name: str = "sweep", every: float = DAY) -> bool:
    return await _duties(store).take_duty(name, holder=holder, every=every, lease=LEASE) is not None


async def _ends(store: DeadLetterStore, holder: str, *, done: bool = True) -> bool:
    return await _duties(store).end_duty("sweep", holder=holder, done=done)


class DutyContract(StoreCase):
    async def test_of_all_who_come_at_once_one_has_it(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        came = [(one, f"{number} {index}") for index in range(10) for number, one in enumerate((store, other))]

        taken = await asyncio.gather(*(_takes(one, holder) for one, holder in came))

        assert taken.count(True) == 1

    async def test_whoever_takes_it_is_told_the_time_of_the_store(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        assert await _duties(store).take_duty("sweep", holder="ann", every=DAY, lease=LEASE) == clock.now()

    async def test_it_is_due_again_after_its_time(self, store: DeadLetterStore, clock: ManualClock) -> None:
        assert await _takes(store, "ann")
        assert await _ends(store, "ann")

        clock.advance(DAY - 1)
        assert not await _takes(store, "bob")
        clock.advance(1)
        assert await _takes(store, "bob")

    async def test_what_was_not_done_is_due_at_once(self, store: DeadLetterStore) -> None:
        assert await _takes(store, "ann")
        assert await _ends(store, "ann", done=False)

        assert await _takes(store, "bob")

    async def test_whoever_dies_keeps_it_for_the_lease_and_no_longer(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        assert await _takes(store, "ann")
        clock.advance(LEASE - 1)
        assert not await _takes(store, "bob")
        clock.advance(1)
        assert await _takes(store, "bob")

    async def test_whoever_lives_keeps_it_as_long_as_it_takes(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        assert await _takes(store, "ann")
        for _ in range(5):
            clock.advance(LEASE / 2)
            assert await _duties(store).hold_duty("sweep", holder="ann", lease=LEASE)
            assert not await _takes(store, "bob")

    async def test_who_has_lost_it_neither_holds_nor_ends_it(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        assert await _takes(store, "ann")
        clock.advance(LEASE)
        assert await _takes(store, "bob")

        assert not await _duties(store).hold_duty("sweep", holder="ann", lease=LEASE)
        assert not await _ends(store, "ann")
        assert not await _takes(store, "cal")
        assert await _ends(store, "bob")

    async def test_each_has_its_own_name(self, store: DeadLetterStore) -> None:
        assert await _takes(store, "ann")
        assert await _takes(store, "bob", name="dust")

    async def test_a_clock_that_was_far_ahead_holds_nothing_up_when_it_is_right_again(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        """F21: neither the lease nor the last time counts that lies in what is the future now."""
        right = clock.now()
        clock.advance(timedelta(days=3650).total_seconds())
        assert await _takes(store, "ann")
        assert await _ends(store, "ann")
        assert await _takes(store, "ann", every=0)

        clock.set_wall(right)

        assert await _takes(store, "bob")


class ClockNoteContract(StoreCase):
    async def test_each_start_of_a_machine_has_its_last_note_the_latest_first(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        notes = cast("ClockNoteStore", store)
        made_with = await notes.noted_clocks()
        now = max([clock.now(), *(each.at for each in made_with)])
        earlier = [NotedClock(now + timedelta(hours=1), Uptime(boot, 10.5)) for boot in ("first", "second")]
        last = NotedClock(now + timedelta(hours=3), Uptime("first", 7210.5))

        for each in (*earlier, last):
            await notes.note_clock(each)

        assert await notes.noted_clocks() == [last, earlier[1], *made_with]

    async def test_notes_that_are_much_older_go(self, store: DeadLetterStore, clock: ManualClock) -> None:
        notes = cast("ClockNoteStore", store)
        later = NotedClock(clock.now() + timedelta(days=10_000), Uptime("later", 1.0))
        await notes.note_clock(NotedClock(clock.now(), Uptime("old", 1.0)))
        await notes.note_clock(later)

        assert await notes.noted_clocks() == [later]
