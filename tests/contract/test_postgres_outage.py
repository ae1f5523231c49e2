"""A PostgreSQL that is stopped, restarted, killed or cut off: Unreachable meanwhile, and fine after it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.util import await_only

from redrive.dead_letter import Recorded
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.testing.letters import an_entry
from redrive.testing.store_case import letter
from support.opened_postgres import opened
from support.patience import until
from support.postgres_server import PostgresServer, PrivatePostgres
from support.postgres_wire import Wire


async def test_after_a_restart_of_the_server_no_request_fails(own_postgres: PrivatePostgres) -> None:
    async with opened(own_postgres.new_database()) as store:
        await asyncio.gather(*(store.record(an_entry()) for _ in range(20)))

        own_postgres.restart()

        done = await asyncio.gather(*(store.record(an_entry()) for _ in range(20)), store.statistics())
        assert len(done) == 21
        assert (await store.statistics()).total == 40


async def test_while_the_server_is_away_the_store_is_unreachable_and_then_it_is_not(
    own_postgres: PrivatePostgres,
) -> None:
    async with opened(own_postgres.new_database()) as store:
        letter_id, _ = await store.record(an_entry("it"))
        own_postgres.stop()

        for attempt in (store.record(an_entry()), store.get(letter_id), store.signing_key()):
            with pytest.raises(Unreachable, match="cannot reach") as refusal:
                await attempt
            assert "store.url" in refusal.value.remedy
        own_postgres.start()

        assert (await letter(store, letter_id)).identity == "it"
        assert (await store.record(an_entry()))[1] is Recorded.NEW


async def test_a_store_opened_while_the_server_is_away_works_once_it_is_there(
    own_postgres: PrivatePostgres,
) -> None:
    url = own_postgres.new_database()
    own_postgres.stop()

    async with opened(url) as store:
        with pytest.raises(Unreachable):
            await store.record(an_entry())
        own_postgres.start()
        assert (await store.record(an_entry()))[1] is Recorded.NEW


async def test_what_was_recorded_survives_a_crash_of_the_server(own_postgres: PrivatePostgres) -> None:
    async with opened(own_postgres.new_database()) as store:
        await asyncio.gather(*(store.record(an_entry(f"{number}")) for number in range(50)))
        own_postgres.kill()
        own_postgres.start()

        assert sorted(int(each.identity) for each in await store.find(LetterQuery())) == list(range(50))
        await store.record(an_entry())


async def test_a_write_cut_off_by_the_server_is_unreachable_and_changes_nothing(
    own_postgres: PrivatePostgres,
) -> None:
    url = own_postgres.new_database()
    async with opened(url) as store:
        await store.record(an_entry())
        holder = await asyncpg.connect(url)
        await holder.execute("BEGIN; LOCK TABLE redrive.letters")
        writing = asyncio.create_task(store.record(an_entry("cut")))
        await until(own_postgres.is_somebody_waiting)

        own_postgres.stop()

        with pytest.raises(Unreachable):
            await writing
        holder.terminate()
        own_postgres.start()
        assert (await store.record(an_entry("cut")))[1] is Recorded.NEW
        assert (await store.statistics()).total == 2


async def test_connections_that_the_server_ended_are_not_used_again(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    meeting = asyncio.Barrier(5)

    def by_driver(connection: Connection) -> int:
        driver = connection.connection.driver_connection
        return int(await_only(driver.fetchval("SELECT 42")))  # type: ignore[union-attr]  # asyncpg's

    async with opened(postgres_store_url, pool_size=5) as store:
        await asyncio.gather(*(store._read(lambda _: await_only(meeting.wait())) for _ in range(5)))
        ending = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'redrive'"
        assert len(postgres.fetch(ending)) == 5

        assert await store._read(by_driver) == 42


async def test_a_connection_that_breaks_before_anything_was_committed_costs_the_caller_nothing(
    postgres_store_url: str,
) -> None:
    runs: list[int] = []

    def unit(connection: Connection) -> int:
        runs.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        if len(runs) == 1:
            connection.connection.driver_connection.terminate()  # type: ignore[union-attr]  # asyncpg's
        return int(connection.execute(text("SELECT 42")).scalar_one())

    async with opened(postgres_store_url) as store:
        assert await store._write(unit) == 42
        assert len(set(runs)) == 2


class SilentWire(Wire):
    """It can fall silent, as a network does, for the connections there are."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._cut = asyncio.Event()

    def fall_silent(self) -> None:
        self._cut.set()
        self._cut = asyncio.Event()

    async def _pass(
        self,
        ours: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        servers: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        (reader, writer), (there, back) = ours, servers
        await asyncio.gather(self._pass_on(reader, back, self._cut), self._pass_on(there, writer, self._cut))

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if cut.is_set():
                    return
                writer.write(data)
            writer.close()


async def test_a_network_that_falls_silent_is_unreachable_in_time_and_then_works_again(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.stores.postgres_engine._GRACE", 0.0)
    async with SilentWire(postgres_store_url) as wire, opened(wire.url, pool_size=1, statement_timeout=2) as store:
        await store.record(an_entry())
        wire.fall_silent()

        with pytest.raises(Unreachable, match="did not answer in time"):
            await store.record(an_entry("it"))

        assert (await store.record(an_entry("it")))[1] is Recorded.NEW
