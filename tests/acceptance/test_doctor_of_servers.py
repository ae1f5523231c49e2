"""`redrive doctor` where the store is a PostgreSQL: how it keeps letters, and servers that never say a word."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.desk import Desk
from support.postgres_server import PostgresServer

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary


def doctor(desk: Desk) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    ended = desk.redrive("doctor", "--output", "json")
    assert PASSWORD not in ended.out + ended.err
    return ended.code, {(each["place"], each["check"]): each for each in json.loads(ended.out)}


@pytest.fixture
def desk(disk_path: Path, postgres_url: str) -> Desk:
    found = Desk(disk_path, store_url=postgres_url)
    assert found.redrive("db", "upgrade").code == 0
    return found


def test_a_table_that_a_crash_empties_makes_it_fail(
    desk: Desk, postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.execute("ALTER TABLE redrive.redrive_compatibility SET UNLOGGED", url=postgres_url)
    code, found = doctor(desk)
    assert code == 1
    assert found["store", "store"]["level"] == "ok"
    assert found["store", "unlogged"]["level"] == "problem"
    assert found["store", "unlogged"]["remedy"] == "ALTER TABLE redrive.redrive_compatibility SET LOGGED"
    assert found["settings", "environment"]["level"] == "warn"


def test_a_server_at_which_nobody_may_work_is_6_and_tells_why(
    desk: Desk, postgres: PostgresServer, postgres_url: str
) -> None:
    database = urlsplit(postgres_url).path.removeprefix("/")
    postgres.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    code, found = doctor(desk)
    assert code == 6
    assert found["store", "store"]["unreachable"] is True
    assert "off for this database" in found["store", "synchronous-commit"]["what"]
    assert found["store", "encryption"]["level"] == "unknown"


def test_looking_makes_no_schema(disk_path: Path, postgres: PostgresServer, postgres_url: str) -> None:
    code, found = doctor(Desk(disk_path, store_url=postgres_url))
    assert (code, found["store", "store"]["level"]) == (6, "problem")
    assert postgres.fetch("SELECT FROM pg_namespace WHERE nspname = 'redrive'", url=postgres_url) == []


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_servers_that_never_answer_are_told_and_the_rest_is_looked_at(disk_path: Path, silent: str) -> None:
    (disk_path / "redrive.toml").write_text(
        f"""
[broker]
url = "amqp://shop:{PASSWORD}@{silent}/"
[broker.rabbitmq]
connect_timeout = "500ms"
management_url = "http://{silent}"
[store]
url = "postgresql://shop:{PASSWORD}@{silent}/shop"
connect_timeout = "500ms"
"""
    )
    code, found = doctor(Desk(disk_path))
    assert code == 6
    for part in ("broker", "store"):
        assert (found[part, part]["level"], found[part, part]["unreachable"]) == ("problem", True)
    assert found["store", "postgres"]["level"] == "unknown"
    assert found["disk", "spool"]["level"] == "ok"
    assert found["settings", "environment"]["level"] == "warn"
