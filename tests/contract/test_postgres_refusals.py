"""What a PostgreSQL refuses, or is refused for: our error with its remedy, and never a password or a message."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from redrive.dead_letter import Recorded
from redrive.errors import ConfigurationError, RedriveError, Unreachable
from redrive.stores import DeadLetterStore, open_store
from redrive.stores.upgrade import check, require, upgrade
from redrive.testing.letters import a_message, an_entry
from support import postgres_server
from support.opened_postgres import opened
from support.postgres_server import PostgresServer, PrivatePostgres

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary


def with_parts(url: str, *, user: str = "redrive", port: int | None = None, database: str | None = None) -> str:
    parts = urlsplit(url)
    host = f"{user}:{PASSWORD}@{parts.hostname}:{port or parts.port}"
    return parts._replace(netloc=host, path=f"/{database}" if database else parts.path).geturl()


def told(error: RedriveError) -> str:
    return "".join(traceback.format_exception(error)) + error.remedy


async def refused(store: DeadLetterStore, match: str) -> Unreachable:
    for attempt in (store.statistics(), store.record(an_entry())):
        with pytest.raises(Unreachable, match=match) as refusal:
            await attempt
        assert refusal.value.remedy
        assert PASSWORD not in told(refusal.value)
    return refusal.value


@pytest.fixture
def role(postgres: PostgresServer) -> Iterator[str]:
    """One that may log in and nothing else."""
    postgres.execute("CREATE ROLE redrive_plain LOGIN")
    yield "redrive_plain"
    postgres.execute("DROP ROLE redrive_plain")


# Where it cannot be reached


async def test_nobody_listening_is_unreachable(unused_tcp_port: int, postgres_url: str) -> None:
    async with opened(with_parts(postgres_url, port=unused_tcp_port)) as store:
        refusal = await refused(store, "cannot reach postgresql://redrive:\\*\\*\\*@")
        assert "store.url names its host and port" in refusal.remedy


async def test_somebody_who_never_answers_is_unreachable(postgres_url: str) -> None:
    met: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: met.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]

    async with opened(with_parts(postgres_url, port=port), connect_timeout=0.05) as store:
        await refused(store, "did not answer in time")

    for writer in met:
        writer.close()
    silent.close()
    await silent.wait_closed()


async def test_a_missing_database_is_named(postgres_url: str) -> None:
    async with opened(with_parts(postgres_url, database="nowhere")) as store:
        refusal = await refused(store, 'database "nowhere" does not exist')
        assert "CREATE DATABASE" in refusal.remedy


async def test_a_wrong_password_is_refused_until_it_is_right_and_never_told(own_postgres: PrivatePostgres) -> None:
    own_postgres.execute(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}-other'")
    own_postgres.ask_for_passwords("guarded")

    async with opened(with_parts(own_postgres.new_database(), user="guarded")) as store:
        refusal = await refused(store, "password authentication failed")
        assert "password in store.url" in refusal.remedy

        own_postgres.execute(f"ALTER ROLE guarded PASSWORD '{PASSWORD}'")
        assert (await store.record(an_entry()))[1] is Recorded.NEW


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql://host",
        "postgresql://host/",
        f"postgresql://u:{PASSWORD}@[::1/x",
        f"postgresql://u:{PASSWORD}@host/x?connect_timeout=soon",
        f"postgresql://u:{PASSWORD}@host/x?nonsense",
    ],
)
def test_a_url_that_names_no_database_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        open_store(url)

    assert refusal.value.remedy
    assert PASSWORD not in told(refusal.value)


async def test_an_option_that_is_no_setting_is_unreachable(postgres_url: str) -> None:
    async with opened(f"{postgres_url}?colour=red") as store:
        refusal = await refused(store, "colour")
        assert "remove it" in refusal.remedy


async def test_options_of_libpq_are_understood(postgres: PostgresServer, postgres_url: str) -> None:
    url = f"{postgres_url}?sslmode=disable&application_name=shop%20worker&connect_timeout=7"
    async with opened(url.replace("postgresql:", "postgres:")) as store:
        await store.record(an_entry())
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shop worker'"
        assert postgres.fetch(asked) == [(1,)]


@pytest.mark.parametrize("schema", ["", "pg_mine", "x" * 64, "a\x00b", "a:b", "a$$b"])
def test_a_name_that_no_schema_can_have_is_refused_at_once(schema: str) -> None:
    with pytest.raises(ConfigurationError, match="schema") as refusal:
        open_store("postgresql://host/x", schema=schema)

    assert "store.schema" in refusal.value.remedy


def test_without_its_package_the_remedy_is_the_extra() -> None:
    code = "import sys; sys.modules['asyncpg'] = None\nfrom redrive.cli.main import main; main()"
    environment = {**os.environ, "REDRIVE_STORE__URL": f"postgresql://u:{PASSWORD}@localhost/x"}
    for command in (["db", "check"], ["stats"]):
        run = subprocess.run(
            [sys.executable, "-c", code, *command], env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 2
        assert "pip install 'redrive[postgres]'" in run.stderr
        assert PASSWORD not in run.stdout + run.stderr


# What would not keep the promises


async def test_synchronous_commit_off_is_refused_until_it_is_on(
    postgres: PostgresServer, postgres_url: str
) -> None:
    database = urlsplit(postgres_url).path.removeprefix("/")
    postgres.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")

    async with opened(postgres_url) as store:
        refusal = await refused(store, "synchronous_commit is off")
        assert "ALTER ROLE ... SET synchronous_commit = on" in refusal.remedy
        with pytest.raises(Unreachable, match="synchronous_commit"):
            upgrade(postgres_url)
        assert postgres.fetch("SELECT 1 FROM pg_namespace WHERE nspname = 'redrive'", url=postgres_url) == []

        postgres.execute(f"ALTER DATABASE {database} SET synchronous_commit = local")
        assert (await store.record(an_entry()))[1] is Recorded.NEW


async def test_synchronous_commit_off_is_noticed_by_every_new_connection(
    postgres: PostgresServer, postgres_url: str
) -> None:
    database = urlsplit(postgres_url).path.removeprefix("/")
    async with opened(postgres_url) as store:
        await store.record(an_entry())
        postgres.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
        ending = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1"
        postgres.fetch(ending, database)

        await refused(store, "synchronous_commit is off")

        postgres.execute(f"ALTER DATABASE {database} RESET synchronous_commit")
        await store.record(an_entry())


async def test_a_database_that_cannot_hold_every_text_is_refused(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE redrive_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")

    async with opened(postgres.url("redrive_ascii")) as store:
        refusal = await refused(store, "encoded in SQL_ASCII")
        assert "UTF8" in refusal.remedy

    postgres.execute("DROP DATABASE redrive_ascii WITH (FORCE)")


async def test_a_server_that_does_not_sync_is_a_problem_for_the_check() -> None:
    careless = postgres_server.own({"fsync": "off"})
    try:
        url = careless.new_database()
        upgrade(url)

        [risk] = check(url).risks

        assert "fsync = off" in risk
    finally:
        careless.clean_up()


# What the role may not


async def test_a_role_that_may_not_make_the_schema_is_told_who_may(
    postgres: PostgresServer, postgres_url: str, role: str
) -> None:
    async with opened(with_parts(postgres_url, user=role)) as store:
        refusal = await refused(store, "permission denied")
        assert "redrive db upgrade" in refusal.remedy

        upgrade(postgres_url)
        await refused(store, "permission denied")
        postgres.run(
            f"""
            GRANT USAGE ON SCHEMA redrive TO {role};
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA redrive TO {role};
            GRANT USAGE ON ALL SEQUENCES IN SCHEMA redrive TO {role};
            """,
            url=postgres_url,
        )
        assert (await store.record(an_entry()))[1] is Recorded.NEW
    postgres.run(f"DROP OWNED BY {role}", url=postgres_url)


async def test_too_many_connections_are_told(postgres: PostgresServer, postgres_url: str, role: str) -> None:
    postgres.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")

    async with opened(with_parts(postgres_url, user=role)) as store:
        refusal = await refused(store, "too many connections")
        assert "store.pool_size" in refusal.remedy


async def test_a_database_that_only_reads_may_be_looked_at(postgres: PostgresServer, postgres_url: str) -> None:
    upgrade(postgres_url)
    database = urlsplit(postgres_url).path.removeprefix("/")
    postgres.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")

    async with opened(postgres_url) as store:
        assert (await store.statistics()).total == 0
        with pytest.raises(Unreachable, match="read-only") as refusal:
            await store.record(an_entry())

    assert "primary" in refusal.value.remedy


# What takes too long


async def test_a_statement_has_a_deadline(postgres_store_url: str) -> None:
    async with opened(postgres_store_url, statement_timeout=1) as store:
        with pytest.raises(Unreachable, match="statement timeout") as refusal:
            await store._read(lambda connection: connection.execute(text("SELECT pg_sleep(60)")))

        assert "store.statement_timeout" in refusal.value.remedy
        await store.statistics()


async def test_a_server_that_falls_silent_is_given_up_and_its_connection_too(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own deadline does not reach us then; the client's does."""
    monkeypatch.setattr("redrive.stores.postgres_engine._GRACE", -8.0)
    async with opened(postgres_store_url, statement_timeout=10, pool_size=1) as store:
        with pytest.raises(Unreachable, match="did not answer in time"):
            await store._read(lambda connection: connection.execute(text("SELECT pg_sleep(60)")))

        monkeypatch.setattr("redrive.stores.postgres_engine._GRACE", 5.0)
        assert (await store.record(an_entry()))[1] is Recorded.NEW


# What is never told


async def test_an_error_of_the_database_does_not_quote_the_message(
    postgres: PostgresServer, postgres_url: str
) -> None:
    canary = os.urandom(8).hex()
    async with opened(postgres_url) as store:
        await store.record(an_entry())
        postgres.run("CREATE UNIQUE INDEX one_letter_only ON redrive.letters (source)", url=postgres_url)

        for _ in range(2):
            with pytest.raises(RedriveError, match="one_letter_only") as refusal:
                await asyncio.gather(
                    *(store.record(an_entry(message=a_message(id=canary, source=canary))) for _ in range(2))
                )
            assert canary not in told(refusal.value)


def test_looking_makes_nothing_and_says_what_to_do(postgres: PostgresServer, postgres_url: str) -> None:
    for look in (check, require):
        with pytest.raises(Unreachable, match='there is no schema "redrive"') as refusal:
            look(postgres_url)
        assert "redrive db upgrade" in refusal.value.remedy

    assert postgres.fetch("SELECT 1 FROM pg_namespace WHERE nspname = 'redrive'", url=postgres_url) == []
