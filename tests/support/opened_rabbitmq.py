"""A transport on a real RabbitMQ for the length of a block, and the message that most tests send through it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redrive.clock import new_id
from redrive.message import Message
from redrive.transports.rabbitmq.transport import RabbitTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery

PATIENCE = 30.0


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[RabbitTransport]:
    transport = RabbitTransport(url, **options)
    try:
        yield transport
    finally:
        await transport.close()


def message(body: bytes = b"{}", queue: str = "orders", **fields: Any) -> Message:
    return Message(id=new_id(), queue=queue, body=body, sent_at=datetime(2026, 3, 1, tzinfo=UTC), **fields)


async def taken(transport: RabbitTransport, queue: str = "orders") -> Delivery:
    """One delivery, unsettled; the iterator is closed."""
    async with asyncio.timeout(PATIENCE), aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        return await anext(deliveries)
