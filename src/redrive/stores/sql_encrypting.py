"""The data keys of a store on SQL, as whoever looks after them sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import insert, select

from redrive.errors import ConfigurationError, UsageError
from redrive.ledger import KEYS, Deed, Subject
from redrive.privacy.encryption.rotation import rewrap_all
from redrive.stores import sql_data_keys
from redrive.stores.key_store import whole_days
from redrive.stores.schema import letters, search_queue
from redrive.stores.sql_resealing import reseal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import date

    from sqlalchemy import Connection

    from redrive.clock import Clock
    from redrive.dead_letter import Actor
    from redrive.privacy.encryption.rotation import Rotated
    from redrive.stores.key_store import Resealed
    from redrive.stores.sealing import Seals
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")

ROTATED, SHREDDED = "keys rotated", "keys shredded"


class SqlEncrypting(ABC):
    _clock: Clock
    _ledger: Ledger
    _seals: Seals | None

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    async def key_usage(self) -> Mapping[str, int]:
        return await self._read(sql_data_keys.by_kek)

    async def rewrap_keys(self, *, by: Actor, on_progress: Callable[[int], None] | None = None) -> Rotated:
        seals = self._sealing()
        done = await rewrap_all(seals.keys, seals.ring.source, on_progress=on_progress)
        if done.rewrapped:
            current = seals.ring.source.current
            deed = Deed(what=ROTATED, subject=Subject.of(KEYS, [current]), after=f"{done.rewrapped} data keys")
            now = self._clock.now()
            await self._write(lambda connection: self._ledger.write(connection, deed, by=by, now=now))
        return done

    async def shred(self, queue: str | None, first: date, last: date, *, by: Actor) -> int:
        if first > last:
            raise UsageError("the first day is after the last", remedy="name the earlier day first")
        seals, now = self._sealing(), self._clock.now()

        def unit(connection: Connection) -> list[bytes]:
            gone = sql_data_keys.shred(connection, queue, first, last)
            if gone:
                _index_anew(connection, queue, first, last)
                named = Subject.of(KEYS, ["all queues" if queue is None else f"queue {queue}"])
                days = f"none from {first} to {last}"
                deed = Deed(what=SHREDDED, subject=named, before=f"{len(gone)} data keys", after=days)
                self._ledger.write(connection, deed, by=by, now=now)
            return gone

        gone = await self._write(unit)
        seals.ring.forget(gone)
        return len(gone)

    async def retire_keys(self) -> Collection[bytes]:
        seals = self._sealing()
        former = await self._write(sql_data_keys.retire)
        seals.ring.forget(former)
        return former

    async def reseal(self, after: str, *, former: Collection[bytes] = ()) -> Resealed:
        self._sealing()
        return await self._write(lambda connection: reseal(connection, after, former))

    def _sealing(self) -> Seals:
        if self._seals is None:
            raise ConfigurationError(
                "the store was opened without a key of encryption",
                remedy="`redrive keys new` makes one; then set encryption.enabled",
            )
        return self._seals


def _index_anew(connection: Connection, queue: str | None, first: date, last: date) -> None:
    """Words of what is shredded are in the search index: it is made anew of what can still be read."""
    begin, end = whole_days(first, last)
    these = select(letters.c.id).where(letters.c.created_at >= begin, letters.c.created_at < end)
    if queue is not None:
        these = these.where(letters.c.queue == queue)
    connection.execute(insert(search_queue).from_select(["letter_id"], these))
