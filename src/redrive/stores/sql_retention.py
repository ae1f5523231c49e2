"""What retention asks for: letters that are settled, by the time they were settled, the longest ago first.

Served by the index of settled letters, however many others there are. What the rules keep longer than others is
passed by on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, case, func, literal, select, text, tuple_

from redrive.dead_letter import Status, Version
from redrive.keeping import SETTLED as SETTLED_STATUSES
from redrive.keeping import Ended, EndedCount
from redrive.stores.schema import SETTLED, letters, revisions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.keeping import Limits

VERSION = (letters.c.id, letters.c.changed_at, letters.c.generation, letters.c.revision, letters.c.deliveries)

_SETTLED = {"sqlite": text(f"likelihood({SETTLED.text}, 0.99)"), "postgresql": SETTLED}
"""SQLite would take the index by status, read every settled letter and sort them: it thinks that they are few."""


def ended(connection: Connection, limits: Limits, after: Version | None, limit: int) -> list[Ended]:
    columns = letters.c
    query = select(*VERSION, columns.queue, columns.status).where(_old(connection, limits))
    if after is not None:
        place = tuple_(_at(after.changed_at), literal(after.id, columns.id.type))
        query = query.where(tuple_(columns.changed_at, columns.id) > place)
    rows = connection.execute(query.order_by(columns.changed_at, columns.id).limit(limit))
    return [Ended(version_of(row), row.queue, Status(row.status)) for row in rows]


def count_ended(connection: Connection, limits: Limits, *, sizes: bool) -> list[EndedCount]:
    columns, number = letters.c, func.count().label("letters")
    by = (columns.queue, columns.status)
    query = select(*by, number).where(_old(connection, limits)).group_by(*by).order_by(*by)
    found = [EndedCount(row.queue, Status(row.status), row.letters) for row in connection.execute(query)]
    if not sizes:
        return found
    bodies = _bytes(connection, limits)
    return [msgspec.structs.replace(each, bytes=bodies.get((each.queue, str(each.status)), 0)) for each in found]


def _bytes(connection: Connection, limits: Limits) -> dict[tuple[str, str], int]:
    """Databases know a value's length without reading it."""
    columns = letters.c
    size = func.sum(func.length(revisions.c.body)).label("size")
    joined = letters.join(revisions, revisions.c.letter_id == columns.id)
    query = select(columns.queue, columns.status, size).select_from(joined).where(_old(connection, limits))
    rows = connection.execute(query.group_by(columns.queue, columns.status))
    return {(row.queue, row.status): int(row.size or 0) for row in rows}


def _old(connection: Connection, limits: Limits) -> ColumnElement[bool]:
    """The first two are what the index serves. A CASE, so that no database tries another one for what it says."""
    always = and_(_SETTLED[connection.dialect.name], letters.c.changed_at < limits.latest)
    differing = list(_differing(limits))
    if not differing:
        return always
    return and_(always, letters.c.changed_at < case(*differing, else_=_at(limits.latest)))


def _differing(limits: Limits) -> Iterator[tuple[ColumnElement[bool], ColumnElement[datetime]]]:
    """Each condition whose letters have a limit of their own, the queues' first."""
    for queue in limits.queues:
        for status in SETTLED_STATUSES:
            of_both = and_(letters.c.queue == queue, letters.c.status == str(status))
            yield of_both, _at(limits.of(queue, status))
    for status in SETTLED_STATUSES:
        if limits.otherwise.of(status) != limits.latest:
            yield letters.c.status == str(status), _at(limits.otherwise.of(status))


def _at(moment: datetime) -> ColumnElement[datetime]:
    return literal(moment, letters.c.changed_at.type)


def version_of(row: Any) -> Version:
    return Version(
        id=row.id,
        changed_at=row.changed_at,
        generation=row.generation,
        revision=row.revision,
        deliveries=row.deliveries,
    )
