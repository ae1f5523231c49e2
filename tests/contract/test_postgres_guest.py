"""`record(entry, connection=...)`: a letter in its caller's transaction, there if that commits, not otherwise."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine

from redrive.dead_letter import Recorded
from redrive.errors import RedriveError, Unreachable, UsageError
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.stores.postgres import PostgresStore
from redrive.stores.upgrade import check
from redrive.testing.letters import NOON, a_message, an_entry
from redrive.testing.store_case import ANN, letter, returned, sent
from support.postgres_server import PostgresServer
from support.sealing import ENCRYPTION

Execute = Callable[[str], Awaitable[Any]]


class Guest:
    """Somebody's open transaction on the database, with a table of theirs in it."""

    def __init__(self, connection: Any, execute: Execute, ask: Execute, commit: Execute) -> None:
        self.connection = connection
        self.execute = execute
        self.ask = ask
        self._end = commit

    async def commit(self) -> None:
        await self._end("commit")

    async def rollback(self) -> None:
        await self._end("rollback")


@asynccontextmanager
async def by_connection(url: str) -> AsyncIterator[Guest]:
    async with engine_for(url) as engine, engine.connect() as connection:
        yield guest_of(connection, connection)


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Guest]:
    async with engine_for(url) as engine, AsyncSession(engine) as session:
        yield guest_of(session, session)


def guest_of(connection: Any, executing: AsyncConnection | AsyncSession) -> Guest:
    async def execute(statement: str) -> Any:
        return await executing.execute(text(statement))

    async def ask(statement: str) -> Any:
        return (await executing.execute(text(statement))).scalar()

    async def end(how: str) -> None:
        await getattr(executing, how)()

    return Guest(connection, execute, ask, end)


@asynccontextmanager
async def engine_for(url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Guest]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()

    async def end(how: str) -> None:
        await getattr(transaction, how)()

    yield Guest(connection, connection.execute, connection.fetchval, end)
    await connection.close()


@asynccontextmanager
async def by_pool_of_asyncpg(url: str) -> AsyncIterator[Guest]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        await connection.execute("BEGIN")
        yield Guest(connection, connection.execute, connection.fetchval, connection.execute)
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")


WAYS = [by_connection, by_session, by_asyncpg, by_pool_of_asyncpg]
Way = Callable[[str], Any]


@pytest.fixture
def url(postgres: PostgresServer, postgres_url: str) -> str:
    postgres.run(
        "CREATE TABLE public.orders (id integer); CREATE TABLE public.letters (id integer)", url=postgres_url
    )
    return postgres_url


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(url)
    yield opened
    await opened.close()


async def identities(store: PostgresStore) -> list[str]:
    return sorted(each.identity for each in await store.find(LetterQuery()))


@pytest.mark.parametrize("way", WAYS)
async def test_the_letter_is_there_when_the_caller_commits(
    postgres: PostgresServer, url: str, store: PostgresStore, way: Way
) -> None:
    async with way(url) as guest:
        await guest.execute("INSERT INTO orders VALUES (17)")
        letter_id, recorded = await store.record(an_entry("it"), connection=guest.connection)
        await guest.execute("INSERT INTO orders VALUES (18)")
        assert await identities(store) == []
        await guest.commit()

    assert recorded is Recorded.NEW
    found = await letter(store, letter_id)
    assert (found.identity, len(found.failures), [line.what for line in found.history]) == ("it", 1, ["recorded"])
    assert [group.total for group in await store.groups()] == [1]
    assert postgres.fetch("SELECT id FROM orders", url=url) == [(17,), (18,)]
    assert postgres.fetch("SELECT id FROM public.letters", url=url) == []
    assert check(url).healthy


@pytest.mark.parametrize("way", WAYS)
async def test_there_is_no_letter_when_the_caller_rolls_back(
    postgres: PostgresServer, url: str, store: PostgresStore, way: Way
) -> None:
    async with way(url) as guest:
        await guest.execute("INSERT INTO orders VALUES (17)")
        await store.record(an_entry("it"), connection=guest.connection)
        await guest.rollback()

    assert await identities(store) == []
    assert await store.groups() == []
    assert postgres.fetch("SELECT id FROM orders", url=url) == []
    assert (await store.record(an_entry("it")))[1] is Recorded.NEW


