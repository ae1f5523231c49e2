"""200 canaries in bodies, headers, keys and texts of errors: after all that can happen to letters they are in no
plain column of the store, in no log, and in nothing that the command line writes. With encryption on they are in
no file of the database.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redrive.clock import new_id
from redrive.message import Message
from redrive.testing.letters import NOON
from support.desk import Desk
from support.postgres_server import PostgresServer, PrivatePostgres
from support.private_letters import Canary, canaries

EXACT = {"revisions.body", "revisions.headers", "revisions.key", "revisions.properties", "failures.told"}
"""Columns that hold what came, as it came; encryption is for these."""
MESSAGES, EACH = 50, 4
SHOP = """
from redrive import App, Permanent, Retry

app = App("shop", retry=Retry(1, "1s"))

@app.handler("orders")
async def charge(data: dict) -> None:
    raise Permanent(data["tell"])
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    (tmp_path / "shop.py").write_text(SHOP)
    return Desk(tmp_path, store_url=url)


def test_no_canary_leaves_the_columns_that_are_kept_exact(desk: Desk, request: pytest.FixtureRequest) -> None:
    planted = canaries(MESSAGES * EACH)
    written = _lived_through(desk, planted)
    assert [each for each in planted if each.value in written] == []
    rows = list(_rows(desk, request))
    there = {column for column, value in rows for each in planted if _holds(value, each)}
    assert there <= EXACT
    assert there >= {"revisions.body", "revisions.headers", "revisions.key", "failures.told"}, "they are exact"
    _all_found(desk, planted[::20])


@pytest.mark.parametrize("plain_before", [False, True])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_with_encryption_on_no_canary_is_in_any_file_of_the_database(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, *, plain_before: bool
) -> None:
    server = None if kind == "sqlite" else request.getfixturevalue("own_postgres")
    (tmp_path / "shop.py").write_text(SHOP)
    desk = Desk(tmp_path, store_url=None if server is None else server.new_database())
    settings = (tmp_path / "redrive.toml").read_text() if server else ""
    _done(desk, "keys", "new")
    planted = canaries(MESSAGES * EACH)
    if not plain_before:
        (tmp_path / "redrive.toml").write_text(f"{settings}\n[encryption]\nenabled = true\n")
    written = _lived_through(desk, planted)
    if plain_before:
        (tmp_path / "redrive.toml").write_text(f"{settings}\n[encryption]\nenabled = true\n")
        assert "Sealed 50 letters" in _done(desk, "keys", "reencrypt")
        _wiped(desk, server)

    assert [each for each in planted if each.value in written] == []
    if server is not None:
        server.execute("CHECKPOINT")
    files = [tmp_path / "redrive.db", tmp_path / "redrive.db-wal"]
    if server is not None:
        # A server keeps its log for a while, whatever has become of the rows.
        folder = server.data / "base" if plain_before else server.data
        files = [each for each in folder.rglob("*") if each.is_file()]
    held = b"".join(each.read_bytes() for each in files if each.exists())
    assert b"orders" in held
    assert [each for each in planted if each.value.encode() in held] == []
    shown = desk.redrive("list", "--output", "json").out
    one = json.loads(shown.splitlines()[0])["id"] if shown.startswith("{") else json.loads(shown)[0]["id"]
    revealed = desk.redrive("show", one, "--reveal", "is it still there", "--output", "json").out
    assert any(each.value in revealed for each in planted), "whoever may see them can"
    _all_found(desk, planted[::20])


def _wiped(desk: Desk, server: PrivatePostgres | None) -> None:
    """What a database does in its own time: old rows are overwritten."""
    if server is None:
        with closing(sqlite3.connect(desk.folder / "redrive.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return
    for table in ("revisions", "failures", "letters", "search_parts"):
        server.execute(f"VACUUM FULL redrive.{table}", url=desk.store_url)


def _all_found(desk: Desk, planted: list[Canary]) -> None:
    for canary in planted:
        found = desk.redrive("list", "--where", f'"{canary.value}"', "--output", "json").out
        assert found.count('"id"') >= 1, canary


def _lived_through(desk: Desk, planted: list[Canary]) -> str:
    """All that can happen to letters with these canaries; what was written about it."""
    desk.send("orders", (_message(planted[at : at + EACH]) for at in range(0, len(planted), EACH)))
    told = [_done(desk, "work", "shop:app", "--drain")]
    told.append(_done(desk, "db", "index"))
    told.append(_done(desk, "list", "--limit", "100"))
    told.append(_done(desk, "retry", "--queue", "orders", "--yes", "--reason", "again"))
    told.append(_done(desk, "work", "shop:app", "--drain"))
    assert "[masked]" in _done(desk, "list", "--limit", "100", "--output", "json")
    told.append(_done(desk, "list", "--where", "generation:2", "--limit", "100", "--output", "json"))
    assert told[-1].count('"status"') == MESSAGES, "they have come back"
    told += (_done(desk, *each) for each in (("db", "index"), ("groups",), ("stats",), ("db", "check")))

    return "".join(told)


def _message(own: list[Canary]) -> Message:
    in_data, in_header, in_key, in_error = own
    data = {
        "customer": {in_data.field: in_data.value},
        in_key.value if in_key.kind in {"CPF", "e-mail"} else "other": 1,
        "tell": in_error.in_a_text,
        "correlation_id": in_data.value if in_data.kind == "CPF" else "c",
    }
    key = in_key.value if in_key.kind in {"CPF", "card", "e-mail"} else f"{in_key.field}={in_key.value}"
    return Message.create(
        id=new_id(),
        sent_at=NOON,
        queue="orders",
        data=data,
        headers=((f"x-{in_header.field}", in_header.value),),
        key=key.encode(),
    )


def _done(desk: Desk, *arguments: str) -> str:
    ended = desk.process(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def _holds(value: object, canary: Canary) -> bool:
    if isinstance(value, bytes | memoryview):
        return canary.value.encode() in bytes(value)
    return canary.value in str(value)


def _rows(desk: Desk, request: pytest.FixtureRequest) -> Iterator[tuple[str, object]]:
    """Every value of every column of every table, with the column's name."""
    if desk.store_url.startswith("sqlite"):
        with closing(sqlite3.connect(desk.folder / "redrive.db")) as connection:
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (table,) in names:
                found = connection.execute(f'SELECT * FROM "{table}"')  # noqa: S608  its own name
                columns = [each[0] for each in found.description]
                yield from (
                    (f"{table}.{name}", value) for row in found for name, value in zip(columns, row, strict=True)
                )
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    everywhere = server.fetch(
        "SELECT table_name, column_name FROM information_schema.columns JOIN pg_tables"
        " ON tablename = table_name AND schemaname = table_schema WHERE table_schema = 'redrive'",
        url=desk.store_url,
    )
    for table, column in everywhere:
        for (value,) in server.fetch(f'SELECT "{column}" FROM redrive."{table}"', url=desk.store_url):  # noqa: S608  its own names
            yield f"{table}.{column}", value
