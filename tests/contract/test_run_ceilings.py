"""A ceiling holds however many engines of however many runs take at the same moment."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from redrive.stores import open_store
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON
from redrive.testing.store_runs import a_plan, recorded, running, take

if TYPE_CHECKING:
    from support.store_database import Database

RATE = 100.0


async def test_takes_of_many_runs_at_once_reserve_times_that_do_not_overlap(database: Database) -> None:
    clock = ManualClock(NOON)
    async with AsyncExitStack() as closing:
        stores: list[Any] = [open_store(database.url, clock=clock) for _ in range(3)]
        for store in stores:
            closing.push_async_callback(store.close)
        await recorded(stores[0], 400)
        plan = replace(a_plan(), rate=RATE, ceilings={"mail": RATE, "orders": RATE})
        turned = replace(plan, ceilings={"orders": RATE, "mail": RATE})
        runs = [await running(stores[0], each) for each in (plan, turned, plan)]

        taken = await asyncio.gather(
            *(take(store, run, 10) for store, run in zip(stores * 8, runs * 8, strict=True))
        )

        spans = sorted((each.begins_in, each.begins_in + len(each.claims) / RATE) for each in taken if each.claims)
        assert len(spans) == 24
        assert all(begin >= end - 1e-6 for (_, end), (begin, _) in pairwise(spans))
        assert spans[-1][1] == pytest.approx(2.4)
