"""The ledger in a store on SQL: what is noted without a change, and what is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from redrive.errors import Undecided
from redrive.stores import sql_ledger
from redrive.stores.sql_selection import page_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.clock import Clock
    from redrive.dead_letter import Actor
    from redrive.ledger import Deed, LedgerEntry, LedgerPage, LedgerQuery
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")


class SqlLedgering(ABC):
    _clock: Clock
    _ledger: Ledger

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    async def note(self, deed: Deed, *, by: Actor, at: datetime | None = None) -> None:
        unit = partial(self._ledger.write, deed=deed, by=by, now=at or self._clock.now())
        try:
            await self._write(partial(unit, once=at is not None))
        except Undecided:  # it is there or it is not: the row itself tells
            await self._write(partial(unit, once=True))

    async def ledger(self, query: LedgerQuery) -> list[LedgerEntry]:
        size = page_size(query.limit)
        return await self._read(lambda connection: sql_ledger.find(connection, query, size))

    async def ledger_page(self, after: int, limit: int) -> LedgerPage:
        return await self._read(lambda connection: sql_ledger.page(connection, after, limit))
