"""Our schema in somebody's PostgreSQL database: made, brought up to date, looked at.

All of it is one transaction under an advisory lock: of several processes that come at once one does it and the
others find it done, and one that is killed in between has done nothing.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError

from redrive import faults
from redrive.errors import NoStoreYet, Unreachable
from redrive.stores import dlq_view
from redrive.stores.postgres_engine import single_engine
from redrive.stores.postgres_errors import PERMISSION_REMEDY, is_transient
from redrive.stores.postgres_options import quoted
from redrive.stores.schema import HEAD, VERSION_TABLE, metadata
from redrive.stores.schema_version import schema_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from redrive.stores.postgres_options import PostgresAddress, PostgresOptions

T = TypeVar("T")

_PATIENCE = "60s"
"""How long a process waits for another one that migrates; letters go to the spool meanwhile."""

_MAY_USE = text("SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = :schema")
_TABLES = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema")


async def upgrade(address: PostgresAddress, options: PostgresOptions) -> str:
    """Safe to repeat, and to interrupt; the schema's version."""
    engine = single_engine(address, options)
    try:
        async with engine.connect() as connection:
            version = await connection.run_sync(lambda sync: _bring_up_to_date(sync, address, options))
            faults.point("migrate.before_commit")
            await connection.commit()
        faults.point("migrate.after_commit")
    finally:
        await engine.dispose()
    return version


async def look(address: PostgresAddress, options: PostgresOptions, unit: Callable[[Connection], T]) -> T:
    """What the unit sees at one moment of the schema as it is; NoStoreYet if there is no schema."""

    def seen(connection: Connection) -> T:
        if not _is_there(connection, address, options):
            raise NoStoreYet(
                f"there is no schema {quoted(options.schema)} in {address}", remedy="`redrive db upgrade` makes it"
            )
        return unit(connection)

    engine = single_engine(address, options)
    one_moment = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    try:
        async with one_moment.connect() as connection:
            return await connection.run_sync(seen)
    finally:
        await engine.dispose()


def _bring_up_to_date(connection: Connection, address: PostgresAddress, options: PostgresOptions) -> str:
    from redrive.stores.upgrade import migrate  # noqa: PLC0415  Alembic is slow to import, rarely needed

    _wait_for_turn(connection, address, options)
    if not _is_there(connection, address, options):
        connection.exec_driver_sql(f"CREATE SCHEMA {quoted(options.schema)}")
    elif schema_version(connection).current is None:
        _refuse_foreign(connection, address, options)
    version = migrate(connection, str(address))
    if version == HEAD:  # a newer Redrive's tables have a newer Redrive's view
        dlq_view.keep(connection, options.view)
    return version


def _is_there(connection: Connection, address: PostgresAddress, options: PostgresOptions) -> bool:
    usable = connection.scalar(_MAY_USE, {"schema": options.schema})
    if usable is False:
        raise Unreachable(
            f"permission denied for schema {quoted(options.schema)} in {address}", remedy=PERMISSION_REMEDY
        )
    return usable is not None


def _wait_for_turn(connection: Connection, address: PostgresAddress, options: PostgresOptions) -> None:
    usual = connection.scalar(select(func.current_setting("lock_timeout")))
    connection.execute(select(func.set_config("lock_timeout", _PATIENCE, True)))  # noqa: FBT003  SQL's argument
    try:
        connection.execute(select(func.pg_advisory_xact_lock(lock_of(options.schema))))
    except DBAPIError as error:
        if not is_transient(error):
            raise
        raise Unreachable(
            f"another process has been upgrading the tables in {address} for {_PATIENCE}",
            remedy="wait for it to end; work goes on by itself then",
        ) from None
    connection.execute(select(func.set_config("lock_timeout", usual, True)))  # noqa: FBT003  as above


def lock_of(schema: str) -> int:
    digest = hashlib.sha256(f"redrive migrations of {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _refuse_foreign(connection: Connection, address: PostgresAddress, options: PostgresOptions) -> None:
    ours = {*metadata.tables, VERSION_TABLE}
    taken = sorted(ours & set(connection.scalars(_TABLES, {"schema": options.schema})))
    if taken:
        raise Unreachable(
            f"schema {quoted(options.schema)} in {address} holds another application's table {taken[0]!r}",
            remedy="give store.schema a name of its own; a missing schema is made",
        )
