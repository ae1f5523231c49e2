"""T15 and T4 in one transaction: a run that was made for it takes letters out of quarantine and claims them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from redrive.dead_letter import Actor, Status, Transition
from redrive.stores import sql_audit, sql_claiming
from redrive.stores.expressions import one_of
from redrive.stores.schema import letters
from redrive.stores.sql_guard import moving_held, target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.run import RunPlan
    from redrive.stores.sql_claiming import Candidate, Claiming

_QUARANTINED = str(Status.QUARANTINED)


def claimable(connection: Connection, run: Row[Any], plan: RunPlan, rows: Sequence[Row[Any]]) -> set[str]:
    """Those of the locked letters that the run may claim by their status."""
    kept = [row.id for row in rows if row.status == _QUARANTINED]
    seen = _unchanged(connection, kept, run.created_at) if plan.quarantined and kept else set()
    return seen | {row.id for row in rows if sql_claiming.is_claimable(row)}


def _unchanged(connection: Connection, letter_ids: Sequence[str], since: datetime) -> set[str]:
    """Whoever set a letter apart after the run was made did not mean it to be sent."""
    mine = one_of(letters.c.id, letter_ids, connection.dialect.name)
    return set(connection.scalars(select(letters.c.id).where(mine, letters.c.changed_at <= since)))


def released(
    connection: Connection, run: Row[Any], plan: RunPlan, candidates: Sequence[Candidate], claiming: Claiming
) -> list[Candidate]:
    """All of them, PENDING: those that were QUARANTINED by whoever asked for the run, for the run's reason."""
    ids = [each.letter.id for each in candidates if each.letter.status == _QUARANTINED]
    if not ids:
        return list(candidates)
    moved = moving_held(connection, Transition.RELEASE, claiming.now, ids).values(how=None, refusals=0)
    sql_claiming.counted(connection.execute(moved), len(ids))
    by, after = Actor(run.requested_by, plan.reason), str(target(Transition.RELEASE))
    what = sql_audit.HAPPENED[Transition.RELEASE]
    lines = [sql_audit.line(what, each, at=claiming.now, by=by, before=_QUARANTINED, after=after) for each in ids]
    sql_audit.write(connection, *lines)
    pending = {row.id: row for row in sql_claiming.held(connection, ids)}
    return [each._replace(letter=pending.get(each.letter.id, each.letter)) for each in candidates]
