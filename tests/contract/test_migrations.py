"""The file's schema: made, upgraded, checked; by several processes at once, and by processes that are killed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

from redrive.dead_letter import Status
from redrive.errors import CorruptFile, Unreachable
from redrive.stores import open_store, schema
from redrive.stores.upgrade import MIGRATIONS, check, upgrade
from redrive.testing.letters import an_entry
from redrive.testing.store_case import letter, place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "letters.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"


def test_the_newest_migration_is_the_one_the_tables_are_made_for() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


def test_migrations_and_tables_agree(url: str) -> None:
    upgrade(url)
    engine = create_engine(url)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_migrations_make_the_very_tables_that_the_metadata_makes(url: str, tmp_path: Path) -> None:
    upgrade(url)
    migrated, made = create_engine(url), create_engine(f"sqlite:///{tmp_path}/made.db")
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


def test_upgrading_twice_is_upgrading_once(url: str, file: Path) -> None:
    assert upgrade(url) == schema.HEAD
    content = file.read_bytes()

    assert upgrade(url) == schema.HEAD

    assert file.read_bytes() == content


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


async def test_processes_that_open_a_new_file_at_once_all_succeed(url: str) -> None:
    assert _opened_at_once(url, 4) == [("", 0)] * 4

    assert check(url).healthy
    store = open_store(url)
    assert (await store.statistics()).total == 4
    await store.close()


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from redrive.stores import upgrade

left = int(sys.argv[2])

@event.listens_for(Engine, "after_cursor_execute")
def count(connection, cursor, statement, *_):
    global left
    left -= statement.startswith(("\\nCREATE", "CREATE", "INSERT", "ALTER", "UPDATE"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

if len(sys.argv) > 3:
    from pathlib import Path
    upgrade.MIGRATIONS = Path(sys.argv[3])
    upgrade.HEAD = upgrade.SqliteFile.prepare.__globals__["HEAD"] = "0002"
upgrade.upgrade(sys.argv[1])
"""


def _killed_after(statements: int, url: str, *migrations: Path) -> int:
    command = [sys.executable, "-W", "error", "-c", KILLED, url, str(statements), *map(str, migrations)]
    return subprocess.run(command, check=False, env=dict(os.environ)).returncode


@pytest.mark.parametrize("statements", [1, 2, 7, 14, 15])
def test_an_upgrade_that_is_killed_has_done_nothing_and_the_next_one_completes_it(
    url: str, file: Path, statements: int
) -> None:
    assert _killed_after(statements, url) == -9
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == []

    assert upgrade(url) == schema.HEAD

    assert check(url).healthy


SECOND = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"

def upgrade():
    op.add_column("letters", sa.Column("colour", sa.Text(), nullable=True))
    op.create_table("paints", sa.Column("id", sa.Integer(), primary_key=True))
    op.execute("UPDATE letters SET colour = 'red'")
"""


@pytest.fixture
def two_versions(tmp_path: Path) -> Path:
    """The migrations of a Redrive that is one version further."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "0002_paint.py").write_text(SECOND)
    return folder


@pytest.mark.parametrize("statements", [1, 2, 3, 4])
async def test_letters_survive_an_upgrade_that_is_killed_and_then_completed(
    url: str, file: Path, two_versions: Path, statements: int
) -> None:
    store = open_store(url)
    placed = await place(store, Status.REDRIVEN)
    before = await letter(store, placed.id)
    await store.close()

    assert _killed_after(statements, url, two_versions) == -9
    assert check(url).current == "0001"
    store = open_store(url)
    assert await letter(store, placed.id) == before
    await store.close()

    assert _killed_after(-1, url, two_versions) == 0
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT colour FROM letters").fetchall() == [("red",)]
        assert connection.execute("SELECT version_num FROM redrive_version").fetchall() == [("0002",)]
    with pytest.raises(Unreachable, match="newer"):
        upgrade(url)


def test_checking_makes_nothing_and_says_what_to_do(url: str, file: Path) -> None:
    with pytest.raises(Unreachable, match="there is no") as refusal:
        check(url)

    assert "redrive db upgrade" in refusal.value.remedy
    assert not file.exists()


def test_an_empty_file_is_reported_and_not_upgraded(url: str, file: Path) -> None:
    file.touch()

    report = check(url)

    assert (report.current, report.head, report.healthy) == (None, schema.HEAD, False)
    assert "redrive db upgrade" in report.problems[0]
    assert file.read_bytes() == b""


async def test_a_healthy_store_is_healthy_in_every_status(url: str) -> None:
    store = open_store(url)
    for status in Status:
        await place(store, status)
    await store.close()

    report = check(url)

    assert (report.current, report.damage, report.problems) == (schema.HEAD, (), ())
    assert report.healthy


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("UPDATE groups SET total = total + 1", "1 groups whose total"),
        ("DELETE FROM groups", "6 letters without their group"),
        ("DELETE FROM revisions", "6 letters without their message"),
        ("DELETE FROM claims", "1 letters being redriven that nobody has claimed"),
        ("UPDATE letters SET status = 'PENDING'", "1 letters claimed and not being redriven"),
    ],
)
async def test_what_does_not_add_up_is_told(url: str, file: Path, harm: str, told: str) -> None:
    store = open_store(url)
    for status in Status:
        await place(store, status)
    await store.close()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(harm)

    report = check(url)

    assert not report.healthy
    assert [problem for problem in report.problems if problem.startswith(told)], report.problems


async def test_rows_that_belong_to_nothing_are_damage(url: str, file: Path) -> None:
    store = open_store(url)
    await store.record(an_entry())
    await store.close()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM letters")

    assert "belongs to no row of letters" in check(url).damage[0]


def test_checking_a_file_that_is_no_database_is_a_corrupt_file(url: str, file: Path) -> None:
    file.write_bytes(b"no database" * 100)

    for look in (check, upgrade):
        with pytest.raises(CorruptFile):
            look(url)
