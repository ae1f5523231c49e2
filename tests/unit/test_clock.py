import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta

from redrive.clock import Clock, SystemClock, new_id
from redrive.testing import InstantClock, ManualClock

NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)


async def settled() -> None:
    """Lets every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_manual_clock_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock(NEW_YEAR)
    assert (clock.now(), clock.monotonic()) == (NEW_YEAR, 0.0)
    clock.advance(1.5)
    assert (clock.now(), clock.monotonic()) == (NEW_YEAR + timedelta(seconds=1.5), 1.5)


async def test_a_sleeper_goes_on_when_its_time_has_come_and_not_a_microsecond_earlier() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(5))
    await settled()
    clock.advance(4.999999)
    await settled()
    assert not sleeper.done()
    clock.advance(0.000001)
    await sleeper


async def test_ten_tenths_of_a_second_are_a_second() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await settled()
    for _ in range(10):
        clock.advance(0.1)
    await sleeper
    assert clock.monotonic() == 1.0


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock, woken = ManualClock(), list[int]()

    async def sleep(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    sleepers = [asyncio.create_task(sleep(seconds)) for seconds in (3, 1, 2)]
    await settled()
    assert clock.sleeping == 3
    clock.advance(10)
    await asyncio.gather(*sleepers)
    assert woken == [1, 2, 3]
    assert clock.sleeping == 0


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(5))
    await settled()
    sleeper.cancel()
    await settled()
    assert clock.sleeping == 0
    clock.advance(10)


async def test_no_time_at_all_is_not_waited_for() -> None:
    clock = ManualClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.monotonic() == 0.0


async def test_setting_the_wall_clock_back_lets_no_time_pass() -> None:
    clock = ManualClock()
    clock.advance(60)
    sleeper = asyncio.create_task(clock.sleep(5))
    await settled()
    clock.set_wall(clock.now() - timedelta(hours=1))
    await settled()
    assert not sleeper.done()
    assert clock.monotonic() == 60.0
    clock.advance(5)
    await sleeper


async def test_the_instant_clock_moves_by_what_is_slept_and_nobody_waits() -> None:
    clock = InstantClock(NEW_YEAR)
    await clock.sleep(3600)
    await clock.sleep(-5)
    assert (clock.now(), clock.monotonic()) == (NEW_YEAR + timedelta(hours=1), 3600.0)


async def test_sleeping_on_the_instant_clock_lets_other_tasks_run() -> None:
    clock, ran = InstantClock(), asyncio.Event()

    async def other() -> None:
        ran.set()

    task = asyncio.create_task(other())
    await clock.sleep(1)
    assert ran.is_set()
    await task


async def test_the_system_clock_is_aware_and_its_monotonic_time_does_not_go_back() -> None:
    clock: Clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.now().utcoffset() == timedelta(0)


def test_ids_sort_by_the_time_they_were_made() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert ids == sorted(ids)


def test_the_clocks_for_tests_need_no_pytest() -> None:
    program = "import sys, redrive.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
