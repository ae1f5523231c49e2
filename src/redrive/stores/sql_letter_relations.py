"""What a letter belongs to: others of the same correlation id, and the redrives it went through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from redrive.dead_letter import Transition
from redrive.insights import LetterRedrive
from redrive.privacy.masks import holds_mask
from redrive.stores.schema import audit, letters, redrives, runs
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_audit import HAPPENED
from redrive.stores.sql_lanes import BLOCKED_BY
from redrive.stores.sql_rows import letters_of, select_letters
from redrive.stores.sql_scope import inside
from redrive.stores.sql_situation import UNDER_WAY

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter


def related(connection: Connection, letter_id: str, limit: int, within: Scope = None) -> list[DeadLetter]:
    mine = connection.scalar(select(letters.c.correlation_id).where(letters.c.id == letter_id))
    if mine is None or holds_mask(mine):  # what many have that is masked relates none of them
        return []
    order = (letters.c.created_at.desc(), letters.c.id.desc())
    query = select_letters(BLOCKED_BY, bodies=False).where(
        letters.c.correlation_id == mine,
        letters.c.correlation_id.is_not(None),
        letters.c.id != letter_id,
        *inside(letters.c.queue, within),
    )
    rows = connection.execute(query.order_by(*order).limit(limit)).all()
    return letters_of(rows, sealing_of(connection), "blocked_by")


def letter_redrives(connection: Connection, letter_id: str, limit: int) -> list[LetterRedrive]:
    """Who asked for a redrive of no run is in the letter's history: the line that says it was claimed then."""
    claimed = (
        select(audit.c.by)
        .where(
            audit.c.letter_id == redrives.c.letter_id,
            audit.c.what == HAPPENED[Transition.CLAIM],
            audit.c.at == redrives.c.claimed_at,
        )
        .limit(1)
        .correlate(redrives)
        .scalar_subquery()
    )
    query = (
        select(redrives, func.coalesce(runs.c.requested_by, claimed, "").label("by"))
        .join(runs, runs.c.id == redrives.c.run_id, isouter=True)
        .where(redrives.c.letter_id == letter_id)
        .order_by(redrives.c.redrive_id.desc())
        .limit(limit)
    )
    return [
        LetterRedrive(
            redrive_id=row.redrive_id,
            run_id=row.run_id,
            by=row.by,
            generation=row.generation,
            revision=row.revision,
            target=row.target,
            claimed_at=row.claimed_at,
            sent_at=row.sent_at,
            outcome=row.outcome or UNDER_WAY,
            outcome_at=row.outcome_at,
            returned_as=row.returned_as,
        )
        for row in connection.execute(query)
    ]
