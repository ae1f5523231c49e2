"""One queue of SQS as moto plays it, our driver, and another program that uses it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiobotocore.session import get_session

from redrive.clock import new_id
from redrive.message import Message
from redrive.transports.sqs.transport import SqsTransport
from support.moto_server import REGION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Delivery
    from support.moto_server import MotoSqs


class Broker:
    """One queue, the driver, and another program's client."""

    def __init__(self, sqs: MotoSqs, theirs: Any, ending: str) -> None:
        self.sqs, self.theirs, self.queue = sqs, theirs, f"behaviour_{new_id()}{ending}"
        self.opened: list[SqsTransport] = []
        self.transport = self.open()

    def open(self, **options: Any) -> SqsTransport:
        usual: dict[str, Any] = {"endpoint": self.sqs.endpoint, "clock": self.sqs.clock, "wait": 1}
        self.opened.append(SqsTransport(**({"url": self.sqs.url} | usual | options)))
        return self.opened[-1]

    def message(self, **given: Any) -> Message:
        usual: dict[str, Any] = {
            "id": new_id(),
            "queue": self.queue,
            "body": b"{}",
            "sent_at": datetime(2030, 1, 1, tzinfo=UTC),
        }
        return Message(**(usual | given))

    async def made(self, name: str = "", **attributes: str) -> str:
        """The URL of a queue that another program made."""
        made = await self.theirs.create_queue(QueueName=name or self.queue, Attributes=attributes)
        return str(made["QueueUrl"])

    async def url(self, name: str = "") -> str:
        found = await self.theirs.get_queue_url(QueueName=name or self.queue)
        return str(found["QueueUrl"])

    async def take(self, queue: str = "", transport: SqsTransport | None = None) -> Delivery:
        receiving = (transport or self.transport).receive(queue or self.queue, prefetch=1)
        async with aclosing(receiving) as deliveries, asyncio.timeout(30):
            return await anext(deliveries)

    async def expect_nothing(self) -> None:
        """Nothing comes in the time that a request waits at SQS."""
        async with aclosing(self.transport.receive(self.queue, prefetch=1)) as deliveries:
            waiting = asyncio.create_task(anext(deliveries))
            answered = await asyncio.wait({waiting}, timeout=1.5)
            waiting.cancel()
            await asyncio.wait({waiting})
        assert not answered[0]


@asynccontextmanager
async def a_broker(sqs: MotoSqs, *, ending: str = "") -> AsyncIterator[Broker]:
    """`ending`: of the queue's name."""
    async with get_session().create_client("sqs", region_name=REGION, endpoint_url=sqs.endpoint) as theirs:
        broker = Broker(sqs, theirs, ending)
        yield broker
        for transport in broker.opened:
            await transport.close()
