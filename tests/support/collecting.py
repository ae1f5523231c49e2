"""What tests of the collector stand on: messages as others dead-letter them, and a collector of one store."""

from __future__ import annotations

import json
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from redrive.availability import Availability
from redrive.clock import SystemClock
from redrive.collector import Collector
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.testing.letters import NOON
from redrive.transports import Names, open_transport
from support.dead_letters import foreign

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter
    from redrive.message import Message
    from redrive.stores import DeadLetterStore
    from redrive.transports import QueueDepth, Transport
    from support.desk import Desk


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is away is asked again soon."""
    monkeypatch.setattr("redrive.availability._FIRST", 0.02)
    monkeypatch.setattr("redrive.availability._LAST", 0.02)
    monkeypatch.setattr("redrive.collecting._LOOK_AT_STORE", 0.01)
    monkeypatch.setattr("redrive.reconnection._FIRST", 0.02)


def rejected(body: bytes = b"{}", *, queue: str = "orders", **more: Any) -> Message:
    """As RabbitMQ leaves it in a dead-letter queue."""
    death = {
        "queue": queue,
        "reason": "rejected",
        "count": 2,
        "time": NOON,
        "exchange": "",
        "routing-keys": [queue],
    }
    return foreign(body, queue=f"{queue}_dlq", headers=(("x-death", [death]), ("tenant", b"\xff")), **more)


def letters(desk: Desk) -> list[DeadLetter]:
    """Newest first, each with its whole story."""

    async def work(store: DeadLetterStore, _transport: Transport) -> list[DeadLetter]:
        found = await store.find(LetterQuery(limit=500))
        return [letter for each in found if (letter := await store.get(each.id))]

    told: list[DeadLetter] = desk.do(work)
    return told


def collected(desk: Desk, *arguments: str) -> dict[str, Any]:
    ended = desk.redrive("collect", *arguments, "--once", "--output", "json")
    assert ended.code == 0, ended.err
    [row] = json.loads(ended.out)
    return dict(row)


def collector(transport: Transport, store: Any, *queues: str, clock: Clock | None = None) -> Collector:
    clock = clock or SystemClock()
    return Collector(
        queues or ("orders_dlq",),
        transport=transport,
        store=store,
        availability=Availability(clock=clock, random=random.random),
        clock=clock,
    )


@asynccontextmanager
async def opened(
    folder: Path, *, store_url: str | None = None, broker_url: str | None = None
) -> AsyncIterator[tuple[DeadLetterStore, Transport]]:
    store = open_store(store_url or f"sqlite:///{folder}/letters.db")
    transport = open_transport(broker_url or f"embedded:///{folder}/broker.db", names=Names())
    try:
        yield store, transport
    finally:
        await transport.close()
        await store.close()


async def in_queue(transport: Transport, queue: str) -> QueueDepth | None:
    return (await transport.depths((queue,))).get(queue)


async def nothing_in(transport: Transport) -> bool:
    return not await transport.depths()


async def holds(transport: Transport, queue: str, number: int) -> bool:
    depth = await in_queue(transport, queue)
    return depth is not None and depth.total == number


async def ready(transport: Transport, queue: str, number: int) -> bool:
    depth = await in_queue(transport, queue)
    return depth is not None and (depth.ready, depth.leased) == (number, 0)
