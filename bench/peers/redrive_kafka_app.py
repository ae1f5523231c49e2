"""Redrive on Kafka, as `redrive work` runs it, and what its store takes of its letters with nothing before it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import uvloop

from bench.peers.messages import order
from bench.peers.redrive_app import settings
from bench.peers.run import OrderFailed, Run
from bench.recording import record_all
from redrive import wiring
from redrive.app import App
from redrive.dead_letter import Entry
from redrive.failure import Failure, FailureKind, Host, capture
from redrive.fingerprint import fingerprint
from redrive.message import Message
from redrive.telemetry.logs import configure_logs
from redrive.transports.kafka.record import Arrived, unpack

IN_FLIGHT = 800
"""As many as `bench/intake` has at its fastest."""
_PARTITIONS = 6


def consume(run: Run) -> None:
    """Its failures cannot heal, so that a failing record is dead-lettered at once: into the store, or as variant
    "queue" into its dead-letter topic.
    """
    configure_logs()
    app = App("bench")

    @app.handler(run.task.queue)
    async def handle(_message: Message) -> None:
        run.take()

    uvloop.run(wiring.run_worker(app, settings(run)))


def record(run: Run) -> None:
    """No broker and no worker: the letters that the run has are made before, and given to the store."""
    uvloop.run(_record(run))


async def _record(run: Run) -> None:
    store = wiring.store(settings(run))
    prepared = [await _letter(run, number) for number in range(run.task.letters(run.task.all_messages))]
    await record_all(store, _failing(run, iter(prepared)), IN_FLIGHT)
    await asyncio.Event().wait()


def _failing(run: Run, prepared: Iterator[Entry]) -> Iterator[Entry]:
    for _ in range(run.task.all_messages):
        try:
            run.take()
        except OrderFailed:
            yield next(prepared)


async def _letter(run: Run, number: int) -> Entry:
    """As a worker makes it."""
    now, queue, place = datetime.now(UTC), run.task.queue, number % _PARTITIONS
    value = json.dumps(order(run.task.size)).encode()
    arrived = Arrived(
        queue, place, number, 1_767_225_600_000, now, b"customer-17", value, (), _PARTITIONS, run.task.group
    )
    failure = await _failure(number, now)
    return Entry(
        identity=f"kafka:bench/{queue}/{place}/{number}/{failure.handler}",
        message=unpack(arrived, None),
        queue=queue,
        handler=failure.handler,
        failures=(failure,),
        fingerprint=fingerprint(failure, queue=queue),
        at=now,
        first_attempt_at=now,
    )


async def _failure(number: int, now: datetime) -> Failure:
    async def handle() -> None:
        raise OrderFailed(f"order {number} cannot be paid")

    try:
        await handle()
    except OrderFailed as error:
        kind, host = FailureKind.PERMANENT, Host(name="bench", process=1, app="bench")
        return capture(error, attempt=1, at=now, kind=kind, handler="handle", host=host)
    raise AssertionError
