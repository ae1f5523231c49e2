"""Rows of a database as they lie there: of a file of SQLite, or of a PostgreSQL by its URL. Own code only."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

T = TypeVar("T")

Database = Path | str
"""A file, or a URL."""
Rows = list[tuple[Any, ...]]

_SCHEMA = "redrive"
_PATIENCE = 60.0
_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def rows(database: Database, query: str) -> Rows:
    """Nothing, if the file was never made or never got as far as this table."""
    [found] = rows_of_each(database, [query])
    return found


def rows_of_each(database: Database, queries: Sequence[str]) -> list[Rows]:
    """As `rows`, for several questions."""
    if isinstance(database, Path):
        return [_of_file(database, query) for query in queries]
    return _elsewhere(_of_server(database, queries))


def wait_until_alone(url: str) -> None:
    """Until the server has noticed the end of every connection to this database, also of those who were killed in
    the middle of a COMMIT: after that nothing changes any more.
    """
    _elsewhere(_alone(url))


def _of_file(path: Path, query: str) -> Rows:
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise


async def _of_server(url: str, queries: Sequence[str]) -> list[Rows]:
    import asyncpg  # noqa: PLC0415  only where there is a server

    connection = await asyncpg.connect(url, timeout=_PATIENCE, server_settings={"search_path": _SCHEMA})
    found: list[Rows] = []
    try:
        for query in queries:
            try:
                found.append([tuple(row) for row in await connection.fetch(query)])
            except asyncpg.UndefinedTableError:
                found.append([])
    finally:
        await connection.close()
    return found


async def _alone(url: str) -> None:
    async with asyncio.timeout(_PATIENCE):
        while await _of_server(url, [_OTHERS]) != [[(0,)]]:
            await asyncio.sleep(0.01)


def _elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """In a thread with a loop of its own, since the caller may be inside one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()
