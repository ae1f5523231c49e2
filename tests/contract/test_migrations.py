"""The store's tables: made, upgraded, checked; by several processes at once, and by processes that are killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import pyfiles
from sqlalchemy import Connection, create_engine

from redrive import faults
from redrive.dead_letter import Recorded, Status
from redrive.errors import CorruptFile, Unreachable
from redrive.stores import schema
from redrive.stores.postgres_database import PostgresDatabase
from redrive.stores.postgres_schema import lock_of
from redrive.stores.upgrade import MIGRATIONS, check, upgrade
from redrive.testing.letters import an_entry
from redrive.testing.store_case import place
from support.patience import until
from support.postgres_server import PostgresServer
from support.store_database import Database, FileDatabase, ServerDatabase, opened, upgraded


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
    foreign_keys = {f"fk_{table}_letter_id_letters" for table in ("claims", "failures", "revisions")}
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
CONSTRAINTS = r"""
SELECT conname, regexp_replace(pg_get_constraintdef(pg_constraint.oid), '\((\w+)\)::text', '\1', 'g')
FROM pg_constraint
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


def test_the_failpoint_is_passed_before_every_step_and_each_migration_is_read_once(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, read, load = list[str](), list[str](), pyfiles.load_module_py

    def loaded(name: str, path: Any) -> Any:
        read.append(name)
        return load(name, path)

    monkeypatch.setattr(faults, "point", passed.append)
    monkeypatch.setattr(pyfiles, "load_module_py", loaded)

    upgrade(f"sqlite:///{file}")

    steps = len(list((MIGRATIONS / "versions").glob("0*.py")))
    assert passed.count("migrate.before_step") == steps
    assert len(read) == len(set(read)) == steps + 1  # env.py


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
        ("DELETE FROM search_queue", "6 letters neither searchable nor waiting"),
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
