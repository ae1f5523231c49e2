"""What happened to a group's letters: which attempts failed, what redrives did, and samples of it. All of it is of
the newest letters, so that it costs the same for a group of a million.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.dead_letter import REDRIVES_OF
from redrive.insights import AttemptCount, GroupAttempts, GroupRedrives, GroupRun
from redrive.stores.expressions import lots, one_of
from redrive.stores.schema import failures, letters, redrives, revisions, runs
from redrive.stores.sql_counters import totals_now
from redrive.stores.sql_runs_outcomes import ENDINGS
from redrive.stores.sql_scope import inside
from redrive.stores.sql_situation import UNDER_WAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from redrive.access import Scope

ATTEMPTS_OF = 200
MOST_RUNS = 50
_LOOKED_AT = 1000
"""Letters of a queue among which those outside of a group are looked for."""
_CANDIDATES = 2
"""Times as many as are wanted, for some may be too large."""
_OTHER_GROUPS = 10
_OF_EACH = 40
_MOST_ATTEMPTS = 100


def group_attempts(connection: Connection, group_id: str, within: Scope = None) -> GroupAttempts:
    ids = list(connection.scalars(_newest(letters.c.group_id == group_id, ATTEMPTS_OF, within)))
    mine = one_of(failures.c.letter_id, ids, connection.dialect.name)
    query = select(failures.c.attempt, failures.c.kind, func.count()).join(
        letters, letters.c.id == failures.c.letter_id
    )
    query = query.where(mine, failures.c.generation == letters.c.generation)
    rows = connection.execute(query.group_by(failures.c.attempt, failures.c.kind))
    found = sorted((AttemptCount(*row) for row in rows), key=lambda each: (each.attempt, each.kind))
    return GroupAttempts(letters=len(ids), attempts=tuple(found[:_MOST_ATTEMPTS]))


def group_redrives(connection: Connection, group_id: str, within: Scope = None) -> GroupRedrives:
    ids = list(connection.scalars(_newest(letters.c.group_id == group_id, REDRIVES_OF, within)))
    outcome = func.coalesce(redrives.c.outcome, UNDER_WAY).label("outcome")
    mine = one_of(redrives.c.letter_id, ids, connection.dialect.name)
    query = (
        select(
            redrives.c.run_id,
            runs.c.requested_by,
            outcome,
            func.count().label("number"),
            func.min(redrives.c.claimed_at).label("first_at"),
            func.max(redrives.c.claimed_at).label("last_at"),
        )
        .join(runs, runs.c.id == redrives.c.run_id, isouter=True)
        .where(mine, outcome.in_([UNDER_WAY, *ENDINGS]))
        .group_by(redrives.c.run_id, runs.c.requested_by, outcome)
    )
    by_run: dict[str | None, list[Any]] = defaultdict(list)
    for row in connection.execute(query) if ids else ():
        by_run[row.run_id].append(row)
    told = sorted((_run(run_id, rows) for run_id, rows in by_run.items()), key=lambda each: each.last_at)
    return GroupRedrives(letters=len(ids), runs=tuple(told[::-1][:MOST_RUNS]))


def _run(run_id: str | None, rows: Sequence[Any]) -> GroupRun:
    return GroupRun(
        run_id=run_id,
        by=rows[0].requested_by or "",
        first_at=min(row.first_at for row in rows),
        last_at=max(row.last_at for row in rows),
        outcomes={row.outcome: row.number for row in sorted(rows, key=lambda row: row.outcome)},
    )


def samples(
    connection: Connection, group_id: str, queue: str, *, number: int, largest: int, within: Scope = None
) -> tuple[list[str], list[str]]:
    own = list(connection.scalars(_newest(letters.c.group_id == group_id, number * _CANDIDATES, within)))
    newest = _newest(letters.c.queue == queue, _LOOKED_AT, within).add_columns(letters.c.group_id)
    others = [row.id for row in connection.execute(newest) if row.group_id != group_id]
    if len(others) < number:
        others = list(dict.fromkeys([*others, *_elsewhere(connection, group_id, queue, within)]))
    return _small(connection, own, number, largest), _small(
        connection, others[: number * _CANDIDATES], number, largest
    )


def _newest(which: ColumnElement[bool], number: int, within: Scope) -> Select[Any]:
    order = (letters.c.created_at.desc(), letters.c.id.desc())
    return select(letters.c.id).where(which, *inside(letters.c.queue, within)).order_by(*order).limit(number)


def _elsewhere(connection: Connection, group_id: str, queue: str, within: Scope) -> list[str]:
    """Some of each of the other large groups: where all that is new is of one group, the rest is far behind it."""
    now = totals_now()
    number = func.sum(now.c.letters)
    mine = (now.c.queue == queue, now.c.group_id != group_id, *inside(now.c.queue, within))
    query = select(now.c.group_id).where(*mine).group_by(now.c.group_id).having(number > 0)
    found = connection.scalars(query.order_by(number.desc(), now.c.group_id).limit(_OTHER_GROUPS)).all()
    each = [
        connection.scalars(
            _newest((letters.c.group_id == other) & (letters.c.queue == queue), _OF_EACH, within)
        ).all()
        for other in found
    ]
    return [letter_id for lot in each for letter_id in lot]


def _small(connection: Connection, ids: Sequence[str], number: int, largest: int) -> list[str]:
    size = func.coalesce(func.length(revisions.c.body), 0) + func.length(revisions.c.headers)
    query = select(revisions.c.letter_id).join(
        letters, (letters.c.id == revisions.c.letter_id) & (letters.c.revision == revisions.c.number)
    )
    fit: set[str] = set()
    for lot in lots(ids):
        mine = one_of(revisions.c.letter_id, lot, connection.dialect.name)
        fit |= set(connection.scalars(query.where(mine, size <= largest)))
    return [each for each in ids if each in fit][:number]
