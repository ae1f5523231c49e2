"""The store's tables: made, upgraded, checked; by several processes at once, and by processes that are killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

from redrive.dead_letter import Recorded, Status, Transition
from redrive.errors import CorruptFile, Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import DeadLetterStore, open_store, schema
from redrive.stores.postgres_database import PostgresDatabase
from redrive.stores.postgres_schema import lock_of
from redrive.stores.sqlite_file import SqliteFile
from redrive.stores.upgrade import MIGRATIONS, check, upgrade
from redrive.testing.letters import an_entry
from redrive.testing.store_case import ANN, letter, place
from support.patience import until
from support.postgres_server import PostgresServer

NEXT = "9001"
"""The version of a Redrive to come."""


class FileDatabase:
    def __init__(self, file: Path) -> None:
        self.url = f"sqlite:///{file}"
        self._file = file

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._file)) as connection, connection:
            return connection.execute(statement).fetchall()

    def tables(self) -> set[str]:
        return {name for (name,) in self.fetch("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    def opened(self) -> SqliteFile:
        return SqliteFile(self.url)


class ServerDatabase:
    def __init__(self, server: PostgresServer, url: str) -> None:
        self.url = url
        self._server = server

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        return self._server.fetch(statement, url=f"{self.url}?search_path=redrive")

    def tables(self) -> set[str]:
        return {name for (name,) in self.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'redrive'")}

    def opened(self) -> PostgresDatabase:
        return PostgresDatabase(self.url)


Database = FileDatabase | ServerDatabase


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "letters.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, file: Path) -> Database:
    if request.param == "sqlite":
        return FileDatabase(file)
    return ServerDatabase(request.getfixturevalue("postgres"), request.getfixturevalue("postgres_url"))


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[DeadLetterStore]:
    store = open_store(database.url)
    try:
        yield store
    finally:
        await store.close()


async def placed_in_every_status(database: Database) -> None:
    async with opened(database) as store:
        for status in Status:
            await place(store, status)


# The migrations and the tables of the code are one


def test_the_newest_migration_is_the_one_the_tables_are_made_for() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


def test_migrations_and_tables_agree(database: Database) -> None:
    upgrade(database.url)

    assert database.opened().look(_differences) == []


def _differences(connection: Connection) -> list[Any]:
    is_file = connection.dialect.name == "sqlite"
    options = {
        "version_table": schema.VERSION_TABLE,
        "include_object": _is_for_sqlite if is_file else _is_for_postgresql,
        "compare_type": is_file,  # a collation is a difference to Alembic; the next test but one compares them too
    }
    found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), schema.metadata)
    return found


def _is_for_sqlite(_thing: object, name: str, *_: object) -> bool:
    """The tables of its full text are its own, and PostgreSQL's GIN indexes are not for it."""
    return not name.startswith(("search_words", "ix_search_parts_words", "ix_search_parts_facts"))


def _is_for_postgresql(_thing: object, name: str | None, *_: object) -> bool:
    """Alembic does not ask for which database a foreign key is meant; the view's number is PostgreSQL's own."""
    foreign_keys = {"fk_failures_letter_id_letters", "fk_revisions_letter_id_letters"}
    return name not in {*foreign_keys, "event_number", "ix_letters_event_number"}


def test_migrations_make_the_very_tables_that_the_metadata_makes(file: Path, tmp_path: Path) -> None:
    upgrade(f"sqlite:///{file}")
    migrated, made = create_engine(f"sqlite:///{file}"), create_engine(f"sqlite:///{tmp_path}/made.db")
    schema.metadata.create_all(made)

    with migrated.connect() as one, made.connect() as other:
        for table in schema.metadata.sorted_tables:
            assert _described(one, table.name) == _described(other, table.name), table.name
    migrated.dispose()
    made.dispose()


def _described(connection: Connection, table: str) -> dict[str, Any]:
    """Columns, keys, references and indexes, as SQLite itself sees them."""
    described: dict[str, Any] = {
        pragma: sorted(map(tuple, connection.exec_driver_sql(f"PRAGMA {pragma}({table})")))
        for pragma in ("table_info", "foreign_key_list")
    }
    for row in connection.exec_driver_sql(f"PRAGMA index_list({table})").all():
        columns = connection.exec_driver_sql(f"PRAGMA index_info({row.name})")
        described[row.name] = (row.unique, [tuple(column) for column in columns])
    return described


