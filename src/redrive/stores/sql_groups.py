"""Groups and their counters: `total` is the number of a group's letters, exact at every commit.

A group begins with its first letter and disappears with its last one: what is purged leaves nothing to show.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, update

from redrive.dead_letter import FailureGroup, Status
from redrive.message import cut
from redrive.stores.expressions import earlier, insert_into, later
from redrive.stores.schema import groups, letters

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection, Select
    from sqlalchemy.dialects.sqlite import Insert

    from redrive.dead_letter import Entry

_TITLE_BUDGET = 512


def join(connection: Connection, letter_id: str, entry: Entry, queue: str) -> None:
    """One more letter, in a group that is made if need be."""
    connection.execute(
        _join(connection.dialect.name),
        {
            "id": entry.fingerprint.id,
            "title": cut(entry.fingerprint.title, _TITLE_BUDGET),
            "queue": queue,
            "handler": entry.handler,
            "first_seen": entry.at,
            "last_seen": entry.at,
            "total": 1,
            "example": letter_id,
        },
    )


@cache
def _join(dialect: str) -> Insert:
    new = insert_into(groups, dialect)
    return new.on_conflict_do_update(
        index_elements=[groups.c.id],
        set_={
            "first_seen": earlier(groups.c.first_seen, new.excluded.first_seen),
            "last_seen": later(groups.c.last_seen, new.excluded.last_seen),
            "total": groups.c.total + 1,
            "example": later(groups.c.example, new.excluded.example),  # ids sort by time
        },
    )


def leave(connection: Connection, gone: Mapping[str, int]) -> None:
    """So many letters of each group are no longer in it; called when their rows already say so."""
    for group_id, number in gone.items():
        newest = select(func.max(letters.c.id)).where(letters.c.group_id == group_id).scalar_subquery()
        connection.execute(
            update(groups)
            .where(groups.c.id == group_id)
            .values(total=groups.c.total - number, example=func.coalesce(newest, groups.c.example))
        )
    connection.execute(delete(groups).where(groups.c.id.in_(list(gone)), groups.c.total <= 0))


def seen_again(connection: Connection, group_id: str, at: datetime) -> None:
    connection.execute(
        update(groups).where(groups.c.id == group_id).values(last_seen=later(groups.c.last_seen, at))
    )


def list_groups(connection: Connection, queue: str | None, limit: int) -> list[FailureGroup]:
    pending = (
        select(letters.c.group_id, func.count().label("pending"))
        .where(letters.c.status == Status.PENDING)
        .group_by(letters.c.group_id)
        .subquery()
    )
    number = func.coalesce(pending.c.pending, 0)
    query: Select[tuple[object, ...]] = (
        select(groups, number.label("pending"))
        .join(pending, pending.c.group_id == groups.c.id, isouter=True)
        .order_by(number.desc(), groups.c.last_seen.desc(), groups.c.id)
        .limit(limit)
    )
    if queue is not None:
        query = query.where(groups.c.queue == queue)
    return [FailureGroup(**row) for row in connection.execute(query).mappings()]