@pytest.mark.parametrize("way", WAYS)
async def test_known_and_returned_letters_are_recognised_in_a_callers_transaction(
    url: str, store: PostgresStore, way: Way
) -> None:
    letter_id, _ = await store.record(an_entry("it"))
    claim = await sent(store, letter_id)

    async with way(url) as guest:
        again = await store.record(an_entry("it", attempts=2), connection=guest.connection)
        back = await store.record(returned(claim), connection=guest.connection)
        await guest.commit()

    assert (again, back) == ((letter_id, Recorded.AGAIN), (letter_id, Recorded.CAME_BACK))
    assert check(url).healthy


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shredded", [False, True])
async def test_in_an_encrypted_store_a_letter_can_be_read_whatever_the_callers_transaction_sees(
    url: str, way: Way, *, shredded: bool
) -> None:
    here, elsewhere = (PostgresStore(url, encryption=ENCRYPTION) for _ in range(2))
    try:
        await here.record(an_entry("before", at=NOON - timedelta(days=1)))
        async with way(url) as guest:
            await guest.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            await guest.ask("SELECT count(*) FROM orders")  # from here on it sees this moment, without new keys
            if shredded:  # a key that this process remembers
                await here.record(an_entry("today"))
                await elsewhere.shred(None, NOON.date(), NOON.date(), by=ANN)
            letter_id, _ = await here.record(an_entry("it"), connection=guest.connection)
            await guest.commit()
        assert (await letter(elsewhere, letter_id)).message.body == a_message().body
    finally:
        await here.close()
        await elsewhere.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("local", ["", "LOCAL "])
async def test_the_callers_search_path_stays_as_it_was(
    url: str, store: PostgresStore, way: Way, local: str
) -> None:
    async with way(url) as guest:
        await guest.execute(f"SET {local}search_path = public, pg_temp")
        await store.record(an_entry(), connection=guest.connection)
        assert await guest.ask("SHOW search_path") == "public, pg_temp"
        assert await guest.ask("SELECT count(*) FROM letters") == 0
        await guest.commit()
        after = '"$user", public' if local else "public, pg_temp"
        assert await guest.ask("SHOW search_path") == after


@pytest.mark.parametrize("way", WAYS)
async def test_what_fails_leaves_the_callers_transaction_as_it_was(
    postgres: PostgresServer, url: str, store: PostgresStore, way: Way
) -> None:
    canary = os.urandom(8).hex()
    await store.record(an_entry("one"))
    postgres.run("CREATE UNIQUE INDEX one_letter_only ON redrive.letters (source)", url=url)

    async with way(url) as guest:
        await guest.execute("SET LOCAL search_path = public")
        await guest.execute("INSERT INTO orders VALUES (17)")
        await store.record(an_entry(message=a_message(source=canary)), connection=guest.connection)
        with pytest.raises(RedriveError, match="one_letter_only") as refusal:
            await store.record(an_entry(message=a_message(source=canary)), connection=guest.connection)
        assert await guest.ask("SHOW search_path") == "public"
        await guest.commit()

    assert canary not in "".join(traceback.format_exception(refusal.value))
    assert postgres.fetch("SELECT id FROM orders", url=url) == [(17,)]
    assert (await store.statistics()).total == 2


async def test_what_the_caller_has_set_up_on_a_connection_of_asyncpg_stays(url: str, store: PostgresStore) -> None:
    connection = await asyncpg.connect(url)
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=lambda _: "theirs")
    async with connection.transaction():
        await store.record(an_entry("one"), connection=connection)
        assert await connection.fetchval("SELECT '{}'::jsonb") == "theirs"
        async with connection.transaction():
            await store.record(an_entry("two"), connection=connection)
    assert not connection.is_in_transaction()
    assert await connection.fetchval("SELECT '{}'::jsonb") == "theirs"
    await connection.close()

    assert await identities(store) == ["one", "two"]


async def test_a_connection_outside_of_a_transaction_is_refused(url: str, store: PostgresStore) -> None:
    connection = await asyncpg.connect(url)
    with pytest.raises(UsageError, match="not in a transaction"):
        await store.record(an_entry(), connection=connection)
    await connection.close()
    async with engine_for(url) as engine:
        committing = engine.execution_options(isolation_level="AUTOCOMMIT")
        async with committing.connect() as automatic:
            with pytest.raises(UsageError, match="not in a transaction"):
                await store.record(an_entry(), connection=automatic)

    assert await identities(store) == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_session_whose_commits_are_not_durable_is_refused(
    url: str, store: PostgresStore, way: Way
) -> None:
    async with way(url) as guest:
        await guest.execute("SET synchronous_commit = off")
        with pytest.raises(Unreachable, match="synchronous_commit is off"):
            await store.record(an_entry(), connection=guest.connection)
        await guest.rollback()


async def test_anything_else_is_no_connection(store: PostgresStore) -> None:
    with pytest.raises(UsageError, match="a str is no connection"):
        await store.record(an_entry(), connection="postgresql://localhost/x")


async def test_a_store_on_sqlite_says_that_it_cannot() -> None:
    store = open_store("sqlite:///:memory:")

    with pytest.raises(UsageError, match="transaction of yours") as refusal:
        await store.record(an_entry(), connection=object())

    assert "PostgreSQL" in refusal.value.remedy
    await store.close()
