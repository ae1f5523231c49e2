"""R26: a store that is away is asked by one at a time, later each time, and by nobody else."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from redrive.availability import Availability
from redrive.errors import NotFound, Unreachable
from redrive.testing import ManualClock


class Store:
    """There or away, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: Exception | None = Unreachable("no route", remedy="build a road")
        self.held: asyncio.Event | None = None

    async def question(self) -> str:
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return "answer"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def availability(clock: ManualClock) -> Availability:
    return Availability(clock=clock, random=lambda: 0.5)


async def ask_by_five(availability: Availability, store: Store) -> int:
    """How many of them reached the store, all in vain."""
    before = store.asked
    asking = (availability.ask(store.question) for _ in range(5))
    assert all(isinstance(error, Unreachable) for error in await asyncio.gather(*asking, return_exceptions=True))
    return store.asked - before


async def test_a_store_that_was_away_is_asked_by_one_at_a_time_and_by_nobody_before_it_is_time(
    availability: Availability, store: Store, clock: ManualClock
) -> None:
    assert await ask_by_five(availability, store) == 5  # nobody knew
    assert await ask_by_five(availability, store) == 0
    clock.advance(60)
    assert await ask_by_five(availability, store) == 1
    store.error = None
    with pytest.raises(Unreachable, match="a moment ago"):
        await availability.ask(store.question)
    clock.advance(60)

    assert await availability.ask(store.question) == "answer"
    assert availability.due
    assert not availability.away


async def test_it_is_asked_later_each_time_and_then_regularly(
    availability: Availability, store: Store, clock: ManualClock
) -> None:
    waits = []
    for _ in range(8):
        await ask_by_five(availability, store)
        before = clock.monotonic()
        while not availability.due:
            clock.advance(0.125)
        waits.append(clock.monotonic() - before)

    assert min(waits) >= 1  # seconds: at most one question per second
    assert waits == sorted(waits)
    assert waits[0] < 2
    assert waits[-1] == waits[-2] == 10


async def test_many_who_find_out_together_do_not_make_the_wait_longer(
    availability: Availability, store: Store, clock: ManualClock
) -> None:
    await ask_by_five(availability, store)

    clock.advance(1.5)
    assert availability.due


async def test_processes_that_lost_it_together_do_not_come_back_together(store: Store, clock: ManualClock) -> None:
    dice = iter(range(10))
    others = [Availability(clock=clock, random=lambda: next(dice) / 10) for _ in range(10)]
    for each in others:
        with pytest.raises(Unreachable):
            await each.ask(store.question)

    due = []
    for _ in range(20):
        clock.advance(0.1)
        due.append(sum(each.due for each in others))

    assert due[-1] == 10
    assert max(later - before for before, later in pairwise(due)) <= 2


async def test_while_one_asks_for_a_long_time_nobody_else_does(
    availability: Availability, store: Store, clock: ManualClock
) -> None:
    await ask_by_five(availability, store)
    clock.advance(60)
    store.held = asyncio.Event()
    probe = asyncio.create_task(availability.ask(store.question))
    await asyncio.sleep(0)

    clock.advance(60)
    assert await ask_by_five(availability, store) == 0

    probe.cancel()
    await asyncio.wait({probe})
    assert availability.due  # a probe that was given up holds nobody up


async def test_a_refusal_is_a_sign_of_life(availability: Availability, store: Store, clock: ManualClock) -> None:
    await ask_by_five(availability, store)
    clock.advance(60)
    store.error = NotFound("no such letter")

    with pytest.raises(NotFound):
        await availability.ask(store.question)

    assert not availability.away


async def test_a_store_that_does_not_answer_in_time_is_away_unless_the_work_is_long(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.availability.DEADLINE", 0.01)
    availability = Availability(clock=clock, random=lambda: 0.5)
    store.held = asyncio.Event()
    long_work = asyncio.create_task(availability.ask(store.question, patient=True))

    with pytest.raises(Unreachable, match=r"no answer within 0\.01 s"):
        await availability.ask(store.question)

    assert availability.away
    store.error = None
    store.held.set()
    assert await long_work == "answer"


async def test_the_error_says_what_the_store_said_and_its_remedy(availability: Availability, store: Store) -> None:
    with pytest.raises(Unreachable, match="the store is away: no route") as told:
        await availability.ask(store.question)

    assert told.value.remedy == "build a road"
