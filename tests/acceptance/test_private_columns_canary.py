"""200 canaries in bodies, headers, keys and texts of errors: after all that can happen to letters they are in no
plain column of the store, in no log, and in nothing that the command line writes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redrive.clock import new_id
from redrive.message import Message
from redrive.testing.letters import NOON
from support.desk import Desk
from support.postgres_server import PostgresServer
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

    written = "".join(told)
    assert [each for each in planted if each.value in written] == []
    rows = list(_rows(desk, request))
    there = {column for column, value in rows for each in planted if _holds(value, each)}
    assert there <= EXACT
    assert there >= {"revisions.body", "revisions.headers", "revisions.key", "failures.told"}, "they are exact"
    for canary in planted[::20]:
        assert desk.redrive("list", "--where", f'"{canary.value}"', "--output", "json").out.count('"id"') >= 1, (
            canary
        )


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
