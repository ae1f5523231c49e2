"""F21: a clock that jumped takes nothing out of the store, however often it is tried; a person can say that it is
right.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from redrive.clock import SystemClock
from redrive.errors import Refused
from redrive.testing import ManualClock
from redrive.upkeep.clock_note import ClockNote
from redrive.uptime import NotedClock, Uptime

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = 3600.0, 86400.0
KEEP = 90 * DAY


class Notes:
    """A store's notes."""

    def __init__(self) -> None:
        self._of: dict[str, NotedClock] = {}

    async def noted_clocks(self) -> list[NotedClock]:
        return sorted(self._of.values(), key=lambda each: each.at, reverse=True)

    async def note_clock(self, noted: NotedClock) -> None:
        self._of[noted.uptime.boot] = noted


class Machine(ManualClock):
    def __init__(self, notes: Notes) -> None:
        super().__init__(NOON)
        self._note = ClockNote(notes, self)

    def jump(self, seconds: float) -> None:
        self.set_wall(self.now() + timedelta(seconds=seconds))

    async def check(self, keep: float = KEEP, *, is_right: bool = False) -> None:
        await self._note.check(keep=keep, is_right=is_right)


class Nameless(Machine):
    """Does not tell when it was started."""

    def uptime(self) -> Uptime:
        return Uptime("", 0.0)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
async def machine(notes: Notes) -> Machine:
    machine = Machine(notes)
    await machine.check(is_right=True)
    return machine


async def test_time_that_passes_as_it_should_is_no_jump(machine: Machine) -> None:
    for _ in range(200):
        machine.advance(DAY)
        await machine.check()


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR, 3650 * DAY, -3650 * DAY], ids=str)
async def test_a_jump_is_never_believed_by_itself(machine: Machine, jump: float) -> None:
    machine.jump(jump)
    for _ in range(5):
        machine.advance(DAY)
        with pytest.raises(Refused, match="clock jumped") as told:
            await machine.check()
    assert "--clock-is-right" in told.value.remedy
    assert f"{machine.now():%Y-%m-%d}" in told.value.remedy


async def test_a_jump_that_a_person_calls_right_is_believed_by_all_later_runs(machine: Machine) -> None:
    machine.jump(30 * DAY)
    await machine.check(is_right=True)
    machine.advance(DAY)
    await machine.check()


async def test_a_jump_that_was_put_right_holds_up_nobody(machine: Machine) -> None:
    machine.jump(3650 * DAY)
    with pytest.raises(Refused):
        await machine.check()
    machine.jump(-3650 * DAY)
    await machine.check()


async def test_a_clock_that_is_put_right_by_less_than_an_hour_is_believed(machine: Machine) -> None:
    machine.jump(59 * 60)
    await machine.check()


@pytest.mark.parametrize(("off", "keep"), [(47 * HOUR, KEEP), (8 * HOUR, 4 * DAY), (0.9 * HOUR, HOUR)])
async def test_a_machine_that_was_off_for_a_while_goes_on(machine: Machine, off: float, keep: float) -> None:
    machine.restart()
    machine.jump(off)
    await machine.check(keep)


@pytest.mark.parametrize(
    ("ahead", "keep"), [(44 * DAY, KEEP), (49 * HOUR, KEEP), (11 * HOUR, 4 * DAY), (2 * HOUR, HOUR)]
)
async def test_after_a_new_start_a_clock_may_be_ahead_by_little(
    machine: Machine, ahead: float, keep: float
) -> None:
    machine.restart()
    machine.jump(ahead)
    for _ in range(3):
        with pytest.raises(Refused, match="ahead of the last one"):
            await machine.check(keep)
        machine.advance(HOUR)


async def test_after_a_new_start_a_clock_that_is_behind_is_believed(machine: Machine) -> None:
    """It takes nothing out too early."""
    machine.restart()
    machine.jump(-300 * DAY)
    await machine.check()


async def test_a_store_without_any_note_believes_no_clock(notes: Notes) -> None:
    """It was made by an earlier version; the newest letter may have been dated by the same wrong clock."""
    machine = Machine(notes)
    with pytest.raises(Refused, match="no clock was ever noted"):
        await machine.check()
    await machine.check(is_right=True)
    await machine.check()


async def test_another_machine_compares_with_the_notes_of_all(machine: Machine, notes: Notes) -> None:
    other = Machine(notes)
    await other.check()
    ahead = Machine(notes)
    ahead.jump(3 * DAY)
    with pytest.raises(Refused, match="3d ahead"):
        await ahead.check()
    await machine.check()


async def test_where_the_machine_does_not_tell_when_it_started_the_last_note_decides(notes: Notes) -> None:
    machine = Nameless(notes)
    await machine.check(is_right=True)
    machine.advance(DAY)
    await machine.check()
    machine.jump(3650 * DAY)
    with pytest.raises(Refused, match="ahead"):
        await machine.check()


def test_the_real_machine_tells_the_same_start_twice() -> None:
    first, second = SystemClock().uptime(), SystemClock().uptime()
    assert (first.boot, first.seconds <= second.seconds) == (second.boot, True)
