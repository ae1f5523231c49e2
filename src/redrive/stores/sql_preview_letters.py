"""The oldest letters that a query selects, looked at one by one, and no more of them than short time allows.

An index is gone along in the order of time, by the one condition that leaves the fewest letters, and never further
than WINDOW of them. What counters know tells where to begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from msgspec.structs import replace
from sqlalchemy import func, select

from redrive.search_terms import Field, FieldTerm, Op
from redrive.stores.estimates import plan_anew
from redrive.stores.expressions import lots
from redrive.stores.postgres_search import all_matching
from redrive.stores.schema import letters
from redrive.stores.sql_count import COUNTED
from redrive.stores.sql_counters import count, failed_within
from redrive.stores.sql_preview_numbers import Facets, Spread, spread_by
from redrive.stores.sql_search_fields import field_condition
from redrive.stores.sql_selection import all_of, needs_index, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row, Select, Subquery

    from redrive.letter_query import LetterQuery
    from redrive.search_terms import Term

LOOKED_AT = 10_000
WINDOW = 50_000

_SHOWN = ("id", "created_at", "queue", "group_id", "generation", "revision", "fence", "how")
_OWN_INDEX = frozenset({Field.ID, Field.CORRELATION})


class Looked(NamedTuple):
    rows: Sequence[Row[Any]]
    """The oldest first."""
    are_all: bool
    in_order: bool
    """Whether there is none that is older."""


class _Window(NamedTuple):
    leader: FieldTerm
    is_whole: bool


def look(connection: Connection, query: LetterQuery, counted: Spread | None, limit: int) -> Looked:
    """At most `limit` of them. The query names a status; `counted` is what counters tell about it, if they know
    all that it asks for.
    """
    if query.ids is not None:
        return _of_ids(connection, query, limit)
    if needs_index(query) or any(map(_has_own_index, terms_of(query))):
        return _gathered(connection.execute(_found(connection, query).limit(limit + 1)).all(), limit)
    known = counted or spread_by(connection, _known(query))
    if not known.number.number:
        return Looked((), are_all=known.number.exact, in_order=True)
    window = _window(connection, query, known)
    plan_anew(connection)
    rows = connection.execute(_walked(query, window, known).limit(limit + 1)).all()
    return Looked(rows[:limit], are_all=len(rows) <= limit and window.is_whole, in_order=True)


def newest(connection: Connection, query: LetterQuery, counted: Spread) -> datetime | None:
    """Of what counters know. None if none is found among the last letters of their kind."""
    window = _window(connection, query, counted)
    plan_anew(connection)
    row = connection.execute(_walked(query, window, counted, newest_first=True).limit(1)).one_or_none()
    return None if row is None else row.created_at


def _of_ids(connection: Connection, query: LetterQuery, limit: int) -> Looked:
    rows: list[Row[Any]] = []
    for lot in lots(query.ids or ()):
        rows += connection.execute(_found(connection, replace(query, ids=tuple(lot)))).all()
        if len(rows) > limit:
            break
    return _gathered(rows, limit)


def _found(connection: Connection, query: LetterQuery) -> Select[Any]:
    """In no order: what the search index or an index of its own finds."""
    dialect = connection.dialect.name
    by_search = dialect == "postgresql" and needs_index(query)
    plan_anew(connection, by_index=by_search)
    ids = (all_matching(connection, query) if by_search else all_of(query, dialect)).subquery("ids")
    return select(*(letters.c[name] for name in _SHOWN)).join(ids, ids.c.id == letters.c.id)


def _gathered(rows: Sequence[Row[Any]], limit: int) -> Looked:
    are_all = len(rows) <= limit
    oldest_first = sorted(rows[:limit], key=lambda row: (row.created_at, row.id))
    return Looked(oldest_first, are_all=are_all, in_order=are_all)


def _has_own_index(term: Any) -> bool:
    return (
        isinstance(term, FieldTerm) and term.field in _OWN_INDEX and term.op is not Op.EXISTS and not term.negated
    )


def _known(query: LetterQuery) -> list[FieldTerm]:
    """What counters know of all that is asked for."""
    terms = (term for term in terms_of(query) if isinstance(term, FieldTerm))
    return [term for term in terms if term.field in {*COUNTED, Field.CREATED}]


def _window(connection: Connection, query: LetterQuery, known: Spread) -> _Window:
    """Which index to go along, and whether all of it is gone along."""
    numbers = {each: count(connection, Facets([each]), None, None) for each in _leaders(query, known)}
    leader = min(numbers, key=lambda each: numbers[each])
    return _Window(leader, numbers[leader] <= WINDOW or not _goes_on(connection, leader, known))


def _leaders(query: LetterQuery, known: Spread) -> Iterator[FieldTerm]:
    """Conditions that all these letters meet, each of which has an index in the order of time."""
    yield from filter(_is_status, terms_of(query))
    if len(known.by_queue) == 1:
        yield _is(Field.QUEUE, *known.by_queue)
    if known.groups == 1:
        yield _is(Field.GROUP, *known.by_group)


def _is_status(term: Term) -> TypeGuard[FieldTerm]:
    if not isinstance(term, FieldTerm) or term.field is not Field.STATUS:
        return False
    return term.op is Op.IS and not term.negated


def _is(field: Field, value: str) -> FieldTerm:
    return FieldTerm(field=field, op=Op.IS, values=(value,))


def _goes_on(connection: Connection, leader: FieldTerm, known: Spread) -> bool:
    plan_anew(connection)
    behind = _along(leader, known).with_only_columns(letters.c.id).limit(1).offset(WINDOW)
    return connection.scalar(behind) is not None


def _along(leader: FieldTerm, known: Spread, *, newest_first: bool = False) -> Select[Any]:
    order = (letters.c.created_at, letters.c.id)
    found = select(letters).where(field_condition(leader, dict(letters.c)), *failed_within(*known.span))
    return found.order_by(*((each.desc() for each in order) if newest_first else order))


def _walked(query: LetterQuery, window: _Window, known: Spread, *, newest_first: bool = False) -> Select[Any]:
    near = _along(window.leader, known, newest_first=newest_first).limit(WINDOW).subquery("near")
    order = (near.c.created_at, near.c.id)
    found = select(*(near.c[name] for name in _SHOWN)).where(*_holding(query, near))
    return found.order_by(*((each.desc() for each in order) if newest_first else order))


def _holding(query: LetterQuery, near: Subquery) -> list[ColumnElement[bool]]:
    columns = {**near.c, "event_type": func.coalesce(near.c.event_type, near.c.queue)}
    return [field_condition(term, columns) for term in terms_of(query) if isinstance(term, FieldTerm)]
