"""S2's statistics and S0's monitor: counted at one moment, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.dead_letter import OPEN, Status
from redrive.statistics import FailureRate, HandlerTally, Statistics
from redrive.stores.expressions import insert_into
from redrive.stores.schema import groups, handler_attempts, letters
from redrive.stores.sql_counters import count, totals_now

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.stores.sql_counters import Matching

MOST_NAMES = 1000
"""Queues, types and handlers in one answer: the most frequent. Names come from messages, and may be endless."""
MOST_REASONS = 50


def _open(columns: Any) -> list[ColumnElement[bool]]:
    return [columns["status"].in_([str(status) for status in OPEN])]


def statistics(connection: Connection, older_than: datetime | None) -> Statistics:
    counted = dict(_counted(connection, "status"))
    by_status = {str(status): counted.get(str(status), 0) for status in Status}
    return Statistics(
        total=sum(by_status.values()),
        by_status=by_status,
        by_queue=dict(_counted(connection, "queue", _open)),
        by_type=dict(_counted(connection, "type", _open)),
        reasons=_reasons(connection),
        failure_rates=_failure_rates(connection),
        oldest=_oldest(connection),
        older=0 if older_than is None else count(connection, _open, None, older_than),
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


def _counted(connection: Connection, by: str, matching: Matching | None = None) -> list[tuple[str, int]]:
    now = totals_now()
    number, column = func.sum(now.c.letters), now.c[by]
    query = select(column, number).where(*(matching(now.c) if matching else ())).group_by(column)
    query = query.having(number > 0).order_by(number.desc(), column)
    return [(name, int(count)) for name, count in connection.execute(query.limit(MOST_NAMES))]


def _oldest(connection: Connection) -> datetime | None:
    """Status by status, for each has its own place in the index."""
    oldest = func.min(letters.c.created_at)
    found = [connection.scalar(select(oldest).where(letters.c.status == str(status))) for status in OPEN]
    return min((each for each in found if each is not None), default=None)


def _reasons(connection: Connection) -> list[tuple[str, int]]:
    now = totals_now()
    number = func.sum(now.c.letters)
    query = (
        select(groups.c.title, number)
        .join(now, now.c.group_id == groups.c.id)
        .where(*_open(now.c))
        .group_by(groups.c.title)
        .having(number > 0)
        .order_by(number.desc(), groups.c.title)
        .limit(MOST_REASONS)
    )
    return [(title, int(count)) for title, count in connection.execute(query)]


def _failure_rates(connection: Connection) -> list[FailureRate]:
    """Per handler, over all its queues, the worst first."""
    succeeded = func.sum(handler_attempts.c.succeeded)
    failed = func.sum(handler_attempts.c.failed)
    query = select(handler_attempts.c.handler, succeeded, failed).group_by(handler_attempts.c.handler)
    rows = connection.execute(query.order_by(failed.desc(), handler_attempts.c.handler).limit(MOST_NAMES))
    rates = [FailureRate(handler, int(good), int(bad)) for handler, good, bad in rows]
    return sorted(rates, key=lambda each: (-each.rate, each.handler))
