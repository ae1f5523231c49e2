"""The command line on a PostgreSQL store: the same commands, and the settings that only a server has."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redrive.stores import open_store
from redrive.stores.schema import HEAD
from redrive.testing.letters import an_entry
from support.desk import Desk
from support.postgres_server import PostgresServer

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary; the server asks for none
SCHEMA = "dead letters"


@pytest.fixture
def desk(tmp_path: Path, postgres_url: str) -> Desk:
    url = urlsplit(postgres_url)
    told = url._replace(netloc=f"redrive:{PASSWORD}@{url.hostname}:{url.port}").geturl()
    settings = f'[store]\nurl = "{told}"\nschema = "{SCHEMA}"\npool_size = 2\nstatement_timeout = "20s"\n'
    (tmp_path / "redrive.toml").write_text(settings)
    return Desk(tmp_path)


def test_db_upgrade_makes_the_tables_and_db_check_looks_at_them(
    desk: Desk, postgres: PostgresServer, postgres_url: str
) -> None:
    missing = desk.redrive("db", "check")
    assert (missing.code, missing.out) == (6, "")
    assert f'there is no schema "{SCHEMA}"' in missing.err
    assert "redrive db upgrade" in missing.err

    upgraded = desk.redrive("db", "upgrade")

    assert upgraded.code == 0
    assert upgraded.out.startswith("postgresql://redrive:***@")
    assert upgraded.out.endswith(f" is at {HEAD}\n")
    assert desk.redrive("db", "upgrade").out == upgraded.out
    assert desk.redrive("db", "check").out == f"ok: {upgraded.out}"
    assert f"would be at {HEAD}" in desk.redrive("db", "upgrade", "--dry-run").out
    found = "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = 'letters'"
    assert postgres.fetch(found, SCHEMA, url=postgres_url) == [(1,)]


def test_letters_are_listed_shown_counted_and_changed(desk: Desk, postgres_url: str) -> None:
    async def recorded() -> str:
        store = open_store(postgres_url, schema=SCHEMA)
        letter_id, _ = await store.record(an_entry("it"))
        await store.close()
        return letter_id

    letter_id = asyncio.run(recorded())

    listed = desk.redrive("list", "--output", "json")
    assert [each["id"] for each in json.loads(listed.out)] == [letter_id], listed
    assert desk.redrive("show", letter_id[:13]).code == 0
    assert desk.redrive("discard", letter_id, "--reason", "test", "--yes").code == 0
    assert "DISCARDED" in desk.redrive("list", "--status", "DISCARDED").out
    assert desk.redrive("stats").code == 0
    assert desk.redrive("groups").code == 0


def test_the_settings_are_checked_and_shown_without_the_password(desk: Desk) -> None:
    assert desk.redrive("config", "check").code == 0
    shown = desk.redrive("config", "show")
    assert shown.code == 0
    assert SCHEMA in shown.out
    assert PASSWORD not in shown.out + shown.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("pool_size = 0", "store.pool_size"),
        ('connect_timeout = "0s"', "store.connect_timeout"),
        ('view = "dlq_events"', "public.dlq_events"),
        ('view = "public.dlq; DROP TABLE x"', "public.dlq_events"),
        ('schma = "x"', "schema"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_their_key(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "redrive.toml").write_text(f"[store]\n{line}\n")

    ended = Desk(tmp_path).redrive("config", "check")

    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize("command", [("db", "check"), ("db", "upgrade"), ("list",), ("stats",)])
def test_a_server_that_is_away_is_one_line_and_its_remedy(
    tmp_path: Path, unused_tcp_port: int, command: tuple[str, ...]
) -> None:
    url = f"postgresql://redrive:{PASSWORD}@127.0.0.1:{unused_tcp_port}/shop"
    (tmp_path / "redrive.toml").write_text(f'[store]\nurl = "{url}"\n')

    ended = Desk(tmp_path).redrive(*command)

    assert ended.code == 6
    assert ended.err.startswith("error: cannot reach postgresql://redrive:***@127.0.0.1")
    assert "hint: check that the server runs" in ended.err
    assert "Traceback" not in ended.err
    assert PASSWORD not in ended.out + ended.err
