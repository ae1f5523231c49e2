"""The search index on PostgreSQL beside others who write: nobody's change is forgotten, nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from redrive.dead_letter import Status
from redrive.stores.postgres import PostgresStore
from redrive.testing.letters import a_message, an_entry
from redrive.testing.store_case import ANN, place
from redrive.testing.store_contract_search import found


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_store_url)
    yield opened
    await opened.close()


@pytest.fixture
async def beside(store: PostgresStore, postgres_store_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Another process, in the middle of its work."""
    await store.search_backlog()  # the tables are there
    connection = await asyncpg.connect(postgres_store_url, server_settings={"search_path": "redrive"})
    yield connection
    await connection.close()


async def test_a_change_of_a_letter_that_is_being_indexed_is_indexed_after_that(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    letter_id, _ = await store.record(an_entry(message=a_message(body=b"old")))
    async with beside.transaction():
        claimed = await beside.fetch("SELECT id FROM search_queue FOR UPDATE")
        await store.revise(letter_id, a_message(body=b"new"), base=0, by=ANN)

        assert await store.index() == 0, "it is in another's hands"
        assert await store.search_backlog() == 2

        await beside.execute("DELETE FROM search_queue WHERE id = $1", claimed[0]["id"])

    assert await store.index() == 1
    assert await found(store, "new") == [letter_id]


async def test_letters_that_nobody_holds_do_not_wait_for_those_that_somebody_does(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    await store.record(an_entry())
    async with beside.transaction():
        await beside.fetch("SELECT id FROM search_queue FOR UPDATE")
        await store.record(an_entry())

        assert await store.index() == 1

    assert await store.index() == 1


async def test_a_purge_of_a_letter_that_is_being_indexed_leaves_nothing_behind(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    placed = await place(store, Status.RESOLVED)
    async with beside.transaction():
        claimed = await beside.fetch("SELECT id FROM search_queue FOR UPDATE")
        purging = asyncio.create_task(store.purge([placed.id], by=ANN))
        while not await _is_waited_for(beside):
            await asyncio.sleep(0)
        await beside.execute(
            "INSERT INTO search_parts (letter_id, created_at, loose, words) VALUES ($1, 0, false, 'word')",
            placed.id,
        )
        await beside.execute("DELETE FROM search_queue WHERE id = $1", claimed[0]["id"])

    assert await purging == {}
    assert await beside.fetch("SELECT * FROM search_parts") == []


async def _is_waited_for(connection: asyncpg.Connection) -> bool:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    return bool(await connection.fetch(waiting))


async def test_whoever_writes_letters_queues_them_in_whatever_search_path(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    letter_id, _ = await store.record(an_entry())
    await store.index()
    await beside.execute("SET search_path = public")

    await beside.execute("UPDATE redrive.letters SET text = 'a text from elsewhere'")

    assert await found(store, '"from elsewhere"') == [letter_id]
    await beside.execute("UPDATE redrive.letters SET status = 'RESOLVED'")
    assert await store.search_backlog() == 0, "nothing that is searched has changed"
