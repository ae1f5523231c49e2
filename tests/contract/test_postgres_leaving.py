"""Groups go with their last letter, and never from under somebody who is recording into one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy import Connection, event
from sqlalchemy.util import await_only

from redrive.dead_letter import Actor, Transition
from redrive.stores import sql_change
from redrive.stores.postgres import PostgresStore
from redrive.stores.upgrade import check
from redrive.testing.letters import NOON, an_entry
from support.patience import until
from support.postgres_server import PostgresServer

ANN = Actor("ann")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url)
    try:
        yield store
    finally:
        await store.close()


async def discarded(store: PostgresStore, group: str) -> str:
    letter_id, _ = await store.record(an_entry(group=group))
    await store.change([letter_id], Transition.DISCARD, by=ANN)
    return letter_id


async def test_a_group_that_empties_between_two_looks_is_not_deleted_under_a_new_letter(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    async with opened(postgres_store_url) as store:
        alone = await discarded(store, "alone")
        first, second = await discarded(store, "shared"), await discarded(store, "shared")
        recording = await asyncpg.connect(postgres_store_url)
        transaction = recording.transaction()
        looked = asyncio.Event()

        async def meanwhile() -> None:
            """The group's other letter goes, and a new one is on its way."""
            await store.purge([second], by=ANN)
            await transaction.start()
            await store.record(an_entry(group="shared"), connection=recording)
            looked.set()

        def purge(connection: Connection) -> None:
            @event.listens_for(connection, "before_cursor_execute")
            def _before(*statement: object) -> None:
                if str(statement[2]).startswith("DELETE FROM groups") and not looked.is_set():
                    await_only(meanwhile())

            sql_change.purge(connection, [alone, first], by=ANN, now=NOON)

        purging = asyncio.create_task(store._write(purge))
        await looked.wait()
        await until(lambda: purging.done() or postgres.is_somebody_waiting())
        await transaction.commit()
        await purging
        await recording.close()

        assert (await store.statistics()).total == 1
    assert check(postgres_store_url).problems == ()
