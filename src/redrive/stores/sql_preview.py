"""What a run would take, in short time at any number of letters.

What counters know is told by them, exactly. Everything else is told of letters that are looked at one by one, and
of those there is a limit: never more than WINDOW are gone along, nor more than LOOKED_AT kept. What was left out
for that is said: the number is then one of "at least".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace
from sqlalchemy import or_, select

from redrive.dead_letter import MAX_GENERATIONS
from redrive.letter_query import Count
from redrive.preview import GROUPS_SHOWN, SAMPLE, GroupShare, Overview, set_apart, taken_of
from redrive.search_terms import Field, FieldTerm, Filter, Op
from redrive.stores.expressions import one_of
from redrive.stores.schema import groups, letters, revisions
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_preview_letters import LOOKED_AT, Looked, look, newest
from redrive.stores.sql_preview_numbers import Spread, spread
from redrive.stores.sql_preview_redrives import endings_of_groups, endings_of_letters
from redrive.stores.sql_rows import keys_of, letters_of, select_letters
from redrive.stores.sql_scope import inside
from redrive.stores.sql_selection import with_owned_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.access import Scope
    from redrive.dead_letter import DeadLetter
    from redrive.letter_query import LetterQuery

CAUSES_SHOWN = 3
KEYS_OF = 500
"""A key lies behind its message's body, and so a look at it may cost as much as a look at the body."""


class _Apart(NamedTuple):
    number: Count
    causes: Mapping[str, int]


class _Keys(NamedTuple):
    looked_at: int
    keyed: int
    ordered: int
    same: int


def overview(
    connection: Connection, selection: LetterQuery, at_most: int | None, *, quarantined: bool = False
) -> Overview:
    query = with_owned_groups(connection, taken_of(selection, quarantined=quarantined))
    counted = spread(connection, query)
    looked = look(connection, query, counted, LOOKED_AT if at_most is None else min(at_most, LOOKED_AT))
    number = _number(counted, looked, at_most)
    told = counted if counted is not None and counted.number == number else _spread_of(looked)
    rows, keys = looked.rows, _keys(connection, looked.rows)
    apart = _set_apart(connection, selection)
    again = [row.id for row in rows if row.fence or row.generation > 1]
    return Overview(
        count=number.number,
        exact=number.exact,
        by_queue=told.by_queue,
        by_group=_titled(connection, told.by_group, query.within),
        groups=told.groups,
        spread_over=told.spread_over,
        oldest=rows[0].created_at if rows and looked.in_order else None,
        newest=_newest(connection, query, looked, counted if told is counted else None, number),
        looked_at=len(rows),
        redriven=len(again),
        own=endings_of_letters(connection, again),
        earlier=endings_of_groups(connection, list(told.by_group), query.within),
        edited=sum(row.revision > 0 for row in rows),
        last_chance=sum(row.generation >= MAX_GENERATIONS for row in rows),
        keys_of=keys.looked_at,
        keyed=keys.keyed,
        ordered=keys.ordered,
        same_key=keys.same,
        quarantined=apart.number,
        causes=apart.causes,
        releases=quarantined,
        sample=_sample(connection, rows),
    )


def count_older(
    connection: Connection,
    selection: LetterQuery,
    limits: Mapping[str, datetime],
    at_most: int | None,
    *,
    quarantined: bool = False,
) -> dict[str, Count]:
    """By queue, those that have any."""
    query = with_owned_groups(connection, taken_of(selection, quarantined=quarantined))
    counted = spread(connection, query)
    if counted is not None and (at_most is None or counted.number.number <= at_most):
        return _counted_older(connection, query, limits)
    looked = look(connection, query, counted, LOOKED_AT if at_most is None else min(at_most, LOOKED_AT))
    old = Counter(row.queue for row in looked.rows if row.queue in limits and row.created_at < limits[row.queue])
    exact = _number(counted, looked, at_most) == Count(len(looked.rows), exact=True)
    return {queue: Count(number, exact=exact) for queue, number in old.items()}


