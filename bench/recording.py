"""Letters into a store, many of them waiting for their answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from redrive.dead_letter import Entry
from redrive.stores import DeadLetterStore


async def record_all(store: DeadLetterStore, entries: Iterable[Entry], in_flight: int) -> None:
    left = iter(entries)

    async def one_after_the_other() -> None:
        for entry in left:
            await store.record(entry)

    await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))
