"""Dead letters of others from a queue into PostgreSQL: by Redrive's collector, and by a loop that takes one
message, inserts one row and acknowledges.
"""

from __future__ import annotations

import asyncio
import json

import asyncpg
import uvloop

from bench import naive_schema
from bench.peers.redrive_app import settings
from bench.peers.run import QUEUE, Run
from redrive import wiring
from redrive.telemetry.logs import configure_logs
from redrive.transports.rabbitmq.transport import RabbitTransport


def collect(run: Run) -> None:
    configure_logs()
    uvloop.run(_collect(run))


async def _collect(run: Run) -> None:
    def count(more: int) -> None:
        for _ in range(more):
            run.take()

    async with wiring.collector(settings(run), [QUEUE]) as collector:
        await collector.run(on_progress=count)


def row_by_row(run: Run) -> None:
    uvloop.run(_row_by_row(run))


async def _row_by_row(run: Run) -> None:
    """S1's table and INSERT, autocommitted, on the same driver and with the same prefetch as the other."""
    database = await asyncpg.connect(run.task.store)
    await database.execute(
        "DROP SCHEMA IF EXISTS naive CASCADE; CREATE SCHEMA naive;"
        + naive_schema.DEFINITION.replace("public.", "naive.")
    )
    transport = RabbitTransport(run.task.url)
    async for delivery in transport.receive(QUEUE, prefetch=run.task.prefetch):
        body = (delivery.message.body or b"").decode()
        await database.execute(
            "INSERT INTO naive.dlq_events (event_id, event_type, event_payload, error_message)"
            " VALUES ($1, $2, $3, $4)",
            delivery.message.id,
            "order",
            json.dumps(json.loads(body)),
            "rejected",
        )
        await transport.ack(delivery)
        run.take()
    await asyncio.Event().wait()
