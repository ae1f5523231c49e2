"""Taskiq with taskiq-aio-pika, on uvloop as its command line runs it."""

from __future__ import annotations

import logging
from typing import Any

import uvloop
from aio_pika import DeliveryMode, Message
from taskiq import TaskiqMessage, TaskiqMiddleware, TaskiqResult
from taskiq.api import run_receiver_task
from taskiq_aio_pika import AioPikaBroker, Queue

from bench.peers.run import DEAD, QUEUE, Run


class DeadLetters(TaskiqMiddleware):
    """Taskiq acknowledges failed tasks and sets none apart: this is the hook it has for doing so."""

    async def on_error(self, message: TaskiqMessage, _result: TaskiqResult[Any], exception: BaseException) -> None:
        assert isinstance(self.broker, AioPikaBroker)
        assert self.broker.write_channel is not None
        copy = Message(
            self.broker.formatter.dumps(message).message,
            headers={"error": repr(exception)},
            delivery_mode=DeliveryMode.PERSISTENT,
        )
        await self.broker.write_channel.default_exchange.publish(copy, routing_key=DEAD)


def consume(run: Run) -> None:
    logging.basicConfig(level=logging.INFO)
    broker = AioPikaBroker(
        run.task.url,
        qos=run.task.prefetch,
        task_queues=[Queue(name=QUEUE, declare=False)],
        dead_letter_queue=Queue(name=DEAD, declare=False),
    ).with_middlewares(DeadLetters())

    @broker.task(task_name="handle")
    async def handle(_order: dict[str, Any]) -> None:
        run.take()

    uvloop.run(_receive(broker, together=max(run.task.prefetch, 100)))


async def _receive(broker: AioPikaBroker, *, together: int) -> None:
    broker.is_worker_process = True
    await broker.startup()
    await run_receiver_task(broker, max_async_tasks=together)
