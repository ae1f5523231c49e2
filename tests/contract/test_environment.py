"""TH27: a store belongs to one environment, and whoever is of another one neither reads nor changes anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import asyncpg
import pytest

from redrive.dead_letter import Actor
from redrive.errors import ConfigurationError
from redrive.ledger import LedgerKey, LedgerQuery
from redrive.letter_query import LetterQuery
from redrive.stores import Store, open_store
from redrive.testing.letters import an_entry
from support.store_database import Database

ANN = Actor("ann", "it was named wrongly")


class Opener:
    """Opens the database as often as one likes; each is closed behind the test."""

    def __init__(self, database: Database, closing: AsyncExitStack) -> None:
        self._database = database
        self._closing = closing

    def __call__(self, environment: str) -> Store:
        store = open_store(self._database.url, ledger_key=LedgerKey(b"of these tests alone"))
        self._closing.push_async_callback(store.close)
        store.belong_to(environment)
        return store


@pytest.fixture
async def opened(database: Database) -> AsyncIterator[Opener]:
    async with AsyncExitStack() as closing:
        yield Opener(database, closing)


async def test_the_first_change_names_it_and_looking_does_not(opened: Opener) -> None:
    staging, production = opened("staging"), opened("production")

    await staging.find(LetterQuery())
    assert await staging.environment() == ""
    await production.record(an_entry())

    assert await production.environment() == "production"
    assert len(await production.find(LetterQuery())) == 1


async def test_another_environment_neither_reads_nor_changes_anything(opened: Opener) -> None:
    letter_id, _ = await opened("production").record(an_entry())
    staging = opened("staging")
    tries: list[Callable[[], Awaitable[object]]] = [
        lambda: staging.record(an_entry()),
        lambda: staging.get(letter_id),
        lambda: staging.claim([letter_id], owner="engine", lease=60.0),
        staging.signing_key,
        lambda: staging.runs(active=True),
        staging.has_accounts,
        lambda: staging.ledger(LedgerQuery()),
    ]
    for attempt in tries * 2:  # it is as wrong the second time
        with pytest.raises(ConfigurationError) as refused:
            await attempt()
        assert str(refused.value) == "this store belongs to environment 'production', the settings say 'staging'"
        assert "redrive db environment" in refused.value.remedy

    unchecked = opened("")
    assert len(await unchecked.find(LetterQuery())) == 1
    assert (await unchecked.claim([letter_id], owner="ann", lease=1.0))[0].fence == 1


async def test_of_two_who_come_first_at_the_same_time_one_is_refused(opened: Opener) -> None:
    stores = {name: opened(name) for name in ("production", "staging")}

    ended = await asyncio.gather(*(each.record(an_entry()) for each in stores.values()), return_exceptions=True)

    owner = await opened("").environment()
    refused = dict(zip(stores, ended, strict=True))
    assert not isinstance(refused.pop(owner), BaseException)
    assert [type(each) for each in refused.values()] == [ConfigurationError]
    assert len(await opened("").find(LetterQuery())) == 1


async def test_a_name_that_was_rolled_back_is_given_again(postgres_url: str) -> None:
    production = open_store(postgres_url)
    production.belong_to("production")
    await production.environment()
    raw = await asyncpg.connect(postgres_url)
    transaction = raw.transaction()
    await transaction.start()
    await production.record(an_entry(), connection=raw)
    await transaction.rollback()
    await raw.close()

    assert await production.environment() == ""
    await production.record(an_entry())
    assert await production.environment() == "production"
    await production.close()


async def test_it_is_renamed_and_the_ledger_tells(opened: Opener) -> None:
    await opened("prodction").record(an_entry())
    unchecked = opened("")

    assert await unchecked.rename_environment("production", by=ANN) == "prodction"
    assert await unchecked.rename_environment("production", by=ANN) == "production"  # nothing, and no row

    await opened("production").record(an_entry())
    found = await unchecked.ledger(LedgerQuery())
    rows = [(each.what, each.subject.kind, each.before, each.after) for each in found]
    assert rows == [("environment", "store", "prodction", "production")]
    assert await unchecked.rename_environment("", by=ANN) == "production"
    await opened("staging").record(an_entry())
    assert await unchecked.environment() == "staging"