# What is text in a migration, SQLAlchemy calls VARCHAR when it makes it over asyncpg: the same to PostgreSQL.
COLUMNS = """
SELECT table_name, column_name, replace(data_type, 'character varying', 'text'), collation_name, is_nullable
FROM information_schema.columns
WHERE table_schema = $1 AND table_name <> 'redrive_version' AND column_name <> 'event_number' ORDER BY 1, 2
"""
INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = $1 AND tablename <> 'redrive_version' AND indexname <> 'ix_letters_event_number' ORDER BY 1
"""
CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(pg_constraint.oid) FROM pg_constraint
JOIN pg_namespace ON pg_namespace.oid = connamespace WHERE nspname = $1 AND conname NOT LIKE 'redrive_version%'
ORDER BY 1
"""


async def test_migrations_make_the_very_tables_that_the_metadata_makes_on_postgresql(
    postgres: PostgresServer, postgres_url: str
) -> None:
    upgrade(postgres_url)
    database = PostgresDatabase(postgres_url, schema="made")
    database.upgrade()  # for its schema; its tables make room for those of the metadata
    await database.write(schema.metadata.drop_all)
    await database.write(schema.metadata.create_all)
    await database.close()

    for query in (COLUMNS, INDEXES, CONSTRAINTS):
        migrated, made = (
            [
                tuple(str(each).replace(f"{name}.", "") for each in row)
                for row in postgres.fetch(query, name, url=postgres_url)
            ]
            for name in ("redrive", "made")
        )
        assert migrated == made


def test_upgrading_twice_is_upgrading_once(database: Database) -> None:
    assert upgrade(database.url) == schema.HEAD
    tables = database.tables()

    assert upgrade(database.url) == schema.HEAD

    assert database.tables() == tables
    assert check(database.url).healthy


# Several at once, and killed ones


OPEN = """
import asyncio, sys
from redrive.stores import open_store, upgrade
from redrive.testing.letters import an_entry

async def main(url):
    store = open_store(url)
    print("ready", flush=True)
    sys.stdin.readline()
    await store.record(an_entry())
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def _opened_at_once(url: str, number: int) -> list[tuple[str, int]]:
    """What each process said and how it ended."""
    command = [sys.executable, "-W", "error", "-c", OPEN, url]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(number)]  # type: ignore[call-overload]  # three pipes
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [(process.communicate(timeout=60)[1], process.returncode) for process in processes]


async def test_processes_that_open_a_new_store_at_once_all_succeed(database: Database) -> None:
    assert _opened_at_once(database.url, 4) == [("", 0)] * 4

    assert check(database.url).healthy
    async with opened(database) as store:
        assert (await store.statistics()).total == 4


async def test_a_process_waits_for_another_one_that_upgrades(postgres: PostgresServer, postgres_url: str) -> None:
    other = await asyncpg.connect(postgres_url)
    await other.execute("SELECT pg_advisory_lock($1)", lock_of("redrive"))
    database = ServerDatabase(postgres, postgres_url)
    async with opened(database) as store:
        recording = asyncio.create_task(store.record(an_entry()))
        await until(lambda: postgres.fetch("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))
        assert database.tables() == set()

        await other.close()

        assert (await recording)[1] is Recorded.NEW


UPGRADE = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import Engine, event
from redrive.stores import schema_version, upgrade

left = int(sys.argv[2])

@event.listens_for(Engine, "after_cursor_execute")
def count(connection, cursor, statement, *_):
    global left
    left -= statement.strip().startswith(("CREATE", "INSERT", "ALTER", "UPDATE"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

if len(sys.argv) > 3:
    upgrade.MIGRATIONS = Path(sys.argv[3])
    upgrade.HEAD = schema_version.HEAD = sys.argv[4]
upgrade.upgrade(sys.argv[1])
"""


def upgraded(url: str, *newer: object, killed_after: int = -1, faults: str = "") -> int:
    """By a process of its own, maybe one of another version, maybe killed after so many statements."""
    command = [sys.executable, "-W", "error", "-c", UPGRADE, url, str(killed_after), *map(str, newer)]
    return subprocess.run(command, check=False, env={**os.environ, "REDRIVE_FAULTS": faults}).returncode


@pytest.mark.parametrize("statements", [1, 2, 7, 14, 30, 60])
def test_an_upgrade_that_is_killed_has_done_nothing_and_the_next_one_completes_it(
    database: Database, statements: int
) -> None:
    assert upgraded(database.url, killed_after=statements) == -9
    assert database.tables() == set()

    assert upgrade(database.url) == schema.HEAD

    assert check(database.url).healthy


