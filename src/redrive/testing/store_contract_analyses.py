"""S1's analyses: what the store counts is what its letters say."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status, Transition
from redrive.errors import UsageError
from redrive.statistics import EventTypeCount, HourlyRate, ResolutionTime, TopError
from redrive.testing.letters import NOON, a_group, a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, place

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore
    from redrive.testing.clock import ManualClock

HOUR = timedelta(hours=1)


class AnalysesContract(StoreCase):
    async def test_an_empty_store_has_nothing_to_analyse(self, store: DeadLetterStore) -> None:
        assert await store.top_errors() == []
        assert await store.by_event_type() == []
        assert await store.time_to_resolve() == ResolutionTime(0, None)
        assert {each.letters for each in await store.error_rate()} == {0}

    async def test_top_errors_are_those_of_pending_letters_most_frequent_first(
        self, store: DeadLetterStore
    ) -> None:
        for name, number in (("a", 1), ("b", 3), ("c", 2)):
            for _ in range(number):
                await store.record(an_entry(group=name))
        for status in Status:
            await place(store, status, an_entry(group="c"))

        titles = {name: a_group(name).title for name in "abc"}
        errors = await store.top_errors()

        assert errors == [TopError(titles["b"], 3), TopError(titles["c"], 3), TopError(titles["a"], 1)]
        assert await store.top_errors(limit=2) == errors[:2]
        assert await store.top_errors(limit=0) == []

    async def test_the_rate_counts_whole_hours_and_those_without_letters(self, store: DeadLetterStore) -> None:
        for minutes in (-1, 0, 59, 180, 200):
            await store.record(an_entry(at=NOON + timedelta(minutes=minutes)))
        await place(store, Status.RESOLVED, an_entry(at=NOON + timedelta(minutes=5)))

        rates = await store.error_rate(since=NOON + timedelta(minutes=30), until=NOON + 3 * HOUR + HOUR / 2)

        assert rates == [HourlyRate(NOON + hour * HOUR, letters) for hour, letters in enumerate((3, 0, 0, 2))]
        assert await store.error_rate(since=NOON, until=NOON) == []

    async def test_the_rate_is_that_of_the_last_seven_days_unless_asked(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON + timedelta(minutes=20))
        await store.record(an_entry(at=NOON + timedelta(minutes=10)))
        await store.record(an_entry(at=NOON - timedelta(days=8)))

        rates = await store.error_rate()

        assert (rates[0].hour, rates[-1].hour) == (NOON - timedelta(days=7), NOON)
        assert [each.letters for each in rates] == [0] * 168 + [1]

    async def test_a_rate_over_centuries_is_refused(self, store: DeadLetterStore) -> None:
        with pytest.raises(UsageError, match="hours"):
            await store.error_rate(since=NOON - timedelta(days=365 * 1000))

    async def test_letters_are_counted_by_what_they_say_they_are(self, store: DeadLetterStore) -> None:
        hired = b'{"event_type": "EMPLOYEE_HIRED"}'
        for status in (Status.PENDING, Status.PENDING, Status.RESOLVED, Status.DISCARDED):
            await place(store, status, an_entry(message=a_message(body=hired)))
        await place(store, Status.RESOLVED, an_entry(queue="mails"))

        assert await store.by_event_type() == [
            EventTypeCount("EMPLOYEE_HIRED", 4, 2, 1),
            EventTypeCount("mails", 1, 0, 1),
        ]

    async def test_the_time_to_resolve_is_the_mean_of_what_is_resolved(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(3)]
        clock.set_wall(NOON + HOUR)
        await store.change([ids[0]], Transition.RESOLVE, by=ANN)
        await store.change([ids[2]], Transition.DISCARD, by=ANN)
        clock.set_wall(NOON + 2 * HOUR)
        await store.change([ids[1]], Transition.RESOLVE, by=ANN)

        both = await store.time_to_resolve()
        await store.change([ids[1]], Transition.RESTORE, by=ANN)
        one = await store.time_to_resolve()
        await store.purge([ids[0]], by=ANN)

        assert (both, one) == (ResolutionTime(2, 1.5), ResolutionTime(1, 1.0))
        assert await store.time_to_resolve() == ResolutionTime(0, None)
