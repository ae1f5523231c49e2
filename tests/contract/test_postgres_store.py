"""The PostgreSQL store keeps the contract: among processes, beside other tables, on a server that is restarted."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.util import await_only

from redrive.clock import Clock
from redrive.dead_letter import Recorded, Status, Transition
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.statistics import FailureRate
from redrive.stores import DeadLetterStore
from redrive.stores.postgres import PostgresStore
from redrive.stores.sealing import Encryption
from redrive.stores.upgrade import check
from redrive.testing import ManualClock
from redrive.testing.letters import NOON, a_message, an_entry
from redrive.testing.store_case import ANN, letter, place, returned, sent
from redrive.testing.store_contract import StoreContract
from support.opened_postgres import opened
from support.patience import until
from support.postgres_server import PostgresServer
from support.sealing import ENCRYPTION


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def location(self, postgres_store_url: str) -> str:
        return postgres_store_url

    def open(self, location: str, clock: Clock) -> DeadLetterStore:
        return PostgresStore(location, clock=clock)


RECORD_MANY = """
import asyncio, sys
from datetime import timedelta
from redrive.statistics import HandlerTally
from redrive.stores import open_store
from redrive.testing.letters import NOON, an_entry

async def main(url, first, last):
    store = open_store(url)
    at = NOON + timedelta(seconds=int(first))
    for start in range(int(first), int(last), 10):
        await asyncio.gather(*(store.record(an_entry(f"{number}", at=at)) for number in range(start, start + 10)))
        await store.tally([HandlerTally("charge", "orders", 10, 1)])
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def run(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """A process of its own, which may die in the middle."""
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


async def test_processes_writing_at_once_lose_nothing_and_count_exactly(postgres_store_url: str) -> None:
    url = postgres_store_url
    writing = [run(RECORD_MANY, url, first, first + 200) for first in (0, 100, 200)]

    assert [ended(process) for process in writing] == [(0, "", "")] * 3

    async with opened(url) as store:
        letters = await store.find(LetterQuery(limit=500))
        assert sorted(int(each.identity) for each in letters) == list(range(400))
        assert sorted(each.deliveries for each in letters) == [1] * 200 + [2] * 200
        assert [(group.total, group.pending) for group in await store.groups()] == [(400, 400)]
        assert list((await store.statistics()).failure_rates) == [FailureRate("charge", 600, 60)]
    assert check(url).healthy


RECORD_ONE = """
import asyncio, sys
from redrive.stores import open_store
from redrive.testing.letters import a_message, an_entry

async def main(url):
    store = open_store(url)
    print(*await store.record(an_entry("it", message=a_message(id="it"), attempts=2)))
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("point", "recorded"), [("store.before_commit", Recorded.NEW), ("store.after_commit", Recorded.AGAIN)]
)
async def test_a_write_repeated_after_a_kill_is_there_once(
    postgres_store_url: str, point: str, recorded: Recorded
) -> None:
    assert ended(run(RECORD_ONE, postgres_store_url, REDRIVE_FAULTS=f"{point}=kill9"))[0] == -9

    code, out, err = ended(run(RECORD_ONE, postgres_store_url))

    assert (code, err) == (0, "")
    letter_id, done = out.split()
    assert done == recorded
    async with opened(postgres_store_url) as store:
        found = await letter(store, letter_id)
        assert (found.deliveries, len(found.failures)) == (1, 2)
    assert check(postgres_store_url).healthy


# Others are in the way


async def test_of_two_writers_that_wait_for_each_other_both_get_their_turn(postgres_store_url: str) -> None:
    async with opened(postgres_store_url) as store:
        ids = [(await store.record(an_entry()))[0] for _ in range(2)]
        meeting, tries = asyncio.Barrier(2), [0, 0]

        def crossing(number: int) -> Callable[[Connection], int]:
            def unit(connection: Connection) -> int:
                tries[number] += 1
                own, other = ids if number else reversed(ids)
                rename = text("UPDATE letters SET how = :how WHERE id = :id")
                connection.execute(rename, {"how": str(number), "id": own})
                if tries[number] == 1:
                    await_only(meeting.wait())
                return connection.execute(rename, {"how": str(number), "id": other}).rowcount

            return unit

        assert await asyncio.gather(*(store._write(crossing(number)) for number in range(2))) == [1, 1]
        assert sorted(tries) == [1, 2]


async def test_a_lock_held_for_too_long_is_unreachable_after_a_few_tries(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.stores.postgres_database._PAUSE", 0)
    async with opened(postgres_store_url, lock_timeout=0.01) as store:
        placed = await place(store, Status.PENDING)
        holder = await asyncpg.connect(postgres_store_url)
        await holder.execute("BEGIN; LOCK TABLE redrive.letters")

        with pytest.raises(Unreachable, match="lock timeout") as refusal:
            await store.change([placed.id], Transition.DISCARD, by=ANN)

        assert "store.lock_timeout" in refusal.value.remedy
        await holder.close()
        assert await store.change([placed.id], Transition.DISCARD, by=ANN) == {}


async def test_when_all_connections_are_in_use_the_caller_is_told_so(postgres_store_url: str) -> None:
    go_on = asyncio.Event()
    async with opened(postgres_store_url, pool_size=1, connect_timeout=1) as store:
        await store.statistics()
        holding = asyncio.create_task(store._read(lambda _: await_only(go_on.wait())))
        await asyncio.sleep(0)

        with pytest.raises(Unreachable, match="in use") as refusal:
            await store.statistics()

        assert "store.pool_size" in refusal.value.remedy
        go_on.set()
        assert await holding
        await store.statistics()


@pytest.mark.parametrize("encryption", [None, ENCRYPTION], ids=["plain", "sealed"])
async def test_a_caller_that_stops_waiting_leaves_nothing_behind(
    postgres: PostgresServer, postgres_store_url: str, encryption: Encryption | None
) -> None:
    async with opened(postgres_store_url, pool_size=1, encryption=encryption) as store:
        await store.record(an_entry())
        holder = await asyncpg.connect(postgres_store_url)
        await holder.execute("BEGIN; LOCK TABLE redrive.letters")
        writing = asyncio.create_task(store.change(["unknown"], Transition.DISCARD, by=ANN))
        await until(postgres.is_somebody_waiting)

        writing.cancel()

        with pytest.raises(asyncio.CancelledError):
            await writing
        await holder.close()
        assert (await store.record(an_entry()))[1] is Recorded.NEW


async def test_closing_waits_for_what_is_under_way(postgres_store_url: str) -> None:
    go_on, begun = asyncio.Event(), asyncio.Event()

    def slow(connection: Connection) -> int:
        begun.set()
        await_only(go_on.wait())
        return int(connection.execute(text("SELECT 42")).scalar_one())

    store = PostgresStore(postgres_store_url)
    reading = asyncio.create_task(store._read(slow))
    await begun.wait()
    closed = asyncio.create_task(store.close())
    for _ in range(100):
        await asyncio.sleep(0)
    done_too_early = closed.done()
    go_on.set()

    assert await reading == 42
    await closed
    assert not done_too_early


# Shared with others


async def test_leases_are_measured_by_the_servers_clock(postgres_store_url: str) -> None:
    async with opened(postgres_store_url) as one, opened(postgres_store_url) as other:
        other._clock = ManualClock(datetime.now(UTC) + timedelta(hours=1))
        letter_id, _ = await one.record(an_entry())

        [claim] = await one.claim([letter_id], owner="one", lease=60)

        assert await other.claim([letter_id], owner="other", lease=60) == []
        assert await one.settle(claim, Transition.UNCLAIM, by=ANN)
        assert await other.claim([letter_id], owner="other", lease=0)
        assert await one.claim([letter_id], owner="one", lease=60)


@pytest.mark.parametrize("schema", ['My "odd" schema.x', "ünï", "select", "public"])
async def test_the_schema_may_have_any_name(postgres_url: str, schema: str) -> None:
    async with opened(postgres_url, schema=schema) as store:
        for status in Status:
            await place(store, status)
        assert (await store.statistics()).total == len(Status)
        assert sum(group.total for group in await store.groups()) == len(Status)

    assert check(postgres_url, schema=schema).problems == ()


async def test_two_schemas_are_two_stores(postgres_url: str) -> None:
    async with opened(postgres_url, schema="one") as one, opened(postgres_url, schema="other") as other:
        letter_id, _ = await one.record(an_entry("same"))

        assert await other.get(letter_id) is None
        assert (await other.record(an_entry("same")))[1] is Recorded.NEW
        assert await one.signing_key() != await other.signing_key()


THEIRS = """
CREATE TABLE public.letters (id integer, note text);
INSERT INTO public.letters VALUES (1, 'theirs');
CREATE TABLE public.groups (id integer);
CREATE TABLE public.alembic_version (version_num text);
INSERT INTO public.alembic_version VALUES ('theirs');
CREATE SCHEMA shop CREATE TABLE redrive_version (version_num text);
"""
OBJECTS = """
SELECT nspname, relname, relfilenode FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname NOT IN ('redrive', 'pg_toast', 'pg_catalog') AND relkind IN ('r', 'i', 'S', 't') ORDER BY 1, 2
"""


async def test_the_users_own_tables_are_never_touched(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.run(THEIRS, url=postgres_url)
    before = postgres.fetch(OBJECTS, url=postgres_url)

    async with opened(postgres_url) as store:
        placed = await place(store, Status.RESOLVED)
        await store.purge([placed.id], by=ANN)
        await place(store, Status.QUARANTINED)
        assert (await store.statistics()).total == 1

    assert postgres.fetch(OBJECTS, url=postgres_url) == before
    assert postgres.fetch("SELECT * FROM public.letters", url=postgres_url) == [(1, "theirs")]
    assert postgres.fetch("SELECT * FROM public.alembic_version", url=postgres_url) == [("theirs",)]
    assert check(postgres_url).healthy


async def test_a_schema_with_another_applications_tables_is_refused_and_left_as_it_is(
    postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.run("CREATE SCHEMA redrive CREATE TABLE letters (id integer)", url=postgres_url)

    async with opened(postgres_url) as store:
        for attempt in (store.record(an_entry()), store.groups()):
            with pytest.raises(Unreachable, match="another application's table 'letters'") as refusal:
                await attempt
            assert "store.schema" in refusal.value.remedy

    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'redrive'"
    assert postgres.fetch(tables, url=postgres_url) == [("letters",)]


async def test_nobody_elses_search_path_or_settings_change(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    shown = "SELECT name, setting FROM pg_settings WHERE name IN ('search_path', 'statement_timeout', 'jit')"
    database = urlsplit(postgres_store_url).path.removeprefix("/")
    before = postgres.fetch(shown, url=postgres_store_url)

    async with opened(postgres_store_url) as store:
        await store.record(an_entry())

    assert postgres.fetch(shown, url=postgres_store_url) == before
    roles = "SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON oid = setdatabase WHERE datname = $1"
    assert postgres.fetch(roles, database) == [(0,)]


# Rows that change while somebody waits for them


@asynccontextmanager
async def held(url: str, letter_id: str) -> AsyncIterator[asyncpg.Connection]:
    """The letter's row is locked by somebody until the end."""
    async with closing(await asyncpg.connect(url)) as holder:
        await holder.execute("BEGIN")
        await holder.execute("SELECT FROM redrive.letters WHERE id = $1 FOR UPDATE", letter_id)
        yield holder


@asynccontextmanager
async def closing(connection: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    try:
        yield connection
    finally:
        await connection.close(timeout=5)


async def waiting_for(server: PostgresServer, number: int) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await until(lambda: server.fetch(query) == [(number,)])


async def test_of_two_copies_of_a_redrive_that_come_back_at_once_one_is_the_return(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    url = postgres_store_url
    async with opened(url) as one, opened(url) as other:
        letter_id, _ = await one.record(an_entry())
        claim = await sent(one, letter_id)
        await other.statistics()
        async with held(url, letter_id):
            both = [asyncio.create_task(store.record(returned(claim))) for store in (one, other)]
            await waiting_for(postgres, 2)

        done = sorted(what for _, what in await asyncio.gather(*both))

        assert done == sorted([Recorded.CAME_BACK, Recorded.AGAIN])
        found = await letter(one, letter_id)
        assert (found.status, found.generation, found.generations) == (Status.PENDING, 2, (1, 2))
    assert check(url).healthy


async def test_a_letter_edited_while_it_is_claimed_is_claimed_as_it_is_now(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    url = postgres_store_url
    async with opened(url) as one, opened(url) as other:
        letter_id, _ = await one.record(an_entry())
        await other.statistics()
        async with held(url, letter_id):
            edit = asyncio.create_task(one.revise(letter_id, a_message(body=b"new"), base=0, by=ANN))
            await waiting_for(postgres, 1)
            claim = asyncio.create_task(other.claim([letter_id], owner="other", lease=60))
            await waiting_for(postgres, 2)

        assert await edit == 1
        [claimed] = await claim
        assert (claimed.revision, claimed.message.body) == (1, b"new")


async def test_a_letter_that_is_removed_while_its_message_is_recorded_again_is_a_new_one(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    async with opened(postgres_store_url) as store:
        letter_id, _ = await store.record(an_entry("it"))
        async with held(postgres_store_url, letter_id) as holder:
            later = an_entry("it", attempts=2, at=NOON + timedelta(hours=1))
            again = asyncio.create_task(store.record(later))
            await waiting_for(postgres, 1)
            await holder.execute("DELETE FROM redrive.letters; COMMIT")

        new_id, recorded = await again

        assert (recorded, new_id != letter_id) == (Recorded.NEW, True)


async def test_of_many_who_record_one_message_one_has_a_new_letter(postgres_store_url: str) -> None:
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(opened(postgres_store_url)) for _ in range(8)]
        await asyncio.gather(*(store.statistics() for store in stores))

        done = await asyncio.gather(*(store.record(an_entry("it", at=NOON)) for store in stores))

        assert len({letter_id for letter_id, _ in done}) == 1
        assert sorted(what for _, what in done) == sorted([Recorded.NEW] + [Recorded.AGAIN] * 7)
        assert [group.total for group in await stores[0].groups()] == [1]
