"""Claims that an engine gives back: to whoever takes next; or to nobody (T16), if the run has ended and nothing of
them was sent.

A run that ends takes back what was let go unsent, and what is let go unsent after that goes back at once. Whoever
does either holds the run's row first, so that no order of the two leaves a letter behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from redrive.dead_letter import Actor, Transition
from redrive.run import ENDED
from redrive.stores import sql_redrive
from redrive.stores.expressions import lots, one_of
from redrive.stores.schema import claims, runs
from redrive.stores.sql_guard import hold
from redrive.stores.sql_redrive import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.dead_letter import Claim


def let_go(
    connection: Connection, given: Sequence[Claim], *, until: datetime, unsent: bool, now: datetime
) -> None:
    """Their leases end then, if they are still the current claims."""
    for lot in lots({each.letter_id: each for each in given}.values()):
        ids = [each.letter_id for each in lot]
        ended = _ended_runs(connection, ids) if unsent else {}
        hold(connection, ids)
        fences = {each.letter_id: each.fence for each in lot}
        current = [row for row in _claims_of(connection, ids) if fences[row.letter_id] == row.fence]
        shortened = update(claims).where(_among(connection, [row.letter_id for row in current]))
        connection.execute(shortened.values(lease_until=until, unsent=unsent))
        for run_id, status in ended.items():
            _give_back(connection, [row for row in current if row.run_id == run_id], status, None, now)


def give_back(connection: Connection, run_id: str, status: str, by: Actor, now: datetime) -> None:
    """The run, whose row is locked, has ended so: what was let go unsent is PENDING again."""
    unsent = select(claims).where(claims.c.run_id == run_id, claims.c.unsent)
    _give_back(connection, connection.execute(unsent).all(), status, by, now)


def _give_back(
    connection: Connection, rows: Sequence[Row[Any]], status: str, by: Actor | None, now: datetime
) -> None:
    """By somebody who has ended the run, or else by the engine that had them."""
    reason = f"run {status.lower()}"
    for name in {row.owner if by is None else by.name for row in rows}:
        endings = [
            Ending(row.letter_id, row.redrive_id, row.fence, Transition.UNCLAIM, reason)
            for row in rows
            if by is not None or row.owner == name
        ]
        sql_redrive.end(connection, endings, by=Actor(name), now=now)


def _ended_runs(connection: Connection, letter_ids: Sequence[str]) -> dict[str, str]:
    """With their status, of the runs that these claims belong to. None of them changes now."""
    mine = select(claims.c.run_id).where(_among(connection, letter_ids), claims.c.run_id.is_not(None))
    ids = sorted(set(connection.scalars(mine)))
    held = select(runs.c.id, runs.c.status).where(runs.c.id.in_(ids)).order_by(runs.c.id)
    rows = connection.execute(held.with_for_update(read=True)) if ids else ()
    return {row.id: row.status for row in rows if row.status in ENDED}


def _claims_of(connection: Connection, letter_ids: Sequence[str]) -> Sequence[Row[Any]]:
    return connection.execute(select(claims).where(_among(connection, letter_ids))).all()


def _among(connection: Connection, letter_ids: Sequence[str]) -> Any:
    return one_of(claims.c.letter_id, letter_ids, connection.dialect.name)
