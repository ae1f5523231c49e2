"""FastStream, on uvloop as its command line runs it."""

from __future__ import annotations

from typing import Any

import uvloop
from faststream import AckPolicy, FastStream
from faststream.rabbit import Channel, RabbitBroker, RabbitQueue

from bench.peers.run import QUEUE, Run


def consume(run: Run) -> None:
    """With its log as it comes, or as variant "silent" without. A failing message is rejected, which is its
    default, and the queue's dead-letter exchange takes it.
    """
    silence: dict[str, Any] = {"logger": None} if run.task.variant == "silent" else {}
    broker = RabbitBroker(run.task.url, **silence)

    @broker.subscriber(
        RabbitQueue(QUEUE, declare=False),
        channel=Channel(prefetch_count=run.task.prefetch),
        ack_policy=AckPolicy.REJECT_ON_ERROR,
    )
    async def handle(_order: dict[str, Any]) -> None:
        run.take()

    uvloop.run(FastStream(broker, **silence).run())
