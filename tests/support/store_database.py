"""A database of either kind for a store: its URL, what is in it, and upgrades by processes of their own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from redrive.stores import DeadLetterStore, open_store
from redrive.stores.postgres_database import PostgresDatabase
from redrive.stores.sqlite_file import SqliteFile
from support.forked import Forked
from support.postgres_server import PostgresServer


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


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[DeadLetterStore]:
    store = open_store(database.url)
    try:
        yield store
    finally:
        await store.close()


UPGRADE = """
import os, signal, sys, warnings
from pathlib import Path
from sqlalchemy import Engine, event
from redrive.stores import schema_version, upgrade

warnings.simplefilter("error")
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
    variables = {**os.environ, "REDRIVE_FAULTS": faults}
    told = (url, str(killed_after), *map(str, newer))
    return Forked(UPGRADE, *told, cwd=Path.cwd(), env=variables, stderr=2).wait()
