"""How often letters changed from one status to another: exact at every commit, and never less than before.

Triggers on `letters` write deltas (migration 0012), `fold` adds them up, and whoever reads takes both, as with the
counters of `sql_counters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, union_all

from redrive.statistics import TransitionCount
from redrive.stores.schema import transition_deltas, transitions
from redrive.stores.sql_counters import FOLDED_AT_ONCE, alone, upsert

if TYPE_CHECKING:
    from sqlalchemy import Connection

_KEY, _SUMS = ("queue", "before", "after", "took"), ("number", "took_ms")
_RESOLVED = "RESOLVED"


def fold(connection: Connection) -> int:
    """Adds up deltas, and how many it took; 0 too if another process is at it. Safe to repeat at any time."""
    if not alone(connection):
        return 0
    oldest = select(transition_deltas.c.id).order_by(transition_deltas.c.id).limit(FOLDED_AT_ONCE)
    taken = delete(transition_deltas).where(transition_deltas.c.id.in_(oldest.scalar_subquery()))
    columns = [transition_deltas.c[name] for name in ("id", *_KEY, *_SUMS)]
    rows = sorted(connection.execute(taken.returning(*columns)).all())
    sums: dict[tuple[str, str, str, int], list[int]] = {}
    for _, queue, before, after, took, number, took_ms in rows:
        found = sums.setdefault((queue, before, after, took), [0, 0])
        found[0] += number
        found[1] += took_ms
    upsert(connection, transitions, _KEY, _SUMS, [(*key, *found) for key, found in sums.items()])
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


_LAST = 1 << 62
"""Behind every id there will ever be."""
