"""What the fields of a filter are known to be, for completion: out of the counters, at any number of letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from redrive.search_terms import Field
from redrive.statistics import KnownValue
from redrive.stores.schema import groups
from redrive.stores.sql_counters import totals_now
from redrive.stores.sql_scope import inside
from redrive.stores.sql_search_fields import begins

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from redrive.access import Scope

_COUNTED = {
    Field.QUEUE: ("queue",),
    Field.TYPE: ("short_type", "type"),
    Field.HANDLER: ("handler",),
    Field.KIND: ("kind",),
    Field.STATUS: ("status",),
    Field.EVENT: ("event_type",),
    Field.GROUP: ("group_id",),
    Field.OWNER: ("owner",),
}


def known_values(
    connection: Connection, field: Field, beginning: str, limit: int, within: Scope = None
) -> list[KnownValue]:
    """Those with the most letters first; none for a field that nothing is counted by."""
    found: dict[str, int] = {}
    for name in _COUNTED.get(field, ()):
        for value, number in _most(connection, name, beginning, limit, within):
            found[value] = max(number, found.get(value, 0))  # a type without dots is its own last part
    titles = _titles(connection, found, within) if field is Field.GROUP else {}
    most = sorted(found.items(), key=lambda each: (-each[1], each[0]))[:limit]
    return [KnownValue(value, number, titles.get(value, "")) for value, number in most]


def _most(connection: Connection, name: str, beginning: str, limit: int, within: Scope) -> list[tuple[str, int]]:
    counted = totals_now()
    number = func.sum(counted.c.letters)
    column = groups.c.owner if name == "owner" else counted.c[name]
    query = select(column, number).where(begins(column, beginning), *inside(counted.c.queue, within))
    if name == "owner":
        query = query.join(groups, groups.c.id == counted.c.group_id).where(*inside(groups.c.queue, within))
    query = query.group_by(column).having(number > 0).order_by(number.desc(), column).limit(limit)
    return [(value, int(total)) for value, total in connection.execute(query)]


def _titles(connection: Connection, group_ids: Iterable[str], within: Scope) -> dict[str, str]:
    """A group of a queue outside the scope, which letters inside it were merged into, has none to tell."""
    query = select(groups.c.id, groups.c.title).where(groups.c.id.in_(list(group_ids)))
    query = query.where(*inside(groups.c.queue, within))
    return {row.id: row.title for row in connection.execute(query)}
