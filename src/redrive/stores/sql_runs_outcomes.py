"""What became of a run's letters, counted and told from the redrives' own rows.

Consumers' confirmations change one row each and share none, so nobody waits for anybody; whoever asks, counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, case, func, or_, select

from redrive.dead_letter import Transition
from redrive.run import LetterOutcome, Progress
from redrive.stores.schema import letters, redrives
from redrive.stores.sql_audit import HAPPENED
from redrive.stores.sql_change import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row

_CONFIRMED = HAPPENED[Transition.CONFIRM]
_CAME_BACK = HAPPENED[Transition.CAME_BACK]
_BY_HAND = (HAPPENED[Transition.RESOLVE], ASSUMED)
_REFUSED = HAPPENED[Transition.REFUSED]
_RELEASED = HAPPENED[Transition.UNCLAIM]
ENDINGS = (_CONFIRMED, _CAME_BACK, *_BY_HAND, _REFUSED, _RELEASED)
"""What becomes of a redrive. A row with any other outcome is of a letter that was passed over, not redriven."""

_row = redrives.c
_same_group = func.coalesce(_row.returned_group, _row.group_id) == _row.group_id
# Whoever confirms, or gets it back, may be quicker than the mark that it was sent.
_sent = or_(_row.sent_at.is_not(None), _row.outcome.in_([_CONFIRMED, _CAME_BACK, *_BY_HAND]))
_returned = _row.outcome == _CAME_BACK


def _number(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count(case((condition, 1)))


_COUNTED: dict[str, ColumnElement[int]] = {
    "in_hand": _number(and_(_row.outcome.is_(None), _row.sent_at.is_(None))),
    "sent": _number(_sent),
    "confirmed": _number(_row.outcome == _CONFIRMED),
    "came_back_same": _number(and_(_returned, _same_group)),
    "came_back_new": _number(and_(_returned, ~_same_group)),
    "refused": _number(_row.outcome == _REFUSED),
    "released": _number(_row.outcome == _RELEASED),
    "by_hand": _number(_row.outcome.in_(_BY_HAND)),
}


def progress_of(connection: Connection, runs: Sequence[Row[Any]]) -> dict[str, Progress]:
    """Of each of these rows of runs."""
    columns = [column.label(name) for name, column in _COUNTED.items()]
    told = (_row.run_id, func.count().label("every"), func.max(_row.sent_at).label("last_sent_at"))
    query = select(*told, *columns).where(_row.run_id.in_([run.id for run in runs])).group_by(_row.run_id)
    found = {row.run_id: row for row in connection.execute(query)} if runs else {}
    return {run.id: _progress(run, found.get(run.id)) for run in runs}


def _progress(run: Row[Any], counted: Row[Any] | None) -> Progress:
    if counted is None:
        return Progress()
    return Progress(
        taken=run.taken,
        passed_over=counted.every - run.taken,
        last_sent_at=counted.last_sent_at,
        **{name: getattr(counted, name) for name in _COUNTED},
    )


def recent(connection: Connection, run_id: str, number: int, since: datetime) -> tuple[int, int]:
    """How many of the last ones that were confirmed or came back there are, and how many of them came back."""
    decided = _row.outcome.in_([_CONFIRMED, _CAME_BACK])
    last = (
        select(_row.outcome)
        .where(_row.run_id == run_id, decided, _row.outcome_at > since)
        .order_by(_row.outcome_at.desc())
        .limit(number)
        .subquery()
    )
    query = select(func.count(), _number(last.c.outcome == _CAME_BACK))
    found = connection.execute(query.select_from(last)).one()
    return found[0], found[1]


def outcomes(connection: Connection, run_id: str, after: str, limit: int) -> list[LetterOutcome]:
    queue = func.coalesce(letters.c.queue, _row.target, "").label("queue")
    query = (
        select(redrives, queue)
        .join(letters, letters.c.id == _row.letter_id, isouter=True)
        .where(_row.run_id == run_id, _row.redrive_id > after)
        .order_by(_row.redrive_id)
        .limit(limit)
    )
    return [_outcome(row) for row in connection.execute(query)]


def _outcome(row: Row[Any]) -> LetterOutcome:
    under_way = HAPPENED[Transition.CLAIM if row.sent_at is None else Transition.SENT]
    return LetterOutcome(
        letter_id=row.letter_id,
        redrive_id=row.redrive_id,
        queue=row.queue,
        outcome=row.outcome or under_way,
        claimed_at=row.claimed_at,
        sent_at=row.sent_at,
        outcome_at=row.outcome_at,
        group_before=row.group_id or "",
        group_after=row.returned_group,
    )
