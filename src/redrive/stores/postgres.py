"""The store on PostgreSQL: asyncpg under SQLAlchemy Core, many processes and connections at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import DateTime, func, select

from redrive.clock import Clock, SystemClock
from redrive.stores import sql_intake
from redrive.stores.postgres_database import PostgresDatabase
from redrive.stores.postgres_intake import Intake
from redrive.stores.sql import SqlStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.dead_letter import Entry, Recorded
    from redrive.ledger import LedgerKey
    from redrive.stores.private import Privacy
    from redrive.stores.sealing import Encryption

T = TypeVar("T")

_SERVER_TIME = select(func.clock_timestamp(type_=DateTime(timezone=True)))


class PostgresStore(SqlStore):
    """`postgresql://user:password@host:5432/database`, with libpq's options such as `?sslmode=require`. The tables
    live in a schema of their own. Further options are those of `PostgresOptions`. Connects on first use.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        ledger_key: LedgerKey | None = None,
        privacy: Privacy | None = None,
        encryption: Encryption | None = None,
        **options: Any,
    ) -> None:
        super().__init__(clock or SystemClock(), ledger_key, privacy, encryption)
        self._by_server = clock is None
        self._database = PostgresDatabase(url, **options)
        self._intake = Intake(self._record_all)

    async def record(self, entry: Entry, *, connection: object | None = None) -> tuple[str, Recorded]:
        if connection is None:
            return await self._intake.record(entry)
        return await super().record(entry, connection=connection)

    async def record_together(self, entries: Sequence[Entry]) -> list[tuple[str, Recorded]]:
        return await self._intake.record_together(entries)

    async def _record_all(self, entries: Sequence[Entry]) -> list[tuple[str, Recorded]]:
        now = self._clock.now()
        unit = partial(sql_intake.record_all, entries=entries, now=now)
        return await self._change(unit, len(entries))

    async def close(self) -> None:
        await self._intake.close()
        await self._folding.close()
        await self._database.close()

    async def _transact(self, unit: Callable[[Connection], T]) -> T:
        return await self._database.write(unit)

    async def _view(self, unit: Callable[[Connection], T]) -> T:
        return await self._database.read(unit)

    async def _inside(self, connection: object, unit: Callable[[Connection], T]) -> T:
        return await self._database.inside(connection, unit)

    def _now(self, connection: Connection) -> datetime:
        # Leases are compared by processes whose clocks differ; the server has one (unless a test brings its own).
        return connection.execute(_SERVER_TIME).scalar_one() if self._by_server else self._clock.now()
