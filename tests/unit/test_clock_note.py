"""F21: a clock that jumped purges nothing; a clock that is right is believed, at the latest at the second run."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from redrive.errors import Refused, Unreachable
from redrive.upkeep.clock_note import ClockNote, Uptime, uptime

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
KEEP = 90 * 86400.0


class Machine:
    """A wall clock and the time since the machine was started."""

    def __init__(self, folder: Path) -> None:
        self.now = NOON
        self.up = Uptime("first", 1000.0)
        self.note = ClockNote(folder / "notes" / "clock.json", uptime=lambda: self.up)

    def passes(self, time: timedelta) -> None:
        self.now += time
        self.up = Uptime(self.up.boot, self.up.seconds + time.total_seconds())

    def restarts(self, name: str) -> None:
        self.up = Uptime(name, 10.0)

    def check(self, newest: datetime | None = None, *, attended: bool = True) -> None:
        self.note.check(self.now, newest=newest, keep=KEEP, attended=attended)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_first_run_in_a_store_that_is_in_use_goes_ahead(machine: Machine) -> None:
    machine.check(newest=NOON - 3 * DAY)


def test_a_first_run_in_an_empty_store_goes_ahead(machine: Machine) -> None:
    machine.check()


def test_time_that_passes_as_it_should_is_no_jump(machine: Machine) -> None:
    machine.check(newest=NOON)
    for _ in range(200):
        machine.passes(DAY)
        machine.check(newest=NOON)


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR, 3650 * DAY, -3650 * DAY], ids=str)
def test_a_jump_is_refused_once_and_believed_when_it_stays(machine: Machine, jump: timedelta) -> None:
    machine.check(newest=NOON)
    machine.passes(DAY)
    machine.now += jump

    with pytest.raises(Refused, match="clock jumped") as told:
        machine.check(newest=NOON)

    assert "run it again" in told.value.remedy
    machine.passes(HOUR)
    machine.check(newest=NOON)


def test_a_jump_that_was_put_right_is_refused_twice_and_nothing_is_believed_in_between(machine: Machine) -> None:
    machine.check(newest=NOON)
    for jump in (3650 * DAY, -3650 * DAY):
        machine.now += jump
        with pytest.raises(Refused, match="clock jumped"):
            machine.check(newest=NOON)


def test_a_clock_that_is_put_right_by_less_than_an_hour_is_believed(machine: Machine) -> None:
    machine.check(newest=NOON)
    machine.now += timedelta(minutes=59)
    machine.check(newest=NOON)


def test_after_a_restart_a_clock_near_what_the_store_has_seen_is_believed(machine: Machine) -> None:
    machine.check(newest=NOON)
    machine.restarts("second")
    machine.now += 40 * DAY
    machine.check(newest=machine.now - 10 * DAY)
    machine.restarts("third")
    machine.now += 40 * DAY  # since the last run
    machine.check(newest=NOON)


def test_after_a_restart_a_clock_far_ahead_of_everything_needs_a_second_run(machine: Machine) -> None:
    machine.check(newest=NOON)
    machine.restarts("second")
    machine.now += 46 * DAY

    with pytest.raises(Refused, match="46d ahead"):
        machine.check(newest=NOON)

    machine.passes(DAY)
    machine.check(newest=NOON)


def test_where_the_machine_does_not_tell_when_it_started_the_store_decides(machine: Machine) -> None:
    machine.up = Uptime("", 0.0)
    machine.check(newest=NOON)
    machine.now += 3650 * DAY
    with pytest.raises(Refused, match="ahead"):
        machine.check(newest=NOON)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b"[]", b'{"at": 7}', b"[" * 10_000])
def test_a_note_that_cannot_be_read_is_as_none(machine: Machine, tmp_path: Path, damage: bytes) -> None:
    machine.check(newest=NOON)
    (tmp_path / "notes" / "clock.json").write_bytes(damage)
    machine.check(newest=NOON)
    machine.passes(100 * DAY)
    machine.check(newest=NOON)


def test_the_note_is_for_its_owner_alone(machine: Machine, tmp_path: Path) -> None:
    machine.check()
    assert stat.S_IMODE((tmp_path / "notes" / "clock.json").stat().st_mode) == 0o600


def test_a_note_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a file")
    with pytest.raises(Unreachable, match="cannot write"):
        Machine(tmp_path).check()


def test_the_real_machine_tells_the_same_start_twice() -> None:
    first, second = uptime(), uptime()
    assert (first.boot, first.seconds <= second.seconds) == (second.boot, True)


# Runs that nobody has asked for


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR, 3650 * DAY, -3650 * DAY], ids=str)
def test_a_jump_is_never_believed_by_runs_that_nobody_asked_for(machine: Machine, jump: timedelta) -> None:
    machine.check(newest=NOON, attended=False)
    machine.now += jump
    for _ in range(5):
        machine.passes(DAY)
        with pytest.raises(Refused, match="clock jumped") as told:
            machine.check(newest=machine.now, attended=False)
    assert "redrive retention run" in told.value.remedy


def test_a_jump_that_was_put_right_holds_up_no_run_that_nobody_asked_for(machine: Machine) -> None:
    machine.check(newest=NOON, attended=False)
    machine.now += 3650 * DAY
    with pytest.raises(Refused):
        machine.check(newest=NOON, attended=False)
    machine.now -= 3650 * DAY

    machine.passes(DAY)
    machine.check(newest=NOON, attended=False)


def test_a_jump_that_a_person_has_confirmed_is_believed_by_all_later_runs(machine: Machine) -> None:
    machine.check(newest=NOON, attended=False)
    machine.now += 30 * DAY
    with pytest.raises(Refused):
        machine.check(newest=NOON)
    machine.passes(HOUR)
    machine.check(newest=NOON)

    machine.passes(DAY)
    machine.check(newest=NOON, attended=False)


def test_letters_that_a_wrong_clock_dated_are_no_witness_for_it(machine: Machine) -> None:
    """The machine starts with a clock that is ten years ahead, and letters fail before retention runs."""
    machine.check(newest=NOON, attended=False)
    machine.restarts("second")
    machine.now += 3650 * DAY

    with pytest.raises(Refused, match="ahead of everything"):
        machine.check(newest=machine.now, attended=False)


def test_after_a_restart_runs_that_nobody_asked_for_go_on(machine: Machine) -> None:
    machine.check(newest=NOON, attended=False)
    machine.passes(2 * DAY)
    machine.restarts("second")

    machine.check(newest=NOON, attended=False)
