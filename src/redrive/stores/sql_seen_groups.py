"""Groups of a span of time: which are new, and which had been quiet, settled or sent back before."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, union_all

from redrive.dead_letter import Status
from redrive.insights import Appearance, Return, SeenGroup
from redrive.stores.columns import microseconds, moment
from redrive.stores.expressions import one_of
from redrive.stores.schema import groups, letters
from redrive.stores.sql_counters import HOUR, counted_in
from redrive.stores.sql_group_pages import by_ids, wholly_inside
from redrive.stores.sql_scope import inside

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.access import Scope
    from redrive.dead_letter import FailureGroup

QUIET = timedelta(days=3)
LOOKED_AT = 200
"""Groups of which it is found out whether they return: those with the most letters, and the newest."""
_NEWEST_LETTERS = 20
SETTLED_STATUSES = (str(Status.RESOLVED), str(Status.DISCARDED))
_RANK = {Appearance.NEW: 0, Appearance.RETURNING: 1, Appearance.KNOWN: 2}


def seen_groups(
    connection: Connection, since: datetime, until: datetime, *, limit: int, now: datetime, within: Scope = None
) -> list[SeenGroup]:
    begin = moment(microseconds(since) // HOUR * HOUR)
    numbers = _numbers(connection, begin, until, since, within)
    known = by_ids(connection, list(numbers), now)
    # What came in the hour that the span begins in is counted as of the span, so nothing is known of before.
    old = [each.id for each in known.values() if each.first_seen < begin]
    returns = _returns(connection, old, begin)
    found = [_seen(group, numbers[group.id], since, returns.get(group.id)) for group in known.values()]
    return sorted(found, key=_first)[:limit]


def _seen(group: FailureGroup, number: int, since: datetime, why: Return | None) -> SeenGroup:
    if group.first_seen >= since:
        return SeenGroup(group=group, letters=number, appearance=Appearance.NEW)
    appearance = Appearance.KNOWN if why is None else Appearance.RETURNING
    return SeenGroup(group=group, letters=number, appearance=appearance, why=why)


def _first(seen: SeenGroup) -> tuple[int, float, int, str]:
    newest = -seen.group.first_seen.timestamp() if seen.appearance is Appearance.NEW else 0.0
    return _RANK[seen.appearance], newest, -seen.letters, seen.group.id


def _numbers(
    connection: Connection, begin: datetime, until: datetime, since: datetime, within: Scope
) -> dict[str, int]:
    """Of the groups that are looked at. The span's first and last hours are counted whole."""
    parts, _ = counted_in(begin, moment(-(-microseconds(until) // HOUR) * HOUR))
    every = [select(each.c.group_id, each.c.queue, each.c.letters) for each in parts]
    counted = union_all(*every).subquery("counted")
    number = func.sum(counted.c.letters).label("number")
    sums = select(counted.c.group_id, number).where(*inside(counted.c.queue, within))
    summed = sums.group_by(counted.c.group_id).having(number > 0).subquery("summed")
    query = select(groups.c.id, summed.c.number).join(summed, summed.c.group_id == groups.c.id)
    query = query.where(*wholly_inside(groups, within))
    newest = query.where(groups.c.first_seen >= since).order_by(groups.c.first_seen.desc(), groups.c.id)
    most = query.order_by(summed.c.number.desc(), groups.c.id)
    found: dict[str, int] = {}
    for each in (newest, most):
        found |= {row.id: int(row.number) for row in connection.execute(each.limit(LOOKED_AT))}
    return found


def _returns(connection: Connection, ids: Sequence[str], begin: datetime) -> dict[str, Return]:
    if not ids:
        return {}
    recent = groups_with(connection, ids, begin - QUIET, begin)
    left_open = groups_with(connection, ids, None, begin, only_open=True)
    back = _came_back(connection, ids)
    found: dict[str, Return] = {}
    for each in ids:
        if each not in recent:
            found[each] = Return.QUIET
        elif each not in left_open:
            found[each] = Return.SETTLED
        elif each in back:
            found[each] = Return.CAME_BACK
    return found


def groups_with(
    connection: Connection, ids: Sequence[str], since: datetime | None, until: datetime, *, only_open: bool = False
) -> set[str]:
    """Those that have letters of the span. Both ends are whole hours, so that counters know all of it."""
    counted, _ = counted_in(since, until)
    numbers: dict[str, int] = {}
    for each in counted:
        mine = [one_of(each.c.group_id, list(ids), connection.dialect.name)]
        if only_open:
            mine.append(each.c.status.not_in(SETTLED_STATUSES))
        query = select(each.c.group_id, func.sum(each.c.letters)).where(*mine).group_by(each.c.group_id)
        for group_id, number in connection.execute(query):
            numbers[group_id] = numbers.get(group_id, 0) + int(number)
    return {group_id for group_id, number in numbers.items() if number > 0}


def _came_back(connection: Connection, ids: Sequence[str]) -> set[str]:
    """One of the newest letters of the group was sent back before: one look into the index per group."""
    order = (letters.c.created_at.desc(), letters.c.id.desc())
    newest = select(letters.c.generation).where(letters.c.group_id == groups.c.id).order_by(*order)
    each = newest.limit(_NEWEST_LETTERS).correlate(groups).subquery("newest")
    latest = select(func.max(each.c.generation)).scalar_subquery()
    mine = one_of(groups.c.id, list(ids), connection.dialect.name)
    rows: Sequence[Any] = connection.execute(select(groups.c.id, latest.label("latest")).where(mine)).all()
    return {row.id for row in rows if (row.latest or 1) > 1}
