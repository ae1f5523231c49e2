from __future__ import annotations

import asyncio

import pytest

from redrive.errors import UsageError
from redrive.pace import Pace
from redrive.testing.clock import InstantClock, ManualClock


async def test_turns_come_evenly_and_the_first_at_once() -> None:
    clock = InstantClock()
    pace = Pace(4, clock)
    times = []

    for _ in range(4):
        await pace.turn()
        times.append(clock.monotonic())

    assert times == [0, 0.25, 0.5, 0.75]


async def test_tasks_that_ask_together_get_turns_of_their_own() -> None:
    clock = ManualClock()
    pace = Pace(1, clock)
    asking = [asyncio.create_task(pace.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    done = []

    for _ in range(3):
        done.append(sum(task.done() for task in asking))
        clock.advance(1)
        await asyncio.sleep(0)

    assert done == [1, 2, 3]


async def test_a_turn_that_is_waited_for_ahead_comes_at_once_and_is_not_used_up() -> None:
    clock = InstantClock()
    pace = Pace(0.5, clock)
    times = []

    for _ in range(3):
        await pace.upcoming()
        await pace.upcoming()
        before = clock.monotonic()
        await pace.turn()
        times.append((before, clock.monotonic()))

    assert times == [(0, 0), (2, 2), (4, 4)]


async def test_a_pause_is_not_made_up_for_by_a_burst() -> None:
    clock = InstantClock()
    pace = Pace(1, clock)
    await pace.turn()
    clock.advance(100)
    await pace.turn()
    await pace.turn()

    assert clock.monotonic() == 101


async def test_without_a_rate_nobody_waits() -> None:
    clock = ManualClock()
    pace = Pace(None, clock)

    for _ in range(1000):
        await pace.upcoming()
        await pace.turn()

    assert pace.window(20, within=10) == 20


@pytest.mark.parametrize(("rate", "window"), [(0.01, 1), (1, 10), (100, 20)])
def test_a_window_holds_what_can_be_sent_in_its_time(rate: float, window: int) -> None:
    assert Pace(rate, ManualClock()).window(20, within=10) == window


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_rate_that_is_not_possible_is_refused_with_the_remedy(rate: float) -> None:
    with pytest.raises(UsageError) as refused:
        Pace(rate, ManualClock())

    assert refused.value.remedy
