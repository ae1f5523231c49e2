"""How often letters changed from one status to another, how often they were sent back, and what became of that:
exact at every commit, and never less than before.

Triggers on `letters` and `redrives` write deltas (migrations 0012 and 0015), `fold` adds them up, and whoever
reads takes both, as with the counters of `sql_counters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select, union_all

from redrive.statistics import RedriveCount, TransitionCount
from redrive.stores.schema_transitions import redrive_counts, redrive_deltas, transition_deltas, transitions
from redrive.stores.sql_counters import FOLDED_AT_ONCE, alone, upsert

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

_KEY, _SUMS = ("queue", "before", "after", "took"), ("number", "took_ms")
_REDRIVE_KEY, _REDRIVE_SUMS = ("queue", "outcome"), ("number",)
_RESOLVED = "RESOLVED"


def fold(connection: Connection) -> int:
    """Adds up deltas of both, and how many it took of whichever had more; 0 too if another process is at it. Safe
    to repeat at any time.
    """
    if not alone(connection):
        return 0
    return max(
        _add_up(connection, transition_deltas, transitions, _KEY, _SUMS),
        _add_up(connection, redrive_deltas, redrive_counts, _REDRIVE_KEY, _REDRIVE_SUMS),
    )


def _add_up(
    connection: Connection, deltas: Table, whole: Table, key: tuple[str, ...], sums: tuple[str, ...]
) -> int:
    oldest = select(deltas.c.id).order_by(deltas.c.id).limit(FOLDED_AT_ONCE)
    taken = delete(deltas).where(deltas.c.id.in_(oldest.scalar_subquery()))
    rows = sorted(connection.execute(taken.returning(*(deltas.c[name] for name in ("id", *key, *sums)))).all())
    added: dict[tuple[Any, ...], list[int]] = {}
    for _, *row in rows:
        found = added.setdefault(tuple(row[: len(key)]), [0] * len(sums))
        found[:] = map(sum, zip(found, row[len(key) :], strict=True))
    upsert(connection, whole, key, sums, [(*of, *found) for of, found in added.items()])
    return len(rows)


def transitions_now(connection: Connection) -> list[TransitionCount]:
    """Of the queue that was seen first come first; those not folded yet come last."""
    folded, fresh = transitions.c, transition_deltas.c
    both = union_all(
        select(*(folded[name] for name in (*_KEY, *_SUMS)), folded.id.label("place")),
        select(*(fresh[name] for name in (*_KEY, *_SUMS)), (_LAST + fresh.id).label("place")),
    ).subquery("transitions_now")
    sums = [func.sum(both.c[name]) for name in _SUMS]
    key = [both.c[name] for name in _KEY]
    rows = connection.execute(select(*key, *sums).group_by(*key).order_by(func.min(both.c.place)))
    return [
        TransitionCount(
            queue, before, after, int(number), (took or None) if after == _RESOLVED else None, int(took_ms) / 1000
        )
        for queue, before, after, took, number, took_ms in rows
    ]


def redrives_now(connection: Connection) -> list[RedriveCount]:
    columns = (*_REDRIVE_KEY, *_REDRIVE_SUMS)
    tables = (redrive_counts, redrive_deltas)
    both = union_all(*(select(*(table.c[name] for name in columns)) for table in tables)).subquery("redrives_now")
    query = select(both.c.queue, both.c.outcome, func.sum(both.c.number)).group_by(both.c.queue, both.c.outcome)
    return [RedriveCount(queue, outcome, int(number)) for queue, outcome, number in connection.execute(query)]


_LAST = 1 << 62
"""Behind every id there will ever be."""
