"""Redrive's own AMQP connection with a bare callback: what the rest of Redrive is measured against."""

from __future__ import annotations

import asyncio

import uvloop

from bench.peers.run import QUEUE, OrderFailed, Run
from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.address import parse
from redrive.transports.rabbitmq.channel import Channel, Deaf
from redrive.transports.rabbitmq.connection import connect
from redrive.transports.rabbitmq.methods import Basic


class Bare(Deaf):
    """Settles every message in the callback that brings it."""

    channel: Channel

    def __init__(self, run: Run) -> None:
        self._run = run

    def delivered(self, method: bytes, _properties: bytes, _body: bytes) -> None:
        tag, _redelivered, _rest = wire.delivery(method)
        try:
            self._run.take()
        except OrderFailed:
            self.channel.write(wire.reject(self.channel.number, tag, requeue=False))
        else:
            self.channel.write(wire.ack(self.channel.number, tag))


def consume(run: Run) -> None:
    uvloop.run(_consume(run))


async def _consume(run: Run) -> None:
    connection = await connect(parse(run.task.url), tls=None, name="bench", heartbeat=60, within=10)
    listener = Bare(run)
    listener.channel = await connection.channel(listener)
    await listener.channel.call(Basic.Qos(prefetch_count=run.task.prefetch))
    await listener.channel.call(Basic.Consume(queue=QUEUE))
    await asyncio.Event().wait()
