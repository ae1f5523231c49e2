"""Dramatiq: one process, eight threads, as its command line runs it with `--processes 1`."""

from __future__ import annotations

import logging
import threading
from typing import Any

import dramatiq
from dramatiq import worker
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from bench.peers.run import QUEUE, Run


def consume(run: Run) -> None:
    """Without retries, so that a failing message goes to its dead-letter queue (`orders.XQ`) at once."""
    logging.basicConfig(level=logging.INFO)
    worker.QUEUE_PREFETCH = run.task.prefetch
    broker = RabbitmqBroker(url=run.task.url)
    dramatiq.set_broker(broker)

    @dramatiq.actor(queue_name=QUEUE, max_retries=0)
    def handle(_order: dict[str, Any]) -> None:
        run.take()

    worker.Worker(broker, worker_threads=8).start()
    threading.Event().wait()
