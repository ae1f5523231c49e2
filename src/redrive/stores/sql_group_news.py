"""Causes that are new, and causes that are back, for rules of alerts: all of them, however many others fail more.

Counters say of which groups it may be so, in whole hours; letters say of these whether it is, to the moment.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, case, func, select

from redrive.alerts.observed import NewGroups, Returned
from redrive.dead_letter import OPEN
from redrive.insights import Return
from redrive.stores.columns import microseconds, moment
from redrive.stores.expressions import lots, one_of
from redrive.stores.schema import RETURNED, groups, letters
from redrive.stores.sql_change import ASSUMED
from redrive.stores.sql_counters import HOUR, hours_now, totals_now
from redrive.stores.sql_redrive import CONFIRMED
from redrive.stores.sql_seen_groups import QUIET, SETTLED_STATUSES, groups_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

_BEFORE = 20
"""Letters before the one that it is back with, of which it is asked whether and when they were settled."""
_BY_ITSELF = (CONFIRMED, ASSUMED)
_MOST_ACTIVE = 20_000
"""Groups that may have letters of the last hours for all of them to be asked about."""


def new_groups(connection: Connection, since: datetime, *, limit: int) -> NewGroups:
    """Those with open letters: the newest of them, and how many there are besides."""
    fresh = groups.c.first_seen >= since
    now = totals_now()
    mine = now.c.group_id.in_(select(groups.c.id).where(fresh))
    opened = select(now.c.group_id).where(mine, now.c.status.in_([str(each) for each in OPEN]))
    opened = opened.group_by(now.c.group_id).having(func.sum(now.c.letters) > 0)
    there = (fresh, groups.c.id.in_(opened))
    newest = select(groups.c.id, groups.c.queue).where(*there).order_by(groups.c.first_seen.desc(), groups.c.id)
    found = connection.execute(newest.limit(limit)).all()
    more: Counter[str] = Counter()
    if len(found) == limit:
        counts = select(groups.c.queue, func.count()).where(*there).group_by(groups.c.queue)
        more.update({queue: int(count) for queue, count in connection.execute(counts)})
        more.subtract(row.queue for row in found)
    return NewGroups(tuple(row.id for row in found), +more)


def returned_groups(connection: Connection, since: datetime, *, limit: int) -> dict[str, Returned]:
    """Of each reason, `limit` at most."""
    start = moment(microseconds(since) // HOUR * HOUR)
    active = _active(connection, start)
    found = {each: Returned(Return.CAME_BACK) for each in _came_back(connection, since, limit)}
    found |= {each: Returned(Return.QUIET) for each in _after_quiet(connection, list(active), start)[:limit]}
    return found | _after_settling(connection, active, since, start, limit)


def _came_back(connection: Connection, since: datetime, limit: int) -> list[str]:
    """A letter that comes back stays as old as it was; it has changed when it did."""
    back = select(letters.c.group_id).where(RETURNED, letters.c.changed_at >= since).distinct()
    return list(connection.scalars(back.limit(limit)))


def _active(connection: Connection, start: datetime) -> dict[str, int]:
    """Groups that have letters since then, and how many of these are not settled."""
    now = hours_now(since=microseconds(start) // HOUR)
    left = func.sum(case((now.c.status.in_(SETTLED_STATUSES), 0), else_=now.c.letters))
    query = select(now.c.group_id, left).group_by(now.c.group_id).having(func.sum(now.c.letters) > 0)
    rows = connection.execute(query.order_by(now.c.group_id).limit(_MOST_ACTIVE))
    return {group_id: int(number) for group_id, number in rows}


def _after_quiet(connection: Connection, ids: Sequence[str], start: datetime) -> list[str]:
    found: list[str] = []
    for lot in lots(ids):
        mine = one_of(groups.c.id, lot, connection.dialect.name)
        old = connection.scalars(select(groups.c.id).where(mine, groups.c.first_seen < start)).all()
        before = groups_with(connection, old, start - QUIET, start) if old else ()
        found += [each for each in old if each not in before]
    return found


def _after_settling(
    connection: Connection, active: Mapping[str, int], since: datetime, start: datetime, limit: int
) -> dict[str, Returned]:
    found: dict[str, Returned] = {}
    for lot in lots(each for each, left in active.items() if left > 0):
        maybe = _maybe_settled(connection, lot, active)
        for row in _first_and_before(connection, maybe, start) if maybe else ():
            # What was settled only after the first of those that are open now had come went on all the time.
            if row.arrived is None or row.arrived < since or row.settled is None or row.settled > row.arrived:
                continue
            quiet = row.created - row.last >= QUIET
            found[row.id] = Returned(Return.QUIET if quiet else Return.SETTLED, by_hand=bool(row.by_hand))
        if len(found) >= limit:
            break
    return found


def _maybe_settled(connection: Connection, ids: list[str], active: Mapping[str, int]) -> list[str]:
    """Something of them is settled, and what is not has come lately, all of it."""
    now = totals_now()
    is_settled = now.c.status.in_(SETTLED_STATUSES)
    left = func.sum(case((is_settled, 0), else_=now.c.letters)).label("left")
    settled = func.sum(case((is_settled, now.c.letters), else_=0)).label("settled")
    mine = one_of(now.c.group_id, ids, connection.dialect.name)
    rows = connection.execute(select(now.c.group_id, left, settled).where(mine).group_by(now.c.group_id))
    return [row.group_id for row in rows if row.settled > 0 and row.left == active[row.group_id]]


def _first_and_before(connection: Connection, ids: list[str], begin: datetime) -> Sequence[Any]:
    """Of each group the oldest letter that is not settled, and when those right before it were: a few looks into
    the index of its letters.
    """
    first = letters.alias("first")
    oldest = select(first).where(
        first.c.group_id == groups.c.id, first.c.created_at >= begin, first.c.status.not_in(SETTLED_STATUSES)
    )
    one = oldest.order_by(first.c.created_at, first.c.id).limit(1).correlate(groups).subquery("one")
    created = select(one.c.created_at).scalar_subquery()
    # Untouched, it has changed when it was recorded: later than it failed, if a spool had it.
    untouched = and_(one.c.fence == 0, one.c.revision == 0)
    arrived = select(case((untouched, one.c.changed_at), else_=one.c.created_at)).scalar_subquery()
    earlier = select(letters.c.created_at, letters.c.changed_at, letters.c.how).where(
        letters.c.group_id == groups.c.id, letters.c.created_at < created
    )
    newest = earlier.order_by(letters.c.created_at.desc(), letters.c.id.desc()).limit(_BEFORE)
    before = newest.correlate(groups).subquery("newest")
    by_hand = func.max(case((before.c.how.in_(_BY_ITSELF), 0), else_=1))
    query = select(
        groups.c.id,
        created.label("created"),
        arrived.label("arrived"),
        select(func.max(before.c.changed_at)).scalar_subquery().label("settled"),
        select(func.max(before.c.created_at)).scalar_subquery().label("last"),
        select(by_hand).scalar_subquery().label("by_hand"),
    )
    mine = one_of(groups.c.id, ids, connection.dialect.name)
    rows: Sequence[Any] = connection.execute(query.where(mine)).all()
    return rows
