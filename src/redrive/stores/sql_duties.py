"""Work that one process of all does at a time: one row each, guarded updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import and_, or_, update

from redrive.stores.expressions import insert_into
from redrive.stores.schema_duties import duties

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

T = TypeVar("T")


class SqlDuties(ABC):
    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    def _now(self, connection: Connection) -> datetime:
        """The clock of all who share the store."""

    async def take_duty(self, name: str, *, holder: str, every: float, lease: float) -> datetime | None:
        def unit(connection: Connection) -> datetime | None:
            now = self._now(connection)
            first = insert_into(duties, connection.dialect.name).on_conflict_do_nothing(index_elements=["name"])
            connection.execute(first, {"name": name, "holder": None, "held_until": None, "done_at": None})
            until = now + timedelta(seconds=lease)
            free = and_(_is_free(holder, now, until), _is_due(now, every))
            taken = _changed(connection, name, free, holder=holder, held_until=until)
            return now if taken else None

        return await self._write(unit)

    async def hold_duty(self, name: str, *, holder: str, lease: float) -> bool:
        def unit(connection: Connection) -> bool:
            until = self._now(connection) + timedelta(seconds=lease)
            return _changed(connection, name, duties.c.holder == holder, held_until=until)

        return await self._write(unit)

    async def end_duty(self, name: str, *, holder: str, done: bool) -> bool:
        def unit(connection: Connection) -> bool:
            ended: dict[str, Any] = {"holder": None, "held_until": None}
            if done:
                ended["done_at"] = self._now(connection)
            return _changed(connection, name, duties.c.holder == holder, **ended)

        return await self._write(unit)


def _is_free(holder: str, now: datetime, until: datetime) -> ColumnElement[bool]:
    """Nobody's, mine, or of somebody who no longer says that they live. No lease is longer than one of now."""
    columns = duties.c
    return or_(
        columns.holder.is_(None), columns.holder == holder, columns.held_until <= now, columns.held_until > until
    )


def _is_due(now: datetime, every: float) -> ColumnElement[bool]:
    done = duties.c.done_at
    try:
        last = now - timedelta(seconds=every)
    except OverflowError:  # longer than there has been time
        return done.is_(None)
    return or_(done.is_(None), done <= last, done > now)


def _changed(connection: Connection, name: str, guard: ColumnElement[bool], **values: Any) -> bool:
    statement = update(duties).where(duties.c.name == name, guard).values(**values)
    return connection.execute(statement).rowcount == 1
