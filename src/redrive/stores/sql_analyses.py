"""S1's analyses, from the counters: they cost the same for a thousand letters and for millions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import case, func, select

from redrive.dead_letter import Status
from redrive.errors import UsageError
from redrive.statistics import EventTypeCount, HourlyRate, ResolutionTime, TopError
from redrive.stores.columns import microseconds, moment
from redrive.stores.sql_counters import HOUR, hours_now, rates_now, totals_now
from redrive.stores.sql_scope import inside, scope_terms
from redrive.stores.sql_statistics import MOST_NAMES, Matching, by_title

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Subquery

    from redrive.access import Scope

USUAL_SPAN = timedelta(days=7)
MOST_HOURS = 24 * 366 * 3

_MS_PER_HOUR = 3_600_000


def top_errors(connection: Connection, limit: int, within: Scope = None) -> list[TopError]:
    found = by_title(connection, Matching(within, [Status.PENDING]), within, limit)
    return [TopError(title, number) for title, number in found]


def error_rate(connection: Connection, since: datetime, until: datetime, within: Scope = None) -> list[HourlyRate]:
    first, end = microseconds(since) // HOUR, -(-microseconds(until) // HOUR)
    if end - first > MOST_HOURS:
        raise UsageError(f"{end - first} hours in one answer", remedy=f"ask for at most {MOST_HOURS} at a time")
    everything = not scope_terms(within)
    now = rates_now(since=first, until=end) if everything else hours_now(since=first, until=end)
    query = select(now.c.hour, func.sum(now.c.letters)).group_by(now.c.hour)
    if not everything:
        query = query.where(*inside(now.c.queue, within))
    found: dict[int, int] = {hour: int(number) for hour, number in connection.execute(query)}
    return [HourlyRate(moment(hour * HOUR), found.get(hour, 0)) for hour in range(first, end)]


def by_event_type(connection: Connection, within: Scope = None) -> list[EventTypeCount]:
    now = totals_now()
    total = func.sum(now.c.letters)
    query = (
        select(now.c.event_type, total, _in(now, Status.PENDING), _in(now, Status.RESOLVED))
        .where(*inside(now.c.queue, within))
        .group_by(now.c.event_type)
        .having(total > 0)
        .order_by(total.desc(), now.c.event_type)
        .limit(MOST_NAMES)
    )
    return [EventTypeCount(name, *map(int, numbers)) for name, *numbers in connection.execute(query)]


def _in(now: Subquery, status: Status) -> ColumnElement[int]:
    return func.sum(case((now.c.status == str(status), now.c.letters), else_=0))


def time_to_resolve(connection: Connection, within: Scope = None) -> ResolutionTime:
    now = totals_now()
    query = select(func.sum(now.c.letters), func.sum(now.c.resolve_ms))
    resolved, spent = connection.execute(query.where(*Matching(within, [Status.RESOLVED])(now.c))).one()
    if not resolved:
        return ResolutionTime(0, None)
    return ResolutionTime(int(resolved), float(spent) / int(resolved) / _MS_PER_HOUR)
