"""The doctor behind the desk: one look at a time, kept for a minute, for administrators, masked."""

from __future__ import annotations

import asyncio

import pytest

from redrive.errors import ConfigurationError
from redrive.examining import KEPT, Doctor
from redrive.finding import Finding, FindingLevel, FoundAt, problem
from redrive.testing.clock import ManualClock
from support.patience import until


class Looks:
    """Counts them; each ends when the gate opens."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> list[Finding]:
        self.count += 1
        await self.gate.wait()
        return [problem("ttl", f"look {self.count}", "")]


@pytest.fixture
def looks() -> Looks:
    return Looks()


async def test_nothing_is_looked_at_until_somebody_asks(looks: Looks) -> None:
    doctor = Doctor(looks, ManualClock())
    assert (doctor.told.running, doctor.told.at, doctor.told.findings) == (False, None, ())
    await asyncio.sleep(0)
    assert looks.count == 0


async def test_those_who_ask_while_a_look_is_under_way_share_it(looks: Looks) -> None:
    clock = ManualClock()
    doctor = Doctor(looks, clock)
    assert [doctor.ask().running for _ in range(3)] == [True] * 3
    await until(lambda: looks.count)
    clock.advance(10 * KEPT)
    assert doctor.ask().running
    looks.gate.set()
    await until(lambda: not doctor.told.running)
    assert looks.count == 1
    assert [each.what for each in doctor.told.findings] == ["look 1"]
    assert doctor.told.at == clock.now()


async def test_a_look_is_kept_for_a_minute_and_what_it_found_until_the_next_has_found_something(
    looks: Looks,
) -> None:
    clock = ManualClock()
    doctor = Doctor(looks, clock)
    looks.gate.set()
    doctor.ask()
    await until(lambda: not doctor.told.running)
    clock.advance(KEPT - 1)
    assert not doctor.ask().running
    clock.advance(1)
    looks.gate.clear()
    again = doctor.ask()
    assert (again.running, [each.what for each in again.findings]) == (True, ["look 1"])
    looks.gate.set()
    await until(lambda: not doctor.told.running)
    assert [each.what for each in doctor.told.findings] == ["look 2"]


async def test_settings_with_which_nobody_can_look_are_a_finding() -> None:
    async def refuse() -> list[Finding]:
        raise ConfigurationError("queue 'orders' is ordered", remedy="use the store")

    doctor = Doctor(refuse, ManualClock())
    doctor.ask()
    await until(lambda: not doctor.told.running)
    (found,) = doctor.told.findings
    assert (found.check, found.level, found.place) == ("settings", FindingLevel.PROBLEM, FoundAt.SETTINGS)


async def test_closing_ends_a_look_that_is_under_way(looks: Looks) -> None:
    doctor = Doctor(looks, ManualClock())
    doctor.ask()
    await doctor.close()
    assert not doctor.told.running
