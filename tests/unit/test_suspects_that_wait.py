"""A message that came back unsettled and waits in memory for its next attempt: what it did before is remembered
until its process has outlived all its attempts, and what others do while it waits is not its fault.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from redrive.suspects import Suspects
from redrive.testing.letters import a_message
from redrive.transports import Delivery
from redrive.upkeep.journal import Journal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.settling import Settling

MARK = "kafka:cluster/orders/0/7"


class Bench:
    """Handles one message. `deaths`: what was counted of it during each attempt."""

    def __init__(self) -> None:
        self.journal = Journal(":memory:")
        self.alone = asyncio.Lock()
        self.suspects = Suspects(self.journal, cast("Settling", None), self.alone)
        self.deaths: list[int] = []
        self.ran_alone: list[bool] = []

    async def attempt(self, number: int, *, waits: bool) -> None:
        async def handle(_delivery: Delivery) -> bool:
            self.deaths.append(await self.journal.deaths(MARK))
            self.ran_alone.append(self.alone.locked())
            return waits

        given: dict[str, Any] = {"first_attempt_at": None, "trail": None, "receipt": None}
        await self.suspects.run(
            Delivery(
                message=a_message(), queue="orders", identity=MARK, attempt=number, redelivered=True, **given
            ),
            handle,
        )


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    opened = Bench()
    yield opened
    await opened.journal.close()


async def test_while_it_waits_it_is_blamed_for_no_death_however_many_attempts_it_has_made(bench: Bench) -> None:
    for number in (1, 2, 3, 4):
        await bench.attempt(number, waits=True)
        assert await bench.journal.deaths(MARK) == 0
    assert bench.deaths == [1, 1, 1, 1]
    assert bench.ran_alone == [False] * 4


async def test_deaths_before_are_kept_while_it_waits_and_forgotten_when_it_is_done(bench: Bench) -> None:
    await bench.journal.begin(MARK)
    await bench.attempt(1, waits=True)
    assert await bench.journal.deaths(MARK) == 1
    await bench.attempt(2, waits=False)
    assert (bench.deaths, bench.ran_alone) == ([2, 2], [True, True])
    assert await bench.journal.deaths(MARK) == 0
