"""Runs that automatic rules make: one at a time for each rule, whoever makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from redrive.stores import sql_runs
from redrive.stores.schema import runs

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from redrive.run import Run


def newest(connection: Connection, rule: str, count: sql_runs.Count) -> Run | None:
    found = _newest(connection, rule)
    return None if found is None else sql_runs.find(connection, found.id, count)


def is_behind(connection: Connection, rule: str, known: str | None) -> bool:
    """Whether that run is the rule's newest one and has ended; None: whether it has none. Of two who find so at
    once and go on, one meets the index of the rules' active runs.
    """
    found = _newest(connection, rule)
    if found is None or known is None:
        return found is None and known is None
    return bool(found.id == known and found.ended_at is not None)


def _newest(connection: Connection, rule: str) -> Any:
    """Its id and when it ended, if there is one."""
    query = select(runs.c.id, runs.c.ended_at).where(runs.c.rule == rule).order_by(runs.c.id.desc())
    return connection.execute(query.limit(1)).one_or_none()
