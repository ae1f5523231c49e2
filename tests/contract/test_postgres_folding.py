"""Whichever way letters come in, nobody leaves a heap of counts behind that are not added up."""

from __future__ import annotations

import asyncpg

from redrive.dead_letter import Actor
from redrive.stores.postgres import PostgresStore
from redrive.testing.letters import an_entry
from support.postgres_server import PostgresServer

NOT_ADDED_UP = "SELECT count(*) FROM redrive.counter_deltas"


async def test_letters_recorded_in_their_callers_transaction_are_added_up(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    store = PostgresStore(postgres_store_url)
    theirs = await asyncpg.connect(postgres_store_url)
    async with theirs.transaction():
        await store.record(an_entry(), connection=theirs)
    await theirs.close()
    assert postgres.fetch(NOT_ADDED_UP, url=postgres_store_url) == [(1,)]

    await store.close()

    assert postgres.fetch(NOT_ADDED_UP, url=postgres_store_url) == [(0,)]


async def test_letters_from_an_archive_are_added_up(postgres: PostgresServer, postgres_store_url: str) -> None:
    store = PostgresStore(postgres_store_url)
    letter_id, _ = await store.record(an_entry())
    whole = [each async for each in store.whole([letter_id])]
    await store.close()

    url = postgres.emptied_store()
    restored = PostgresStore(url)
    assert await restored.restore_whole(whole, by=Actor("ann")) == {letter_id}
    await restored.close()

    assert postgres.fetch(NOT_ADDED_UP, url=url) == [(0,)]
