"""What is plain, or sealed by a data key of before, is sealed by the current one: a few letters at a time, behind
the work that goes on. A row is changed only if it is still as it was read, so any number may do it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from redrive.dead_letter import Unreadable
from redrive.privacy.encryption.envelope import Place
from redrive.stores.key_store import Resealed
from redrive.stores.schema import failures, letters, revisions
from redrive.stores.sealing import EXACT, TOLD, sealing_of, told_at
from redrive.stores.sql_whole import portions

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Connection, Row, Table

    from redrive.stores.expressions import Values
    from redrive.stores.sealing import Sealing

_LOOKED_AT = 500
_TABLES = (revisions, failures)


def reseal(connection: Connection, after: str, former: Collection[bytes]) -> Resealed:
    next_ids = select(letters.c.id).where(letters.c.id > after).order_by(letters.c.id).limit(_LOOKED_AT)
    ids = list(connection.scalars(next_ids))
    if not ids:
        return Resealed(None)
    due = _due(connection, ids, former)
    # No more than may be in memory at once; the others come with the next step.
    taken = portions(connection, due, story=True)[0] if due else []
    sealed = _reseal(connection, taken, former)
    reached = taken[-1] if len(taken) < len(due) else ids[-1]
    return Resealed(reached, looked_at=sum(each <= reached for each in ids), sealed=sealed)


def _due(connection: Connection, letter_ids: Sequence[str], former: Collection[bytes]) -> list[str]:
    found = set()
    for table in _TABLES:
        rows = connection.execute(
            select(table.c.letter_id, table.c.data_key).where(table.c.letter_id.in_(letter_ids))
        )
        found |= {row.letter_id for row in rows if _is_due(row, former)}
    return sorted(found)


def _is_due(row: Any, former: Collection[bytes]) -> bool:
    return row.data_key is None or row.data_key in former


def _reseal(connection: Connection, letter_ids: Sequence[str], former: Collection[bytes]) -> int:
    own = select(letters.c.id, letters.c.queue, letters.c.created_at).where(letters.c.id.in_(letter_ids))
    known: dict[str, Any] = {row.id: row for row in connection.execute(own)}
    sealing, changed = sealing_of(connection), set()
    for table in _TABLES:
        rows = connection.execute(
            select(table).where(table.c.letter_id.in_(list(known))).order_by(*table.primary_key)
        ).all()
        due = [row for row in rows if _is_due(row, former)]
        sealing.gather(row.data_key for row in due)
        changed |= {row.letter_id for row in due if _reseal_row(connection, table, row, known[row.letter_id])}
    return len(changed)


def _reseal_row(connection: Connection, table: Table, row: Row[Any], letter: Row[Any]) -> bool:
    sealing = sealing_of(connection)
    held = _held(table, row, sealing)
    if isinstance(held, Unreadable):
        return False
    key = {each.name: getattr(row, each.name) for each in table.primary_key}
    seal = sealing.revision if table is revisions else sealing.failure
    new = seal({**key, **held}, queue=letter.queue, created_at=letter.created_at)
    if "data_key" not in new:  # this process seals nothing
        return False
    same = (table.c[name] == value for name, value in key.items())
    as_read = table.c.data_key.is_not_distinct_from(row.data_key)
    values = {name: value for name, value in new.items() if name not in key}
    return connection.execute(update(table).where(*same, as_read).values(values)).rowcount == 1


def _held(table: Table, row: Row[Any], sealing: Sealing) -> Values | Unreadable:
    if table is failures:
        place = told_at(row.letter_id, row.generation, row.attempt)
        return sealing.opened(row.data_key, {TOLD: row.told}, lambda _column: place)
    values = {name: getattr(row, name) for name in EXACT}
    return sealing.opened(row.data_key, values, lambda column: Place(row.letter_id, column, row.number))