@pytest.mark.parametrize(
    ("point", "made"),
    [("migrate.before_step", 0), ("migrate.before_commit", 0), ("migrate.after_commit", 1)],
)
def test_killed_at_a_failpoint_of_migrations_all_of_it_is_done_or_nothing(
    database: Database, point: str, made: int
) -> None:
    assert upgraded(database.url, faults=f"{point}=kill9") == -9
    assert len(database.tables() & {"letters"}) == made

    assert upgraded(database.url) == 0

    assert check(database.url).healthy


# Another version


ADDS = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9001", "{head}"

def upgrade():
    op.add_column("letters", sa.Column("colour", sa.Text(), nullable=True))
    op.create_table("paints", sa.Column("id", sa.Integer(), primary_key=True))
    op.execute("UPDATE letters SET colour = 'red'")
"""
BREAKS = """
from alembic import op

revision, down_revision = "9001", "{head}"

def upgrade():
    op.alter_column("letters", "queue", new_column_name="lane")
    op.execute("UPDATE redrive_compatibility SET oldest = '9001'")
"""


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of a Redrive that is one version further, and has only added something."""
    return _newer(tmp_path, ADDS)


@pytest.fixture
def breaking(tmp_path: Path) -> Path:
    return _newer(tmp_path, BREAKS)


def _newer(folder: Path, migration: str) -> Path:
    copy = folder / "migrations"
    shutil.copytree(MIGRATIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "versions" / f"{NEXT}_paint.py").write_text(migration.replace("{head}", schema.HEAD))
    return copy


@pytest.mark.parametrize("statements", [1, 2, 3, 4])
async def test_letters_survive_an_upgrade_that_is_killed_and_then_completed(
    database: Database, newer: Path, statements: int
) -> None:
    async with opened(database) as store:
        placed = await place(store, Status.REDRIVEN)
        before = await letter(store, placed.id)

    assert upgraded(database.url, newer, NEXT, killed_after=statements) == -9
    assert check(database.url).current == schema.HEAD
    async with opened(database) as store:
        assert await letter(store, placed.id) == before

    assert upgraded(database.url, newer, NEXT) == 0
    assert database.fetch("SELECT colour FROM letters") == [("red",)]
    assert database.fetch("SELECT version_num FROM redrive_version") == [(NEXT,)]


async def test_an_older_redrive_works_on_where_a_newer_one_has_only_added_something(
    database: Database, newer: Path
) -> None:
    async with opened(database) as running:
        placed = await place(running, Status.PENDING)

        assert upgraded(database.url, newer, NEXT) == 0

        async with opened(database) as fresh:
            for store in (running, fresh):
                assert (await store.record(an_entry()))[1] is Recorded.NEW
                assert (await letter(store, placed.id)).status is Status.PENDING
            assert await running.change([placed.id], Transition.DISCARD, by=ANN) == {}
            assert len(await fresh.find(LetterQuery())) == 3
    assert upgrade(database.url) == NEXT
    assert check(database.url).healthy
    assert check(database.url).current == NEXT


async def test_an_older_redrive_refuses_politely_where_a_newer_one_has_broken_with_it(
    database: Database, breaking: Path
) -> None:
    async with opened(database) as running:
        placed = await place(running, Status.PENDING)

        assert upgraded(database.url, breaking, NEXT) == 0

        async with opened(database) as fresh:
            for attempt in (fresh.record(an_entry()), fresh.get(placed.id), fresh.statistics()):
                with pytest.raises(Unreachable, match=f"newer Redrive: its schema is {NEXT}") as refusal:
                    await attempt
                assert "install that version" in refusal.value.remedy
        for attempt in (running.record(an_entry()), running.get(placed.id)):
            with pytest.raises(Unreachable, match=r"newer Redrive|letters") as refusal:
                await attempt
            assert refusal.value.remedy
    with pytest.raises(Unreachable, match="newer"):
        upgrade(database.url)
    [problem] = check(database.url).problems
    assert "newer Redrive" in problem
    assert database.fetch("SELECT count(*) FROM letters") == [(1,)]


