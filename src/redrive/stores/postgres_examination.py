"""A PostgreSQL, looked at for `redrive doctor`: by a connection that comes where a store would refuse to work."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg

from redrive.disk import ground_of
from redrive.finding import FindingLevel, ok, problem, unknown, warn
from redrive.stores.postgres_errors import explain
from redrive.stores.postgres_questions import ON_A_PRIMARY, QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.disk import Ground
    from redrive.finding import Finding
    from redrive.stores.postgres_options import PostgresAddress, PostgresOptions
    from redrive.stores.postgres_questions import Question

_EACH = 5.0
"""Seconds for one question, at most: they are about a few rows each."""
_NOT_TOLD = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
"""No right to ask, no time left, or no connection any more."""
_HARDLY_ANY = 64 * 2**20
_LITTLE_SHARE = 0.05
_MIB = 2**20
_PLACES = (
    "SELECT DISTINCT CASE WHEN t.oid IS NULL OR pg_tablespace_location(t.oid) = ''"
    " THEN current_setting('data_directory') ELSE pg_tablespace_location(t.oid) END"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace"
    " WHERE n.nspname = $1 OR c.relname = 'pg_class'"
)
_IS_HERE = "SELECT inet_server_addr() IS NULL OR host(inet_server_addr()) IN ('127.0.0.1', '::1')"


async def examine(address: PostgresAddress, options: PostgresOptions, within: float) -> list[Finding]:
    """Only reads. Raises what `explain` explains if there is no connection to be had."""
    deadline = time.monotonic() + within
    connection = await asyncpg.connect(
        address.dsn,
        timeout=min(within, address.connect_timeout or options.connect_timeout),
        server_settings={"application_name": address.application},
    )
    try:
        return await _Examined(connection, address, options, deadline).findings()
    finally:
        connection.terminate()  # nothing is under way that a goodbye could save


class _Examined:
    def __init__(
        self, connection: asyncpg.Connection, address: PostgresAddress, options: PostgresOptions, deadline: float
    ) -> None:
        self._connection = connection
        self._address = address
        self._options = options
        self._deadline = deadline

    async def findings(self) -> list[Finding]:
        found = [each for question in QUESTIONS for each in await self._asked(question)]
        if not any(each.check == "standby" and each.level is FindingLevel.PROBLEM for each in found):
            found += [each for question in ON_A_PRIMARY for each in await self._asked(question)]
        found += await self._space()
        if all(each.level is FindingLevel.UNKNOWN for each in found):
            version = self._connection.get_server_version()
            shown = f"PostgreSQL {version.major}.{version.minor}"
            found.append(ok("postgres", f"{shown} is durable, takes writes and has connections left"))
        return found

    async def _asked(self, question: Question) -> list[Finding]:
        values = (self._options.schema,) if question.by_schema else ()
        try:
            rows = await self._rows(question.statement, *values)
        except _NOT_TOLD as error:
            what = f"the server did not tell about {question.about}: {explain(error, self._address)}"
            return [unknown(question.check, what, question.remedy)]
        return list(question.judge(rows, self._options))

    async def _rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return [tuple(row) for row in await self._connection.fetch(statement, *values, timeout=min(left, _EACH))]

    async def _space(self) -> list[Finding]:
        """SQL has no word for it; where the server's folders are on this machine, they are looked at."""
        with suppress(*_NOT_TOLD):
            [[here]] = await self._rows(_IS_HERE)
            places = [Path(place) for (place,) in await self._rows(_PLACES, self._options.schema)] if here else []
            # A tunnel ends on this machine too, and leads to another one: what is not here is not measured.
            if places and all(place.is_dir() for place in places):
                return [each for place in places for each in _judged(ground_of(place), place)]
        taken = ""
        with suppress(*_NOT_TOLD):
            [[size]] = await self._rows("SELECT pg_database_size(current_database())")
            taken = f"; the database takes {size / _MIB:,.0f} MiB"
        what = f"SQL does not tell how much room the disks of {self._address} have{taken}"
        return [unknown("postgres-space", what, "have the server's own monitoring watch it")]


def _judged(ground: Ground, place: Path) -> Iterator[Finding]:
    what = f"{ground.free / _MIB:,.0f} of {ground.total / _MIB:,.0f} MiB are free on the disk of {place}"
    if ground.free < _HARDLY_ANY:
        yield problem("postgres-space", what, "free some space: a full disk stops the server")
    elif ground.free < ground.total * _LITTLE_SHARE:
        yield warn("postgres-space", what, "free some space, or give the server a larger disk")
    if ground.in_memory:
        what = f"{place} is in memory ({ground.kind}): gone when the machine stops"
        yield problem("postgres-in-memory", what, "give the server a data directory on a disk")
