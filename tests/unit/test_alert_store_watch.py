"""A store that does not answer: told once, its end once, also across restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive.alerts.alert import Alert, Severity
from redrive.alerts.outbox import Outbox
from redrive.alerts.rule import DEFAULTS, RuleKind
from redrive.alerts.store_watch import StoreWatch
from redrive.errors import Unreachable
from redrive.testing.clock import ManualClock

RULE = DEFAULTS[RuleKind.STORE_DOWN]


class House:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: list[Alert] = []
        self.refuses = False

    async def tell(self, alert: Alert) -> None:
        if self.refuses:
            raise Unreachable("the disk is full")
        if alert.id not in {each.id for each in self.told}:  # as the outbox does
            self.told.append(alert)

    @property
    def said(self) -> list[str]:
        return [f"{each.state} {each.dedup_key}" for each in self.told]


@asynccontextmanager
async def a_process(house: House, folder: Path) -> AsyncIterator[StoreWatch]:
    outbox = Outbox(folder / "alerts.db")
    try:
        yield StoreWatch(RULE, outbox, house.tell, clock=house.clock)
    finally:
        await outbox.close()


async def test_an_absence_is_told_when_it_lasts_and_its_end_too(tmp_path: Path) -> None:
    house = House()
    async with a_process(house, tmp_path) as watch:
        await watch.failed()
        house.clock.advance(59)
        await watch.failed()
        assert house.said == []
        house.clock.advance(1)
        await watch.failed()
        await watch.failed()
        assert house.said == ["raised store_down"]
        house.clock.advance(60)
        await watch.answered()
        await watch.answered()

    raised, resolved = house.told
    assert house.said == ["raised store_down", "resolved store_down"]
    assert (raised.severity, raised.since, resolved.since) == (Severity.CRITICAL, raised.since, raised.since)
    assert (resolved.at - raised.since).total_seconds() == 120


async def test_a_short_absence_is_nobodys_business(tmp_path: Path) -> None:
    house = House()
    async with a_process(house, tmp_path) as watch:
        for _ in range(3):
            await watch.failed()
            house.clock.advance(50)
            await watch.answered()
    assert house.said == []


async def test_a_process_that_starts_anew_tells_of_the_end_and_not_of_the_beginning(tmp_path: Path) -> None:
    house = House()
    async with a_process(house, tmp_path) as watch:
        await watch.failed()
        house.clock.advance(60)
        await watch.failed()
    async with a_process(house, tmp_path) as watch:  # still away
        await watch.failed()
        house.clock.advance(60)
        await watch.failed()
    assert house.said == ["raised store_down"]
    async with a_process(house, tmp_path) as watch:
        await watch.answered()
    async with a_process(house, tmp_path) as watch:
        await watch.answered()
    assert house.said == ["raised store_down", "resolved store_down"]


async def test_what_could_not_be_handed_over_is_handed_over_later_with_the_same_id(tmp_path: Path) -> None:
    house = House()
    async with a_process(house, tmp_path) as watch:
        await watch.failed()
        house.clock.advance(60)
        house.refuses = True
        with pytest.raises(Unreachable):
            await watch.failed()
        house.refuses = False
        await watch.failed()
        house.refuses = True
        with pytest.raises(Unreachable):
            await watch.answered()
        house.refuses = False
        await watch.answered()
    assert house.said == ["raised store_down", "resolved store_down"]


async def test_the_next_absence_is_another_one(tmp_path: Path) -> None:
    house = House()
    async with a_process(house, tmp_path) as watch:
        for _ in range(2):
            await watch.failed()
            house.clock.advance(60)
            await watch.failed()
            await watch.answered()
            house.clock.advance(RULE.cooldown)
    assert house.said == ["raised store_down", "resolved store_down"] * 2
    assert len({each.id for each in house.told}) == 4


async def test_a_store_that_comes_and_goes_is_told_once_in_a_cooldown_also_by_the_next_process(
    tmp_path: Path,
) -> None:
    house = House()
    for _ in range(2):
        async with a_process(house, tmp_path) as watch:
            for _ in range(2):
                await watch.failed()
                house.clock.advance(60)
                await watch.failed()
                await watch.answered()
    assert house.said == ["raised store_down", "resolved store_down"]

    async with a_process(house, tmp_path) as watch:
        await watch.failed()
        house.clock.advance(RULE.cooldown)  # it stays away until the cooldown is over
        await watch.failed()
    assert house.said == ["raised store_down", "resolved store_down", "raised store_down"]
