"""Persistent, mandatory and confirmed: one message after the other, or many at once before anybody waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from bench.peers.messages import order, plain
from bench.peers.run import QUEUE, Run

TOGETHER = 500


def pika_one_by_one(run: Run) -> None:
    import pika  # noqa: PLC0415  only what is measured is loaded

    written = plain(run.task.size)
    channel = pika.BlockingConnection(pika.URLParameters(run.task.url)).channel()
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=2, **written.properties)
    run.start()
    for _ in range(run.task.messages):
        channel.basic_publish("", QUEUE, written.body, properties, mandatory=True)
    run.finish()
    threading.Event().wait()


def pika_pipelined(run: Run) -> None:
    """On its asyncio adapter, since the blocking one waits for every confirm."""
    from bench.peers.pika_loop import with_channel  # noqa: PLC0415  as above
    from bench.peers.pika_pipeline import Pipeline  # noqa: PLC0415  as above

    with_channel(run, lambda channel: Pipeline(run, channel, TOGETHER).begin())


def aio_pika_one_by_one(run: Run) -> None:
    uvloop.run(_aio_pika(run, together=1))


def aio_pika_pipelined(run: Run) -> None:
    uvloop.run(_aio_pika(run, together=TOGETHER))


def redrive_one_by_one(run: Run) -> None:
    uvloop.run(_redrive(run, together=1))


def redrive_pipelined(run: Run) -> None:
    uvloop.run(_redrive(run, together=TOGETHER))


async def _aio_pika(run: Run, *, together: int) -> None:
    import aio_pika  # noqa: PLC0415  as above

    written = plain(run.task.size)
    connection = await aio_pika.connect_robust(run.task.url)
    exchange = (await connection.channel()).default_exchange

    def send() -> Awaitable[Any]:
        message = aio_pika.Message(
            written.body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT, **written.properties
        )
        return exchange.publish(message, QUEUE, mandatory=True)

    await _send_all(run, send, together)


async def _redrive(run: Run, *, together: int) -> None:
    from bench.peers.redrive_app import settings  # noqa: PLC0415  as above
    from redrive.app import App  # noqa: PLC0415  as above

    data = order(run.task.size)
    async with App("bench", settings=settings(run)) as app:
        await _send_all(run, lambda: app.send(QUEUE, data), together)


async def _send_all(run: Run, send: Callable[[], Awaitable[Any]], together: int) -> None:
    run.start()
    for _ in range(run.task.messages // together):
        if together == 1:
            await send()
        else:
            await asyncio.gather(*(send() for _ in range(together)))
    run.finish()
    await asyncio.Event().wait()
