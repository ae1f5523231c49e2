"""The index is filled behind the work: batch after batch, with a rest after each."""

from __future__ import annotations

import asyncio

from redrive.testing import ManualClock
from redrive.upkeep.indexing import index_behind


async def test_it_rests_longer_than_it_works_and_ends_when_none_waits() -> None:
    clock = ManualClock()
    waiting = [25, 25, 3]

    async def index() -> int:
        clock.advance(1.0)
        return waiting.pop(0) if waiting else 0

    indexing = asyncio.create_task(index_behind(index, clock=clock, random=lambda: 0.5))
    for left in (2, 1, 0):
        await asyncio.sleep(0)
        assert len(waiting) == left
        clock.advance(2.4)
        await asyncio.sleep(0)
        assert len(waiting) == left, "it rests"
        clock.advance(0.2)
        await asyncio.sleep(0)
    await indexing
