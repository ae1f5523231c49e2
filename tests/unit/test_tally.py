"""Counts are handed to the store once, whatever interrupts the handing over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from redrive import faults
from redrive.errors import RedriveError
from redrive.stores import open_store
from redrive.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.stores import DeadLetterStore


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    faults.arm("")


async def counted(store: DeadLetterStore) -> list[int]:
    return [rate.succeeded for rate in (await store.statistics()).failure_rates]


async def test_a_cancelled_flush_counts_once(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/letters.db")
    await store.signing_key()
    tally = Tally()
    tally.of("charge", "orders").count_success(0.0)
    flush = asyncio.create_task(tally.flush(store))
    for _ in range(3):
        await asyncio.sleep(0)  # the store has begun
    flush.cancel()
    await asyncio.wait({flush})
    assert flush.cancelled()
    await tally.flush(store)

    assert await counted(store) == [1]
    await store.close()


async def test_what_the_store_did_not_take_is_handed_over_the_next_time(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/letters.db")
    await store.signing_key()
    tally = Tally()
    tally.of("charge", "orders").count_success(0.0)
    faults.arm("store.before_commit=eio")
    with pytest.raises(RedriveError):
        await tally.flush(store)
    faults.arm("")
    await tally.flush(store)

    assert await counted(store) == [1]
    await store.close()
