"""Processes that count the same handlers at once wait for one another, never in a circle."""

from __future__ import annotations

import asyncio

import asyncpg

from redrive.statistics import HandlerTally
from redrive.stores.postgres import PostgresStore
from support.patience import until
from support.postgres_server import PostgresServer


async def test_handlers_are_counted_in_one_order_whatever_order_they_come_in(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    store = PostgresStore(postgres_store_url)
    first, second = HandlerTally("charge", "orders", 1, 0), HandlerTally("refund", "orders", 1, 0)
    await store.tally([first, second])
    other = await asyncpg.connect(postgres_store_url)
    async with other.transaction():
        await other.execute("UPDATE redrive.handler_attempts SET failed = 1 WHERE handler = 'charge'")
        counting = asyncio.create_task(store.tally([second, first]))
        await until(postgres.is_somebody_waiting)

        await other.execute("SELECT FROM redrive.handler_attempts WHERE handler = 'refund' FOR UPDATE NOWAIT")
    await counting

    await other.close()
    rates = {each.handler: each for each in (await store.statistics()).failure_rates}
    await store.close()
    assert (rates["charge"].succeeded, rates["charge"].failed, rates["refund"].succeeded) == (2, 1, 2)
