"""What the store does behind the intake, done now and until nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection

from bench.naive_schema import VIEW
from redrive.stores.postgres_database import PostgresDatabase
from redrive.stores.sql_counters import fold
from redrive.stores.sql_search_index import index_waiting

_WORK: dict[str, Callable[[Connection], int]] = {
    "counters": fold,
    "search": partial(index_waiting, at_most=500),
}


async def catch_up(url: str, tell: Callable[[str, int], None] = lambda _name, _done: None) -> None:
    """`tell` hears of each portion: of what, and how many."""
    database = PostgresDatabase(url, view=VIEW)
    for name, work in _WORK.items():
        while done := await database.write(work):
            tell(name, done)
    await database.close()
