"""Letters of a run that has ended, whose engine died or was cut off while it sent them.

Nobody goes on with those by itself: whether they were sent is for a person to say (T9). Whoever decides takes
them over first (T6), so that a late mark of that engine changes nothing, and what is sent again has the same id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from redrive.dead_letter import Transition
from redrive.ledger import LETTERS, Deed, Subject
from redrive.run import ENDED
from redrive.stores import sql_audit, sql_claiming
from redrive.stores.schema import claims, runs
from redrive.stores.sql_guard import target
from redrive.stores.sql_ledger import NO_LEDGER

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.dead_letter import Actor, Claim
    from redrive.run import Settled
    from redrive.stores.sql_claiming import Claiming
    from redrive.stores.sql_ledger import Ledger

_CLAIMED = str(target(Transition.CLAIM))


def number(connection: Connection, run_id: str, now: datetime) -> int:
    query = select(func.count()).select_from(claims.join(runs, runs.c.id == claims.c.run_id))
    return connection.scalar(query.where(*_doubtful(run_id, now), runs.c.status.in_(ENDED))) or 0


def take(
    connection: Connection, claiming: Claiming, at_most: int, *, by: Actor, ledger: Ledger = NO_LEDGER
) -> list[Claim]:
    """Those of the run that the claiming names."""
    status = connection.scalar(select(runs.c.status).where(runs.c.id == claiming.run_id))
    if status not in ENDED or claiming.run_id is None:
        return []
    doubtful = select(claims.c.letter_id).where(*_doubtful(claiming.run_id, claiming.now))
    ids = list(connection.scalars(doubtful.order_by(claims.c.letter_id).limit(at_most)))
    taken = sql_claiming.take_over(connection, sql_claiming.held(connection, ids), claiming) if ids else []
    if taken:
        subject = Subject.of(LETTERS, (each.letter_id for each in taken))
        deed = Deed(what=sql_audit.TAKEN_OVER, subject=subject, before=f"run {claiming.run_id}")
        ledger.write(connection, deed, by=by, now=claiming.now)
    return taken


def tell(
    connection: Connection,
    ledger: Ledger,
    settled: Sequence[Settled],
    changed: Collection[str],
    *,
    by: Actor,
    now: datetime,
) -> None:
    """Somebody has said what became of these letters."""
    if changed:
        outcomes = {sql_audit.HAPPENED[each.outcome] for each in settled if each.claim.letter_id in changed}
        deed = Deed(what=", ".join(sorted(outcomes)), subject=Subject.of(LETTERS, changed), before=_CLAIMED)
        ledger.write(connection, deed, by=by, now=now)


def _doubtful(run_id: str, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return claims.c.run_id == run_id, claims.c.lease_until <= now
