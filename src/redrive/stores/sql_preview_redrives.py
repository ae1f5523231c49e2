"""How redrives ended: the last one of letters, and the last ones of groups."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.dead_letter import Transition
from redrive.preview import Endings
from redrive.stores.expressions import one_of
from redrive.stores.schema import letters, redrives
from redrive.stores.sql_audit import HAPPENED
from redrive.stores.sql_scope import inside, scope_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from redrive.access import Scope

LETTERS = 1000
RECENT = 50_000
"""Ids of redrives are in the order of time, so the last ones are found at the end of the primary key."""

_FIELDS = {
    HAPPENED[Transition.CONFIRM]: "confirmed",
    HAPPENED[Transition.CAME_BACK]: "came_back",
    HAPPENED[Transition.REFUSED]: "refused",
}


def endings_of_letters(connection: Connection, letter_ids: Sequence[str]) -> Endings:
    """Of the first LETTERS of them."""
    mine = one_of(redrives.c.letter_id, letter_ids[:LETTERS], connection.dialect.name)
    columns = (redrives.c.letter_id, redrives.c.outcome, redrives.c.sent_at)
    rows = connection.execute(select(*columns).where(mine).order_by(redrives.c.redrive_id))
    # A later one that was never sent, or passed over, does not hide how the last real one ended.
    last = {row.letter_id: ending for row in rows if (ending := _ending(row)) is not None}
    return _told(Counter(last.values()))


def endings_of_groups(connection: Connection, group_ids: Sequence[str], within: Scope = None) -> Endings:
    """Of those of the last RECENT redrives that were of these groups. A group may hold letters outside the scope:
    their redrives do not count, nor do those of letters that are gone, for nobody knows whose they were.
    """
    columns = (redrives.c.group_id, redrives.c.outcome, redrives.c.sent_at, redrives.c.letter_id)
    recent = select(*columns).order_by(redrives.c.redrive_id.desc()).limit(RECENT).subquery("recent")
    was_sent = recent.c.sent_at.is_not(None).label("sent_at")
    query = select(recent.c.outcome, was_sent, func.count().label("number"))
    query = query.where(one_of(recent.c.group_id, group_ids, connection.dialect.name))
    if scope_terms(within):
        query = query.join(letters, letters.c.id == recent.c.letter_id).where(*inside(letters.c.queue, within))
    numbers: Counter[str | None] = Counter()
    for row in connection.execute(query.group_by(recent.c.outcome, was_sent)):
        numbers[_ending(row)] += row.number
    return _told(numbers)


def _ending(row: Any) -> str | None:
    """None: it was passed over or given back unsent, is in somebody's hand, or a person decided."""
    if row.outcome is None:
        return "without_word" if row.sent_at else None
    return _FIELDS.get(row.outcome)


def _told(numbers: Mapping[str | None, int] | Mapping[str, int]) -> Endings:
    return Endings(**{name: number for name, number in numbers.items() if name is not None})
