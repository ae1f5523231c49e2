"""What the metrics of a store are made of, read in one transaction, from counters alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from redrive.dead_letter import OPEN, Status
from redrive.statistics import StoreNumbers
from redrive.stores.schema import runs, search_queue
from redrive.stores.sql_statistics import Matching, counted, oldest
from redrive.stores.sql_transitions import redrives_now, transitions_now

if TYPE_CHECKING:
    from sqlalchemy import Connection


def numbers(connection: Connection) -> StoreNumbers:
    by_status = dict(counted(connection, "status", Matching(None)))
    by_run = connection.execute(select(runs.c.status, func.count().label("number")).group_by(runs.c.status)).all()
    return StoreNumbers(
        by_status={str(status): by_status.get(str(status), 0) for status in Status},
        open_by_queue=dict(counted(connection, "queue", Matching(None, OPEN))),
        oldest=oldest(connection, None, OPEN),
        transitions=transitions_now(connection),
        redrives=redrives_now(connection),
        runs_by_status={row.status: row.number for row in by_run},
        unindexed=connection.scalar(select(func.count()).select_from(search_queue)) or 0,
    )
