"""Celery with the solo pool: everything in one process, one task at a time."""

from __future__ import annotations

from typing import Any

from celery import Celery
from kombu.entity import Queue

from bench.peers.run import QUEUE, Run

# Acknowledged after the task, as everybody else does; by default it would be before. A failing task's message is
# rejected, and the queue's dead-letter exchange takes it.
SETTINGS = {
    "task_acks_late": True,
    "task_acks_on_failure_or_timeout": False,
    "task_ignore_result": True,
    "worker_concurrency": 1,
    "broker_connection_retry_on_startup": True,
}


def consume(run: Run) -> None:
    app = Celery("bench", broker=run.task.url)
    queues = [Queue(QUEUE, exchange="", routing_key=QUEUE, no_declare=True)]  # type: ignore[no-untyped-call]
    app.conf.update(SETTINGS, task_queues=queues, worker_prefetch_multiplier=run.task.prefetch)

    @app.task(name="handle")  # type: ignore[untyped-decorator]  # Celery ships no types
    def handle(_order: dict[str, Any]) -> None:
        run.take()

    app.Worker(pool="solo", without_gossip=True, without_mingle=True, loglevel="WARNING").start()
