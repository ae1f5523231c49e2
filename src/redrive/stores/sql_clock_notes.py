"""What clocks said, in a store on SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import delete, select

from redrive.stores.expressions import insert_into
from redrive.stores.schema_clock_notes import clock_notes
from redrive.uptime import NotedClock, Uptime

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

T = TypeVar("T")

_FORGOTTEN = timedelta(days=400)
"""Older than the latest: a machine that has not been started anew for a year still finds its own."""


class SqlClockNotes(ABC):
    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    async def noted_clocks(self) -> list[NotedClock]:
        query = select(clock_notes).order_by(clock_notes.c.at.desc())

        def unit(connection: Connection) -> list[NotedClock]:
            return [NotedClock(row.at, Uptime(row.boot, row.seconds)) for row in connection.execute(query)]

        return await self._read(unit)

    async def note_clock(self, noted: NotedClock) -> None:
        await self._write(lambda connection: write_note(connection, noted))


def write_note(connection: Connection, noted: NotedClock) -> None:
    values = {"boot": noted.uptime.boot, "at": noted.at, "seconds": noted.uptime.seconds}
    new = insert_into(clock_notes, connection.dialect.name)
    again = new.on_conflict_do_update(
        index_elements=["boot"], set_={"at": new.excluded.at, "seconds": new.excluded.seconds}
    )
    connection.execute(again, values)
    connection.execute(delete(clock_notes).where(clock_notes.c.at < noted.at - _FORGOTTEN))