def _counted_older(connection: Connection, query: LetterQuery, limits: Mapping[str, datetime]) -> dict[str, Count]:
    """One question for all queues of one limit: as a rule there is one for all."""
    found: dict[str, Count] = {}
    for limit in set(limits.values()):
        queues = tuple(queue for queue in limits if limits[queue] == limit)
        old = FieldTerm(field=Field.CREATED, op=Op.LESS, values=(limit,))
        theirs = FieldTerm(field=Field.QUEUE, op=Op.IS, values=queues)
        told = spread(connection, replace(query, where=Filter((*query.where.terms, theirs, old))))
        if told is not None:
            found |= {queue: Count(number, exact=told.number.exact) for queue, number in told.by_queue.items()}
    return found


def _number(counted: Spread | None, looked: Looked, at_most: int | None) -> Count:
    found = Count(len(looked.rows), exact=looked.are_all) if counted is None else counted.number
    return found if at_most is None or found.number < at_most else Count(at_most, exact=True)


def _spread_of(looked: Looked) -> Spread:
    """Of the letters that were looked at, where those are all or the counters do not tell of them alone."""
    by_group = Counter(row.group_id for row in looked.rows)
    return Spread(
        number=Count(len(looked.rows), exact=looked.are_all),
        by_queue=dict(Counter(row.queue for row in looked.rows).most_common()),
        by_group=dict(by_group.most_common(GROUPS_SHOWN)),
        groups=len(by_group),
        spread_over=len(looked.rows),
    )


def _newest(
    connection: Connection, query: LetterQuery, looked: Looked, counted: Spread | None, number: Count
) -> datetime | None:
    """None where only the oldest letters could be looked at."""
    if looked.rows and number == Count(len(looked.rows), exact=True):
        return looked.rows[-1].created_at  # type: ignore[no-any-return]  # of a Moment column
    return None if counted is None else newest(connection, query, counted)


def _titled(connection: Connection, by_group: Mapping[str, int], within: Scope) -> tuple[GroupShare, ...]:
    """A group of a queue outside the scope, which letters inside it were merged into, has no title to tell."""
    mine = (one_of(groups.c.id, list(by_group), connection.dialect.name), *inside(groups.c.queue, within))
    titles = {row.id: row.title for row in connection.execute(select(groups.c.id, groups.c.title).where(*mine))}
    return tuple(GroupShare(group_id, titles.get(group_id, ""), count) for group_id, count in by_group.items())


def _keys(connection: Connection, rows: Sequence[Row[Any]]) -> _Keys:
    ids = [row.id for row in rows[:KEYS_OF]]
    current = (revisions.c.letter_id == letters.c.id) & (revisions.c.number == letters.c.revision)
    columns = (letters.c.queue, letters.c.lane, letters.c.id, letters.c.revision)
    found = select(*columns, revisions.c.key, revisions.c.data_key).join(revisions, current)
    has_order = or_(revisions.c.key.is_not(None), letters.c.lane.is_not(None))
    found = found.where(one_of(letters.c.id, ids, connection.dialect.name), has_order)
    with_order = connection.execute(found).all()
    loose = [row for row in with_order if row.lane is None]
    keys = Counter(zip((row.queue for row in loose), keys_of(loose, sealing_of(connection)), strict=True))
    ordered = len(with_order) - keys.total()
    return _Keys(len(ids), keys.total(), ordered, sum(number for number in keys.values() if number > 1))


def _set_apart(connection: Connection, selection: LetterQuery) -> _Apart:
    """The QUARANTINED ones, and why they are."""
    named = set_apart(selection)
    if named is None:
        return _Apart(Count(0, exact=True), {})
    query = with_owned_groups(connection, named)
    counted = spread(connection, query)
    if counted is not None and not counted.number.number:
        return _Apart(counted.number, {})
    looked = look(connection, query, counted, LOOKED_AT)
    number = Count(len(looked.rows), exact=looked.are_all) if counted is None else counted.number
    causes = Counter(row.how or "" for row in looked.rows)
    return _Apart(number, dict(causes.most_common(CAUSES_SHOWN)))


def _sample(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[DeadLetter, ...]:
    ids = [row.id for row in rows[:SAMPLE]]
    found = select_letters(bodies=False).where(letters.c.id.in_(ids))
    by_id = {each.id: each for each in letters_of(connection.execute(found).all(), sealing_of(connection))}
    return tuple(by_id[each] for each in ids if each in by_id)
