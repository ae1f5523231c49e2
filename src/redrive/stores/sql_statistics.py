"""S2's statistics and S0's monitor: counted at one moment, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import case, func, select

from redrive.dead_letter import OPEN, Status
from redrive.statistics import FailureRate, HandlerTally, Statistics
from redrive.stores.expressions import insert_into
from redrive.stores.schema import groups, handler_attempts, letters
from redrive.stores.sql_counters import HOUR, count, failed_within, first_hour, totals_now
from redrive.stores.sql_scope import inside, scope_terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.access import Scope

MOST_NAMES = 1000
"""Queues, types and handlers in one answer: the most frequent. Names come from messages, and may be endless."""
MOST_REASONS = 50


class Matching:
    """Letters of the scope; if `statuses` are given, those that are in one of them."""

    def __init__(self, within: Scope, statuses: Iterable[Status] = ()) -> None:
        self._within = within
        self._statuses = [str(status) for status in statuses]

    def __call__(self, columns: Any) -> list[ColumnElement[bool]]:
        status = [columns["status"].in_(self._statuses)] if self._statuses else []
        return [*status, *inside(columns["queue"], self._within)]


def statistics(connection: Connection, older_than: datetime | None, within: Scope = None) -> Statistics:
    every, are_open = Matching(within), Matching(within, OPEN)
    found = dict(counted(connection, "status", every))
    by_status = {str(status): found.get(str(status), 0) for status in Status}
    return Statistics(
        total=sum(by_status.values()),
        by_status=by_status,
        by_queue=dict(counted(connection, "queue", are_open)),
        by_type=dict(counted(connection, "type", are_open)),
        reasons=by_title(connection, are_open, within, MOST_REASONS),
        failure_rates=_failure_rates(connection, within),
        oldest=oldest(connection, within, OPEN),
        older=0 if older_than is None else count(connection, are_open, None, older_than),
    )


def tally(connection: Connection, tallies: Sequence[HandlerTally]) -> None:
    new = insert_into(handler_attempts, connection.dialect.name)
    add = new.on_conflict_do_update(
        index_elements=[handler_attempts.c.handler, handler_attempts.c.queue],
        set_={
            "succeeded": handler_attempts.c.succeeded + new.excluded.succeeded,
            "failed": handler_attempts.c.failed + new.excluded.failed,
        },
    )
    # In one order for all: two processes that count the same handlers would else wait for each other.
    for each in sorted(tallies, key=lambda each: (each.handler, each.queue)):
        row = {"handler": each.handler, "queue": each.queue, "succeeded": each.succeeded, "failed": each.failed}
        connection.execute(add, row)


def counted(connection: Connection, by: str, matching: Matching) -> list[tuple[str, int]]:
    now = totals_now()
    number, column = func.sum(now.c.letters), now.c[by]
    query = select(column, number).where(*matching(now.c)).group_by(column)
    query = query.having(number > 0).order_by(number.desc(), column)
    return [(name, int(count)) for name, count in connection.execute(query.limit(MOST_NAMES))]


def oldest(connection: Connection, within: Scope, statuses: Collection[Status]) -> datetime | None:
    """When the oldest letter in one of them failed. Status by status, for each has its own place in the index.
    Counters tell from where on letters of the scope are found there: before it may be any number of others.
    """
    first = select(func.min(letters.c.created_at)).where(*inside(letters.c.queue, within))
    if scope_terms(within):
        hour = first_hour(connection, Matching(within, statuses))
        if hour is None:
            return None
        first = first.where(*failed_within(hour * HOUR, (hour + 1) * HOUR))
    found = [connection.scalar(first.where(letters.c.status == str(status))) for status in statuses]
    return min((each for each in found if each is not None), default=None)


def by_title(connection: Connection, matching: Matching, within: Scope, limit: int) -> list[tuple[str, int]]:
    """Causes by their titles, the most letters first.

    Letters of the scope may be in a group of a queue outside of it, if somebody merged the two. Its title tells of
    letters outside: such letters are told by the type of what was raised.
    """
    now = totals_now()
    title: ColumnElement[str] = groups.c.title
    for own in inside(groups.c.queue, within):
        title = case((own, groups.c.title), else_=now.c.short_type)
    joined = select(title.label("title"), now.c.letters).join(now, now.c.group_id == groups.c.id)
    told = joined.where(*matching(now.c)).subquery("told")
    number = func.sum(told.c.letters)
    query = select(told.c.title, number).group_by(told.c.title).having(number > 0)
    rows = connection.execute(query.order_by(number.desc(), told.c.title).limit(limit))
    return [(title, int(count)) for title, count in rows]


def _failure_rates(connection: Connection, within: Scope) -> list[FailureRate]:
    """Per handler, over all its queues, the worst first."""
    succeeded = func.sum(handler_attempts.c.succeeded)
    failed = func.sum(handler_attempts.c.failed)
    query = select(handler_attempts.c.handler, succeeded, failed).group_by(handler_attempts.c.handler)
    query = query.where(*inside(handler_attempts.c.queue, within))
    rows = connection.execute(query.order_by(failed.desc(), handler_attempts.c.handler).limit(MOST_NAMES))
    rates = [FailureRate(handler, int(good), int(bad)) for handler, good, bad in rows]
    return sorted(rates, key=lambda each: (-each.rate, each.handler))
