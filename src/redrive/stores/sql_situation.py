"""What is going on: letters over time from the counters, redrives from the newest of their rows."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.dead_letter import Status
from redrive.errors import UsageError
from redrive.insights import Arrivals, Endings, GroupArrivals, Situation
from redrive.letter_query import Count
from redrive.stores.columns import microseconds, moment
from redrive.stores.expressions import one_of
from redrive.stores.schema import groups, letters, redrives
from redrive.stores.sql_analyses import MOST_HOURS
from redrive.stores.sql_counters import DAY, HOUR, days_now, failed_within, hours_now
from redrive.stores.sql_facets import counted_by
from redrive.stores.sql_group_pages import wholly_inside
from redrive.stores.sql_runs_outcomes import ENDINGS
from redrive.stores.sql_scope import inside, scope_terms
from redrive.stores.sql_statistics import Matching, oldest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Subquery

    from redrive.access import Scope

COUNTED_REDRIVES = 20_000
COUNTED_ARRIVALS = 50_000
BY_HOUR_UP_TO = timedelta(days=7)
UNDER_WAY = "under way"
_SMALL = timedelta(minutes=5)
_LARGE = timedelta(hours=1)


def situation(
    connection: Connection, since: datetime, until: datetime, now: datetime, within: Scope = None
) -> Situation:
    every = Matching(within)
    now_by_status = counted_by(connection, "status", every, None, None)
    arrived = counted_by(connection, "status", every, since, until)
    return Situation(
        at=now,
        by_status={str(status): now_by_status[str(status)] for status in Status},
        oldest_pending=oldest(connection, within, [Status.PENDING]),
        last_5_minutes=_newest(connection, now - _SMALL, within),
        last_hour=_newest(connection, now - _LARGE, within),
        since=since,
        until=until,
        arrived={str(status): arrived[str(status)] for status in Status},
        redriven=_endings(connection, since, until, within),
    )


def _newest(connection: Connection, since: datetime, within: Scope) -> Count:
    """Letters of minutes are in no counter; a flood of them is not counted to its end."""
    mine = (*inside(letters.c.queue, within), *failed_within(microseconds(since), None))
    found = select(letters.c.created_at).where(*mine).limit(COUNTED_ARRIVALS + 1).subquery()
    number = connection.scalar(select(func.count()).select_from(found)) or 0
    return Count(min(number, COUNTED_ARRIVALS), exact=number <= COUNTED_ARRIVALS)


def _endings(connection: Connection, since: datetime, until: datetime, within: Scope) -> Endings:
    """By their ids, which tell when they were made: those of a time lie beside each other."""
    outcome = func.coalesce(redrives.c.outcome, UNDER_WAY).label("outcome")
    first, last = _id_at(since), _id_at(until)
    query = select(outcome).where(redrives.c.redrive_id >= first, redrives.c.redrive_id < last)
    query = query.where(outcome.in_([UNDER_WAY, *ENDINGS]))
    if scope_terms(within):
        query = query.join(letters, letters.c.id == redrives.c.letter_id).where(*inside(letters.c.queue, within))
    newest = query.order_by(redrives.c.redrive_id.desc()).limit(COUNTED_REDRIVES + 1).subquery()
    rows = connection.execute(select(newest.c.outcome, func.count()).group_by(newest.c.outcome))
    found = {row[0]: row[1] for row in rows}
    number = sum(found.values())
    return Endings(outcomes=dict(sorted(found.items())), redrives=number, exact=number <= COUNTED_REDRIVES)


def _id_at(at: datetime) -> str:
    """Before every id (UUIDv7) that was made from that moment on."""
    milliseconds = max(0, min(microseconds(at) // 1000, 2**48 - 1))
    text = f"{milliseconds:012x}"
    return f"{text[:8]}-{text[8:]}"


def arrivals(
    connection: Connection, since: datetime, until: datetime, most: int, within: Scope = None
) -> Arrivals:
    by_day = until - since > BY_HOUR_UP_TO
    unit = DAY if by_day else HOUR
    first, end = microseconds(since) // unit, max(-(-microseconds(until) // unit), microseconds(since) // unit + 1)
    if (end - first) * unit // HOUR > MOST_HOURS:
        hours = (end - first) * unit // HOUR
        raise UsageError(f"{hours} hours in one answer", remedy=f"ask for at most {MOST_HOURS} at a time")
    counted = (days_now if by_day else hours_now)(since=first, until=end)
    column = counted.c["day" if by_day else "hour"]
    found = _top(connection, counted, most, within)
    steps = range(first, end)
    per_group = _steps_of(connection, counted, column, [row.id for row in found], within)
    total = _whole(connection, counted, column, within)
    told = tuple(
        GroupArrivals(
            group_id=row.id,
            title=row.title,
            queue=row.queue,
            letters=int(row.number),
            counts=tuple(per_group[row.id].get(step, 0) for step in steps),
        )
        for row in found
    )
    totals = tuple(total.get(step, 0) for step in steps)
    return Arrivals(
        step_hours=unit // HOUR,
        starts=tuple(moment(step * unit) for step in steps),
        groups=told,
        others=tuple(whole - sum(each.counts[at] for each in told) for at, whole in enumerate(totals)),
        total=totals,
    )


def _top(connection: Connection, counted: Subquery, most: int, within: Scope) -> Sequence[Any]:
    number = func.sum(counted.c.letters).label("number")
    sums = select(counted.c.group_id, number).where(*inside(counted.c.queue, within))
    summed = sums.group_by(counted.c.group_id).having(number > 0).subquery("summed")
    query = select(groups.c.id, groups.c.title, groups.c.queue, summed.c.number).join(
        summed, summed.c.group_id == groups.c.id
    )
    query = query.where(*wholly_inside(groups, within)).order_by(summed.c.number.desc(), groups.c.id)
    return connection.execute(query.limit(most)).all()


def _steps_of(
    connection: Connection, counted: Subquery, column: Any, ids: list[str], within: Scope
) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = defaultdict(dict)
    mine = (one_of(counted.c.group_id, ids, connection.dialect.name), *inside(counted.c.queue, within))
    query = select(counted.c.group_id, column, func.sum(counted.c.letters)).where(*mine)
    for group_id, step, number in connection.execute(query.group_by(counted.c.group_id, column)):
        found[group_id][step] = int(number)
    return found


def _whole(connection: Connection, counted: Subquery, column: Any, within: Scope) -> dict[int, int]:
    query = select(column, func.sum(counted.c.letters)).where(*inside(counted.c.queue, within)).group_by(column)
    return {step: int(number) for step, number in connection.execute(query)}
