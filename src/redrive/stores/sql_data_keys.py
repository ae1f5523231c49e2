"""Wrapped data keys in the store's own database.

With the first of them the database says that a Redrive which knows no sealed columns may not work on it any more:
it would send what is sealed as if it were the message.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select, update

from redrive.privacy.encryption.data_keys import WrappedKey
from redrive.privacy.encryption.envelope import MOST_USES
from redrive.privacy.encryption.key_source import Wrapped
from redrive.stores.expressions import insert_into
from redrive.stores.schema import compatibility
from redrive.stores.schema_data_keys import data_keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from sqlalchemy import Connection, Row

    Run = Callable[[Callable[[Connection], Any]], Awaitable[Any]]

_SEALED_SINCE = "0011"


class SqlDataKeys:
    """A `DataKeys` whose methods are transactions of the store."""

    def __init__(self, read: Run, write: Run) -> None:
        self._read = read
        self._write = write

    async def find(self, ids: Collection[bytes]) -> Mapping[bytes, WrappedKey]:
        return await self._read(lambda connection: find(connection, ids)) if ids else {}

    async def current(self, queue: str, day: date) -> WrappedKey | None:
        return await self._read(lambda connection: _current(connection, queue, day))  # type: ignore[no-any-return]

    async def add(self, key: WrappedKey) -> WrappedKey:
        return await self._write(lambda connection: _add(connection, key))  # type: ignore[no-any-return]

    async def reserve(self, key_id: bytes, uses: int) -> bool:
        return await self._write(lambda connection: _reserve(connection, key_id, uses))  # type: ignore[no-any-return]

    async def wrapped_by_others(self, kek_id: str, *, after: bytes, limit: int) -> Sequence[WrappedKey]:
        others = select(data_keys).where(data_keys.c.kek_id != kek_id, data_keys.c.id > after)
        page = others.order_by(data_keys.c.id).limit(limit)
        return await self._read(lambda connection: [_key(row) for row in connection.execute(page)])  # type: ignore[no-any-return]

    async def rewrap(self, old: WrappedKey, new: WrappedKey) -> bool:
        return await self._write(lambda connection: _rewrap(connection, old, new))  # type: ignore[no-any-return]

    async def shred(self, queue: str | None, first: date, last: date) -> Sequence[bytes]:
        return await self._write(lambda connection: shred(connection, queue, first, last))  # type: ignore[no-any-return]


def find(connection: Connection, ids: Collection[bytes]) -> dict[bytes, WrappedKey]:
    rows = connection.execute(select(data_keys).where(data_keys.c.id.in_(sorted(ids))))
    return {row.id: _key(row) for row in rows}


def gone_of(connection: Connection, ids: Collection[bytes]) -> set[bytes]:
    """Those that are not there any more."""
    return set(ids) - set(connection.scalars(select(data_keys.c.id).where(data_keys.c.id.in_(sorted(ids)))))


def by_kek(connection: Connection) -> dict[str, int]:
    """How many data keys each key wraps."""
    counted = select(data_keys.c.kek_id, func.count()).group_by(data_keys.c.kek_id).order_by(data_keys.c.kek_id)
    return {row[0]: row[1] for row in connection.execute(counted)}


def shred(connection: Connection, queue: str | None, first: date, last: date) -> list[bytes]:
    named = delete(data_keys).where(data_keys.c.day.between(first.isoformat(), last.isoformat()))
    if queue is not None:
        named = named.where(data_keys.c.queue == queue)
    return list(connection.scalars(named.returning(data_keys.c.id)))


def retire(connection: Connection) -> list[bytes]:
    """They seal nothing any more, and open what they have sealed; their ids."""
    used_up = update(data_keys).values(uses=MOST_USES)
    return list(connection.scalars(used_up.returning(data_keys.c.id)))


def _current(connection: Connection, queue: str, day: date) -> WrappedKey | None:
    own = select(data_keys).where(data_keys.c.queue == queue, data_keys.c.day == day.isoformat())
    row = connection.execute(own.order_by(data_keys.c.turn.desc()).limit(1)).one_or_none()
    return None if row is None else _key(row)


def _add(connection: Connection, key: WrappedKey) -> WrappedKey:
    new = {
        "id": key.id,
        "queue": key.queue,
        "day": key.day.isoformat(),
        "turn": key.turn,
        "kek_id": key.wrapped.kek_id,
        "wrapped": key.wrapped.data,
        "uses": 0,
    }
    connection.execute(insert_into(data_keys, connection.dialect.name).on_conflict_do_nothing(), new)
    connection.execute(
        update(compatibility).where(compatibility.c.oldest < _SEALED_SINCE).values(oldest=_SEALED_SINCE)
    )
    own = (data_keys.c.queue == key.queue, data_keys.c.day == new["day"], data_keys.c.turn == key.turn)
    return _key(connection.execute(select(data_keys).where(*own)).one())


def _reserve(connection: Connection, key_id: bytes, uses: int) -> bool:
    room = update(data_keys).where(data_keys.c.id == key_id, data_keys.c.uses + uses <= MOST_USES)
    return connection.execute(room.values(uses=data_keys.c.uses + uses)).rowcount == 1


def _rewrap(connection: Connection, old: WrappedKey, new: WrappedKey) -> bool:
    same = (data_keys.c.kek_id == old.wrapped.kek_id, data_keys.c.wrapped == old.wrapped.data)
    changed = update(data_keys).where(data_keys.c.id == old.id, *same)
    values = {"kek_id": new.wrapped.kek_id, "wrapped": new.wrapped.data}
    return connection.execute(changed.values(values)).rowcount == 1


def _key(row: Row[Any]) -> WrappedKey:
    return WrappedKey(row.id, row.queue, date.fromisoformat(row.day), Wrapped(row.kek_id, row.wrapped), row.turn)
