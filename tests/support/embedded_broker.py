"""An embedded broker on a file, with a clock that a test moves."""

import asyncio
import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

from redrive.clock import new_id
from redrive.message import Message
from redrive.testing import ManualClock
from redrive.transports import Delivery, Names
from redrive.transports.embedded import EmbeddedTransport

LEASE = 60.0
MEMORY = "embedded:///:memory:"


class Closing(EmbeddedTransport):
    aclose = EmbeddedTransport.close


def opened(path: Path, clock: ManualClock, lease: float = LEASE) -> Closing:
    return Closing(f"embedded:///{path}", names=Names(), clock=clock, lease=lease, poll=0.005)


def a_message(queue: str = "orders", body: bytes = b"{}", properties: bytes | None = None) -> Message:
    return Message(id=new_id(), queue=queue, body=body, sent_at=ManualClock().now(), properties=properties)


async def take(transport: EmbeddedTransport, count: int = 1) -> list[Delivery]:
    async with asyncio.timeout(30), aclosing(transport.receive("orders", prefetch=count)) as deliveries:
        return [await anext(deliveries) for _ in range(count)]


def ask(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
