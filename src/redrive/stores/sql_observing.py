"""What rules of alerts look at, from counters and indexes alone."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from redrive.alerts.observed import Attempts, EndedRun, Sample
from redrive.any_text_json import decoded, encoded
from redrive.dead_letter import OPEN, Status
from redrive.failure import FailureKind
from redrive.run import RunStatus
from redrive.stores.expressions import insert_into
from redrive.stores.schema import FAILED, handler_attempts, letters, runs
from redrive.stores.schema_incidents import samples
from redrive.stores.sql_counters import totals_now
from redrive.stores.sql_statistics import MOST_NAMES, Matching, counted
from redrive.stores.sql_transitions import transitions_now

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection


def take_sample(connection: Connection, *, keep: float, every: float, now: datetime) -> list[Sample]:
    # What lies ahead was written by a clock that was wrong.
    old = (samples.c.at < now - timedelta(seconds=keep)) | (samples.c.at > now)
    connection.execute(delete(samples).where(old))
    kept = [decoded(each, Sample) for each in connection.scalars(select(samples.c.body).order_by(samples.c.at))]
    sample = _numbers(connection, now)
    if not kept or (now - kept[-1].at).total_seconds() >= every:
        new = insert_into(samples, connection.dialect.name).on_conflict_do_nothing(index_elements=["at"])
        connection.execute(new, {"at": now, "body": encoded(sample)})
    return [*kept, sample]


def _numbers(connection: Connection, now: datetime) -> Sample:
    received: defaultdict[str, int] = defaultdict(int)
    for each in transitions_now(connection):
        if not each.before:
            received[each.queue] += each.number
    columns = handler_attempts.c
    query = select(columns.handler, columns.queue, columns.succeeded, columns.failed)
    attempts = connection.execute(query.order_by(columns.failed.desc(), columns.handler).limit(MOST_NAMES))
    return Sample(
        at=now,
        pending=dict(counted(connection, "queue", Matching(None, (Status.PENDING,)))),
        received=dict(sorted(received.items(), key=lambda each: -each[1])[:MOST_NAMES]),
        attempts=tuple(Attempts(*row) for row in attempts),
    )


def recent_by_group(connection: Connection, since: datetime, *, at_most: int) -> dict[str, int]:
    newest = select(letters.c.group_id).where(letters.c.created_at >= since)
    limited = newest.order_by(letters.c.created_at.desc(), letters.c.id.desc()).limit(at_most).subquery("newest")
    query = select(limited.c.group_id, func.count()).group_by(limited.c.group_id)
    return {group_id: int(number) for group_id, number in connection.execute(query)}


def failed_runs(connection: Connection, *, since: datetime, limit: int) -> list[EndedRun]:
    columns = runs.c
    query = select(columns.id, columns.status, columns.ended_at, columns.total).where(
        FAILED, columns.ended_at >= since
    )
    rows = connection.execute(query.order_by(columns.ended_at.desc(), columns.id).limit(limit))
    return [EndedRun(row.id, RunStatus(row.status), row.ended_at, row.total) for row in rows]


def critical_groups(connection: Connection, *, limit: int) -> dict[str, int]:
    now = totals_now()
    number = func.sum(now.c.letters)
    query = select(now.c.group_id, number).where(
        now.c.kind == str(FailureKind.CRITICAL), now.c.status.in_([str(status) for status in OPEN])
    )
    query = query.group_by(now.c.group_id).having(number > 0).order_by(number.desc(), now.c.group_id)
    return {group_id: int(count) for group_id, count in connection.execute(query.limit(limit))}
