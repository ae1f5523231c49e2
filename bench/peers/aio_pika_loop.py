"""aio-pika on uvloop, with a bare callback."""

from __future__ import annotations

import asyncio

import aio_pika
import uvloop
from aio_pika.abc import AbstractIncomingMessage

from bench.peers.run import QUEUE, OrderFailed, Run


def consume(run: Run) -> None:
    """A failing message is rejected, and the queue's dead-letter exchange takes it."""
    uvloop.run(_consume(run))


async def _consume(run: Run) -> None:
    async def handle(message: AbstractIncomingMessage) -> None:
        try:
            run.take()
        except OrderFailed:
            await message.reject(requeue=False)
        else:
            await message.ack()

    connection = await aio_pika.connect_robust(run.task.url)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=run.task.prefetch)
    queue = await channel.get_queue(QUEUE)
    await queue.consume(handle)
    await asyncio.Event().wait()