FIRST = {
    "letters": {
        "id": "'{id}'",
        "identity": "'{id}'",
        "message_id": "'{id}'",
        "message_queue": "'orders'",
        "sent_at": "1767268800000000",
        "queue": "'orders'",
        "handler": "'charge'",
        "status": "'{status}'",
        "kind": "'permanent'",
        "type": "'shop.NoCustomer'",
        "short_type": "'NoCustomer'",
        "text": "'no customer'",
        "group_id": "'group'",
        "generation": "1",
        "revision": "0",
        "fence": "0",
        "refusals": "0",
        "deliveries": "1",
        "delivered_at": "1767268800000000",
        "attempts": "1",
        "created_at": "1767268800000000",
        "first_attempt_at": "1767268800000000",
        "last_attempt_at": "1767268800000000",
        "changed_at": "1767268860000000",
    },
    "revisions": {
        "letter_id": "'{id}'",
        "number": "0",
        "headers": "{headers}",
        "by": "'consumer'",
        "reason": "''",
        "at": "1767268800000000",
    },
}
"""Rows as the first version wrote them."""


def _insert(table: str, columns: dict[str, str], **values: str) -> str:
    names, told = ", ".join(f'"{name}"' for name in columns), ", ".join(columns.values())
    return f"INSERT INTO {table} ({names}) VALUES ({told.format(**values)})"  # noqa: S608  ours


async def test_letters_of_the_first_version_are_counted_and_found_by_this_one(
    database: Database, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    shutil.copytree(MIGRATIONS, first, ignore=shutil.ignore_patterns("__pycache__", "000[2-9]*"))
    assert upgraded(database.url, first, "0001") == 0
    headers = "X''" if database.url.startswith("sqlite") else "''"
    for number, status in enumerate(("PENDING", "PENDING", "RESOLVED")):
        for table, columns in FIRST.items():
            database.fetch(_insert(table, columns, id=f"letter-{number}", status=status, headers=headers))
    group = {"id": "'group'", "title": "'NoCustomer'", "queue": "'orders'", "handler": "'charge'"}
    seen = {
        "first_seen": "1767268800000000",
        "last_seen": "1767268800000000",
        "total": "3",
        "example": "'letter-2'",
    }
    database.fetch(_insert("groups", group | seen))

    async with opened(database) as store:
        counted = await store.statistics()
        assert (counted.total, counted.by_status["PENDING"], counted.by_status["RESOLVED"]) == (3, 2, 1)
        assert [(each.id, each.total, each.pending) for each in await store.groups()] == [("group", 3, 2)]
        assert {each.id for each in await store.find(LetterQuery(queue="orders"))} == {
            f"letter-{number}" for number in range(3)
        }
    assert check(database.url).problems == ()


# Looking


def test_checking_makes_nothing_and_says_what_to_do(file: Path) -> None:
    with pytest.raises(Unreachable, match="there is no") as refusal:
        check(f"sqlite:///{file}")

    assert "redrive db upgrade" in refusal.value.remedy
    assert not file.exists()


def test_an_empty_file_is_reported_and_not_upgraded(file: Path) -> None:
    file.touch()

    report = check(f"sqlite:///{file}")

    assert (report.current, report.head, report.healthy) == (None, schema.HEAD, False)
    assert "redrive db upgrade" in report.problems[0]
    assert file.read_bytes() == b""


async def test_a_healthy_store_is_healthy_in_every_status(database: Database) -> None:
    await placed_in_every_status(database)

    report = check(database.url)

    assert (report.current, report.damage, report.problems) == (schema.HEAD, (), ())
    assert report.healthy


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("DELETE FROM groups", "6 letters without their group"),
        ("DELETE FROM revisions", "6 letters without their message"),
        ("DELETE FROM claims", "1 letters being redriven that nobody has claimed"),
        ("UPDATE letters SET status = 'PENDING'", "1 letters claimed and not being redriven"),
    ],
)
async def test_what_does_not_add_up_is_told(database: Database, harm: str, told: str) -> None:
    await placed_in_every_status(database)
    database.fetch(harm)

    report = check(database.url)

    assert not report.healthy
    assert [problem for problem in report.problems if problem.startswith(told)], report.problems


async def test_numbers_that_are_not_those_of_the_letters_are_told(database: Database) -> None:
    await placed_in_every_status(database)
    database.fetch("UPDATE counter_deltas SET letters = letters + 1")
    database.fetch("UPDATE totals SET letters = letters + 1")

    assert not check(database.url).healthy


async def test_rows_that_belong_to_nothing_are_damage(file: Path) -> None:
    database = FileDatabase(file)
    async with opened(database) as store:
        await store.record(an_entry())
    database.fetch("DELETE FROM letters")

    assert "belongs to no row of letters" in check(database.url).damage[0]


def test_checking_a_file_that_is_no_database_is_a_corrupt_file(file: Path) -> None:
    file.write_bytes(b"no database" * 100)

    for look in (check, upgrade):
        with pytest.raises(CorruptFile):
            look(f"sqlite:///{file}")
