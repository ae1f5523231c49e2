"""Connections to a PostgreSQL: each with deadlines, in our schema, and only where a COMMIT is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg
from sqlalchemy import NullPool, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import create_async_engine

from redrive.errors import Unreachable
from redrive.stores.postgres_connections import Connections
from redrive.stores.postgres_options import quoted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncEngine

    from redrive.stores.postgres_options import PostgresAddress, PostgresOptions

    Connector = Callable[[], Awaitable[Any]]

_STATEMENTS_KEPT = 500
_GRACE = 5.0
"""How long the client waits beyond the server's own deadline before it gives the connection up."""

_SESSION = (
    "SELECT current_setting('synchronous_commit') AS commits, current_setting('server_encoding') AS encoding"
)


def connections(address: PostgresAddress, options: PostgresOptions) -> Connections:
    return Connections(_connector(address, options, options.statement_timeout))


def pooled_engine(opened: Connections, options: PostgresOptions) -> AsyncEngine:
    """For the work of one process: as many connections as `pool_size`, none of them found dead by the caller."""
    engine = create_async_engine(
        _DRIVER,
        **_common(opened.open),
        pool_size=options.pool_size,
        max_overflow=0,
        pool_timeout=options.connect_timeout,
    )

    # The loop has seen the server's goodbye while the connection lay in the pool: no question to it is needed.
    @event.listens_for(engine.sync_engine, "checkout")
    def _alive(connection: Any, *_: object) -> None:
        if connection.driver_connection.is_closed():
            raise DisconnectionError

    return engine


def single_engine(address: PostgresAddress, options: PostgresOptions) -> AsyncEngine:
    """For one long piece of work, such as a migration: no deadline for its statements, no pool."""
    return create_async_engine(_DRIVER, **_common(_connector(address, options, 0.0)), poolclass=NullPool)


_DRIVER = "postgresql+asyncpg://"


def _connector(address: PostgresAddress, options: PostgresOptions, statement_timeout: float) -> Connector:
    async def connect() -> asyncpg.Connection:
        connection = await asyncpg.connect(
            address.dsn,
            timeout=address.connect_timeout or options.connect_timeout,
            command_timeout=statement_timeout + _GRACE if statement_timeout else None,
            server_settings=_session(options, statement_timeout) | {"application_name": address.application},
        )
        try:
            await _refuse_unsafe(connection, address)
        except BaseException:
            connection.terminate()
            raise
        return connection

    return connect


def _common(connect: Connector) -> dict[str, Any]:
    return {
        "connect_args": {"async_creator_fn": connect, "prepared_statement_cache_size": _STATEMENTS_KEPT},
        "isolation_level": "READ COMMITTED",
        "hide_parameters": True,  # they hold payloads, so that errors must not quote them
    }


def _session(options: PostgresOptions, statement_timeout: float) -> dict[str, str]:
    # Given with the connection, not SET after it: a pooler between us that could lose them refuses loudly.
    return {
        "search_path": quoted(options.schema),
        "statement_timeout": _milliseconds(statement_timeout),
        "lock_timeout": _milliseconds(options.lock_timeout),
        "idle_in_transaction_session_timeout": _milliseconds(options.idle_in_transaction_timeout),
        "max_parallel_workers_per_gather": "0",  # starting workers takes longer than any page or count of ours
        "jit": "off",  # compiling a query costs more than any of ours takes
    }


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))


async def _refuse_unsafe(connection: asyncpg.Connection, address: PostgresAddress) -> None:
    found = await connection.fetchrow(_SESSION)
    if found["commits"] == "off":
        raise not_durable(str(address))
    if found["encoding"] != "UTF8":
        raise Unreachable(
            f"{address} is encoded in {found['encoding']}, which cannot hold every text",
            remedy="make a database with ENCODING 'UTF8' and name it in store.url",
        )


def not_durable(where: str) -> Unreachable:
    return Unreachable(
        f"synchronous_commit is off in {where}: a crash of the server would lose letters it has confirmed",
        remedy=(
            "turn it on for this role or database alone: ALTER ROLE ... SET synchronous_commit = on,"
            " or ALTER DATABASE ... SET synchronous_commit = on"
        ),
    )
