"""Bare loops around aiokafka, on uvloop: record by record with `async for`, or in batches with `getmany`.

Beside the loop, what it has handled is committed ten times a second. A failing record is copied to another topic
with its error in a header; before a commit all copies have been acknowledged by the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench.peers.kafka_habits import AT_ONCE, COMMIT_EVERY
from bench.peers.run import OrderFailed, Run


class Loop:
    def __init__(self, run: Run) -> None:
        self._take, self._task = run.take, run.task
        self.consumer = AIOKafkaConsumer(
            run.task.queue,
            bootstrap_servers=run.task.url,
            group_id=run.task.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._producer = AIOKafkaProducer(bootstrap_servers=run.task.url, acks="all")
        self._handled: dict[int, int] = {}
        """The next offset of each partition: all before it is handled."""
        self._copies: list[Awaitable[Any]] = []

    async def start(self) -> None:
        await self.consumer.start()
        if self._task.failing:
            await self._producer.start()

    async def handle(self, record: Any) -> None:
        try:
            self._take()
        except OrderFailed as error:
            headers = [("error", repr(error).encode())]
            copy = await self._producer.send(self._task.dead, record.value, record.key, headers=headers)
            self._copies.append(copy)
        self._handled[record.partition] = record.offset + 1

    async def commit_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY)
            handled, self._handled = self._handled, {}
            copies, self._copies = self._copies, []
            await asyncio.gather(*copies)
            if handled:
                queue = self._task.queue
                await self.consumer.commit(
                    {TopicPartition(queue, number): offset for number, offset in handled.items()}
                )


def iterate(run: Run) -> None:
    uvloop.run(_consume(run, _iterate))


def getmany(run: Run) -> None:
    uvloop.run(_consume(run, _getmany))


async def _consume(run: Run, read: Callable[[Loop], Awaitable[None]]) -> None:
    loop = Loop(run)
    await loop.start()
    await asyncio.gather(read(loop), loop.commit_now_and_then())


async def _iterate(loop: Loop) -> None:
    async for record in loop.consumer:
        await loop.handle(record)


async def _getmany(loop: Loop) -> None:
    while True:
        found = await loop.consumer.getmany(timeout_ms=100, max_records=AT_ONCE)
        for records in found.values():
            for record in records:
                await loop.handle(record)
