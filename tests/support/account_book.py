"""Accounts for tests of those who ask a store for them: the real store on SQLite, and a clock."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path

from redrive.stores.sqlite import SqliteStore
from redrive.stores.upgrade import upgrade
from redrive.testing import ManualClock
from redrive.testing.letters import NOON


@cache
def _empty() -> bytes:
    """A file with all tables and nothing in them: copies are quicker than making them for each test."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        upgrade(f"sqlite:///{file}")
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return file.read_bytes()


@asynccontextmanager
async def account_book() -> AsyncIterator[tuple[SqliteStore, ManualClock]]:
    folder, clock = Path(tempfile.mkdtemp(prefix="redrive-accounts-")), ManualClock(NOON)
    (folder / "accounts.db").write_bytes(_empty())
    store = SqliteStore(f"sqlite:///{folder}/accounts.db", clock=clock)
    try:
        yield store, clock
    finally:
        await store.close()
        shutil.rmtree(folder)
