"""What processes have reported of themselves, and what of it is true still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from sqlalchemy import delete, select, update

from redrive.alerts.observed import ProcessReport, Reported
from redrive.alerts.spools import outdated
from redrive.any_text_json import decoded, encoded
from redrive.stores.schema_incidents import processes as table

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection


def processes(connection: Connection, *, since: datetime, spools_since: datetime) -> list[Reported]:
    query = select(table.c.body, table.c.seen_at).order_by(table.c.id)
    rows = [Reported(decoded(row.body, ProcessReport), row.seen_at) for row in connection.execute(query)]
    # Written down, for whoever knows better may end and take its word away.
    emptied = {each.report.id: _emptied(connection, each) for each in outdated(rows)}
    found = []
    for each in (emptied.get(each.report.id, each) for each in rows):
        if each.at >= since:
            found.append(each)
        elif each.report.spooled_for is not None and each.report.spool and each.at >= spools_since:
            found.append(Reported(replace(each.report, queues=(), unready={}), each.at))
        else:
            connection.execute(delete(table).where(*_same(each)))
    return found


def _emptied(connection: Connection, each: Reported) -> Reported:
    report = replace(each.report, spooled_bytes=0, spooled_for=None)
    connection.execute(update(table).where(*_same(each)).values(body=encoded(report)))
    return Reported(report, each.at)


def _same(each: Reported) -> tuple[ColumnElement[bool], ...]:
    """If it has not reported anew meanwhile."""
    return table.c.id == each.report.id, table.c.seen_at == each.at
