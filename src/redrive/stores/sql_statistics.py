"""S2's statistics and S0's monitor: counted at one moment, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.dead_letter import OPEN, Status
from redrive.statistics import FailureRate, HandlerTally, Statistics
from redrive.stores.expressions import insert_into
from redrive.stores.schema import groups, handler_attempts, letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

MOST_NAMES = 1000
"""Queues, types and handlers in one answer: the most frequent. Names come from messages, and may be endless."""
MOST_REASONS = 50

_open = letters.c.status.in_([str(status) for status in OPEN])


def statistics(connection: Connection, older_than: datetime | None) -> Statistics:
    counted = dict(_counted(connection, letters.c.status))
    by_status = {str(status): counted.get(str(status), 0) for status in Status}
    oldest = connection.scalar(select(func.min(letters.c.created_at)).where(_open))
    return Statistics(
        total=sum(by_status.values()),
        by_status=by_status,
        by_queue=dict(_counted(connection, letters.c.queue, _open)),
        by_type=dict(_counted(connection, letters.c.type, _open)),
        reasons=_reasons(connection),
        failure_rates=_failure_rates(connection),
        oldest=oldest,
        older=0 if older_than is None else _older(connection, older_than),
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
    for each in tallies:
        row = {"handler": each.handler, "queue": each.queue, "succeeded": each.succeeded, "failed": each.failed}
        connection.execute(add, row)


def _counted(
    connection: Connection, column: ColumnElement[Any], *conditions: ColumnElement[bool]
) -> list[tuple[str, int]]:
    number = func.count()
    query = select(column, number).where(*conditions).group_by(column).order_by(number.desc(), column)
    return [(name, count) for name, count in connection.execute(query.limit(MOST_NAMES))]


def _reasons(connection: Connection) -> list[tuple[str, int]]:
    number = func.count()
    query = (
        select(groups.c.title, number)
        .join(letters, letters.c.group_id == groups.c.id)
        .where(_open)
        .group_by(groups.c.title)
        .order_by(number.desc(), groups.c.title)
        .limit(MOST_REASONS)
    )
    return [(title, count) for title, count in connection.execute(query)]


def _failure_rates(connection: Connection) -> list[FailureRate]:
    """Per handler, over all its queues, the worst first."""
    succeeded = func.sum(handler_attempts.c.succeeded)
    failed = func.sum(handler_attempts.c.failed)
    query = select(handler_attempts.c.handler, succeeded, failed).group_by(handler_attempts.c.handler)
    rows = connection.execute(query.order_by(failed.desc(), handler_attempts.c.handler).limit(MOST_NAMES))
    rates = [FailureRate(handler, int(good), int(bad)) for handler, good, bad in rows]
    return sorted(rates, key=lambda each: (-each.rate, each.handler))


def _older(connection: Connection, than: datetime) -> int:
    number = select(func.count()).select_from(letters).where(_open, letters.c.created_at < than)
    return connection.scalar(number) or 0
