"""pika's asyncio adapter on uvloop, with a bare callback."""

from __future__ import annotations

import asyncio
from typing import Any

import pika
import uvloop
from pika.adapters.asyncio_connection import AsyncioConnection

from bench.peers.run import QUEUE, OrderFailed, Run


def consume(run: Run) -> None:
    """A failing message is rejected, and the queue's dead-letter exchange takes it."""

    def handle(channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        try:
            run.take()
        except OrderFailed:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_ack(method.delivery_tag)

    def begin(channel: Any) -> None:
        channel.basic_qos(
            prefetch_count=run.task.prefetch, callback=lambda _ok: channel.basic_consume(QUEUE, handle)
        )

    with_channel(run, begin)


def with_channel(run: Run, begin: Any) -> None:
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    AsyncioConnection(
        pika.URLParameters(run.task.url),
        on_open_callback=lambda connection: connection.channel(on_open_callback=begin),
        custom_ioloop=loop,
    )
    loop.run_forever()
