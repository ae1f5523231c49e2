"""A unit of ours in the transaction of somebody else's connection, who commits it or does not.

It stands in a savepoint: if it fails, the other's transaction is as it was and can go on. The other's search_path
is ours only for as long as the unit runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from sqlalchemy import Engine, StaticPool, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.util import greenlet_spawn

from redrive.errors import UsageError
from redrive.stores.postgres_engine import not_durable
from redrive.stores.postgres_options import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

T = TypeVar("T")

_PATH = "search_path"


async def run_inside(given: object, unit: Callable[[Connection], T], *, schema: str, engine: Engine) -> T:
    """Takes an AsyncSession or AsyncConnection of SQLAlchemy, or a connection of asyncpg that is in a transaction.
    `engine` has been connected to the same database.
    """

    def in_schema(connection: Connection) -> T:
        return _in_schema(connection, schema, unit)

    if isinstance(given, AsyncSession):
        given = await given.connection()
    if isinstance(given, AsyncConnection):
        return await given.run_sync(in_schema)
    if not isinstance(given, asyncpg.Connection | PoolConnectionProxy):
        raise UsageError(
            f"a {type(given).__name__} is no connection to record by",
            remedy="give an AsyncSession or AsyncConnection of SQLAlchemy, or a connection of asyncpg",
        )
    if not given.is_in_transaction():
        raise UsageError(
            "the connection is not in a transaction",
            remedy="record inside `async with connection.transaction():`",
        )
    return await greenlet_spawn(_on_raw, given, in_schema, engine)


def _on_raw(raw: Any, unit: Callable[[Connection], T], engine: Engine) -> T:
    """SQLAlchemy over a connection that is not its own: it neither sets it up, nor begins, ends or closes
    anything.
    """

    async def give() -> Any:
        return raw

    adapted = engine.dialect.loaded_dbapi.connect(async_creator_fn=give)
    engine.dialect.set_isolation_level(adapted, "AUTOCOMMIT")
    pool = StaticPool(lambda: adapted, reset_on_return=None, dialect=engine.dialect)
    with Engine(pool, engine.dialect, engine.url, hide_parameters=True).connect() as connection:
        return unit(connection)


def _in_schema(connection: Connection, schema: str, unit: Callable[[Connection], T]) -> T:
    with connection.begin_nested():
        settings = select(func.current_setting(_PATH), func.current_setting("synchronous_commit"))
        path, commits = connection.execute(settings).one()
        if commits == "off":
            raise not_durable("the session of the given connection")
        _set_path(connection, quoted(schema))
        result = unit(connection)
        _set_path(connection, path)
    return result


def _set_path(connection: Connection, path: str) -> None:
    """Until the transaction ends, or the savepoint is rolled back."""
    connection.execute(select(func.set_config(_PATH, path, True)))  # noqa: FBT003  SQL's argument
