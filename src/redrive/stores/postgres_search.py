"""Pages and counts of the search index on PostgreSQL, by the shorter of two ways.

One goes along the letters in the order of the page and looks each of them up: short for what many letters have.
The other asks the index for all that match and sorts them: short for what few have. PostgreSQL itself cannot
choose, for it does not know what it costs to look into a row whose content lies apart, nor what is frequent among
the newest letters. So some letters are looked at in any case: that fills the page, or tells how far it would be to
go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace
from sqlalchemy import and_, not_, or_, select

from redrive.letter_query import Place
from redrive.search_terms import Field, FieldTerm, TextTerm
from redrive.stores.estimates import estimated_rows, plan_anew
from redrive.stores.schema import letters, search_parts
from redrive.stores.search_tokens import are_exact
from redrive.stores.sql_search import conditions
from redrive.stores.sql_search_fields import field_condition
from redrive.stores.sql_search_postgres import indexed, matching
from redrive.stores.sql_selection import all_of, in_order, page_of, page_size, selected, terms_of
from redrive.words import words

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Select, Subquery

    from redrive.letter_query import LetterQuery
    from redrive.search_terms import Term
    from redrive.stores.sql_search_postgres import IndexTerm

_DIALECT = "postgresql"

_LOOKED_AT = 200
_LOOK, _MATCH, _CHECKED_MATCH = 10.0, 0.6, 6.0
# Microseconds, about: to look a letter up; to find and sort a row of the index; the same if it is looked into.

_found = search_parts.alias("found")
_earlier = search_parts.alias("earlier")


class _Walked(NamedTuple):
    ids: list[str]
    looked_at: int
    last: Place | None


class _Leader(NamedTuple):
    term: IndexTerm
    rows: float


def find_page(connection: Connection, query: LetterQuery) -> list[str]:
    """The ids of the page's letters, nearest first."""
    plan_anew(connection, by_index=True)
    size = page_size(query.limit)
    walked = _walk(connection, query)
    if len(walked.ids) >= size or walked.last is None or walked.looked_at < _LOOKED_AT:
        return walked.ids[:size]
    leader = _leader(connection, query)
    if leader is None or _is_near(connection, query, walked, leader):
        return walked.ids + _go_on(connection, query, walked.last, size - len(walked.ids))
    return list(connection.scalars(_gathered_page(query, leader.term)))


def all_matching(connection: Connection, query: LetterQuery) -> Select[str]:
    """The ids of every letter of every page."""
    plan_anew(connection, by_index=True)
    leader = _leader(connection, query)
    if leader is None:
        return all_of(query, _DIALECT)
    found = select(_found.c.letter_id.label("id")).where(*_led(query, leader.term))
    rest = _rest(query, leader.term)
    return found.join(letters, letters.c.id == _found.c.letter_id).where(*rest) if rest else found


def _walk(connection: Connection, query: LetterQuery) -> _Walked:
    """Looks at some letters, from the query's place on."""
    near = _near(query).limit(_LOOKED_AT).subquery("near")
    holds = and_(*conditions(_of_index(query), _DIALECT, near.c)).label("holds")
    rows = connection.execute(_ordered(select(near.c.id, near.c.created_at, holds), near, query)).all()
    last = Place(rows[-1].created_at, rows[-1].id) if rows else None
    return _Walked([row.id for row in rows if row.holds], len(rows), last)


def _go_on(connection: Connection, query: LetterQuery, last: Place, number: int) -> list[str]:
    """So many more, behind the last letter that was looked at."""
    place = {"before": last} if query.before is not None else {"after": last}
    return list(connection.scalars(page_of(replace(query, limit=number, **place), _DIALECT)))


def _near(query: LetterQuery) -> Select[tuple[object, ...]]:
    """Letters by their fields alone, in order."""
    fields = [term for term in terms_of(query) if isinstance(term, FieldTerm)]
    found = select(letters.c.id, letters.c.created_at).where(*selected(query, fields, _DIALECT))
    return in_order(found, query, letters.c.created_at, letters.c.id)


def _ordered(found: Select[str], near: Subquery, query: LetterQuery) -> Select[str]:
    order = (near.c.created_at, near.c.id)
    return found.order_by(*(order if query.before is not None else (each.desc() for each in order)))


def _leader(connection: Connection, query: LetterQuery) -> _Leader | None:
    """The term that the fewest rows of the index have; None if all terms exclude."""
    leaders = [
        _Leader(term, estimated_rows(connection, select(_found.c.id).where(indexed(term, _found.c))))
        for term in _of_index(query)
        if not term.negated
    ]
    return min(leaders, key=lambda leader: leader.rows, default=None)


def _is_near(connection: Connection, query: LetterQuery, walked: _Walked, leader: _Leader) -> bool:
    """Whether the page is sooner full by walking on."""
    size = page_size(query.limit)
    fields = [term for term in terms_of(query) if isinstance(term, FieldTerm)]
    eligible = estimated_rows(connection, select(letters.c.id).where(*selected(query, fields, _DIALECT)))
    to_look_at = min(eligible, size * walked.looked_at / max(len(walked.ids), 0.5))
    walking = to_look_at * _LOOK * len(_of_index(query))
    gathering = leader.rows * (_MATCH if _is_plain(leader.term) else _CHECKED_MATCH)
    if _rest(query, leader.term):
        every = estimated_rows(connection, select(letters.c.id))
        gathering += min(leader.rows, size * every / max(eligible, 1.0)) * _LOOK
    return walking < gathering


def _is_plain(term: IndexTerm) -> bool:
    """Whether the index alone can tell."""
    return len(words(term.text)) == 1 if isinstance(term, TextTerm) else are_exact(term)


def _gathered_page(query: LetterQuery, leader: IndexTerm) -> Select[str]:
    """All that the index finds, sorted, and then as many as the page needs of those that match the rest."""
    found = select(_found.c.letter_id.label("id"), _found.c.created_at).where(*_led(query, leader))
    ordered = in_order(found, query, _found.c.created_at, _found.c.letter_id)
    rest = _rest(query, leader)
    if not rest:
        return select(ordered.limit(page_size(query.limit)).subquery().c.id)
    near = ordered.offset(0).subquery("near")
    holds = select(letters.c.id).where(letters.c.id == near.c.id, *rest).offset(0).exists()
    return _ordered(select(near.c.id).where(holds), near, query).limit(page_size(query.limit))


def _led(query: LetterQuery, leader: IndexTerm) -> list[ColumnElement[bool]]:
    """What the index must find. A letter counts once: by the first of its parts that matches."""
    again = select(_earlier.c.id).where(
        _earlier.c.letter_id == _found.c.letter_id,
        _earlier.c.id < _found.c.id,
        matching(leader, _earlier.c),
    )
    once = or_(_found.c.facts.is_not(None), not_(again.exists()))
    when = [term for term in terms_of(query) if isinstance(term, FieldTerm) and term.field is Field.CREATED]
    known = {"created_at": _found.c.created_at}
    return [matching(leader, _found.c), once, *(field_condition(term, known) for term in when)]


def _rest(query: LetterQuery, leader: IndexTerm) -> list[ColumnElement[bool]]:
    """What must hold besides."""
    others = (term for term in terms_of(query) if term is not leader and not _is_time(term))
    return selected(query, others, _DIALECT)


def _is_time(term: Term) -> bool:
    return isinstance(term, FieldTerm) and term.field is Field.CREATED


def _of_index(query: LetterQuery) -> list[IndexTerm]:
    return [term for term in query.where.terms if not isinstance(term, FieldTerm)]
