"""What retention asks for: letters that are settled, by the time they were settled, the longest ago first.

Served by the index of settled letters, however many others there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, literal, select, text, tuple_

from redrive.dead_letter import Version
from redrive.stores.schema import SETTLED, letters

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

VERSION = (letters.c.id, letters.c.changed_at, letters.c.generation, letters.c.revision, letters.c.deliveries)

_SETTLED = {"sqlite": text(f"likelihood({SETTLED.text}, 0.99)"), "postgresql": SETTLED}
"""SQLite would take the index by status, read every settled letter and sort them: it thinks that they are few."""


def ended(connection: Connection, before: datetime, after: Version | None, limit: int) -> list[Version]:
    columns = letters.c
    query = select(*VERSION).where(_settled_before(connection, before))
    if after is not None:
        place = tuple_(literal(after.changed_at, columns.changed_at.type), literal(after.id, columns.id.type))
        query = query.where(tuple_(columns.changed_at, columns.id) > place)
    rows = connection.execute(query.order_by(columns.changed_at, columns.id).limit(limit))
    return [version_of(row) for row in rows]


def count_ended(connection: Connection, before: datetime) -> int:
    query = select(func.count()).select_from(letters).where(_settled_before(connection, before))
    return connection.scalar(query) or 0


def _settled_before(connection: Connection, before: datetime) -> ColumnElement[bool]:
    return and_(_SETTLED[connection.dialect.name], letters.c.changed_at < before)


def version_of(row: Any) -> Version:
    return Version(
        id=row.id,
        changed_at=row.changed_at,
        generation=row.generation,
        revision=row.revision,
        deliveries=row.deliveries,
    )
