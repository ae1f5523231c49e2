"""Which letters a query selects: the ids of a page, or of all."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace
from sqlalchemy import bindparam, literal, select, tuple_

from redrive.letter_query import MAX_PAGE
from redrive.search_terms import Field, FieldTerm, Filter, Op
from redrive.stores.blind_terms import blinded
from redrive.stores.schema import groups, letters
from redrive.stores.sql_scope import scope_terms
from redrive.stores.sql_search import conditions
from redrive.stores.sql_search_fields import field_condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement, Connection, Select, Tuple

    from redrive.letter_query import LetterQuery, Place
    from redrive.search_terms import Term


_MOST_OWNED = 1000


def terms_of(query: LetterQuery) -> tuple[Term, ...]:
    """The query's own fields as terms, those of its filter, and whose letters they may be."""
    given = (
        (Field.STATUS, Op.IS, query.status),
        (Field.QUEUE, Op.IS, query.queue),
        (Field.HANDLER, Op.IS, query.handler),
        (Field.TYPE, Op.IS, query.type),
        (Field.GROUP, Op.BEGINS, query.group),
        (Field.CREATED, Op.LESS, query.created_before),
        (Field.CREATED, Op.MORE, query.created_after),
    )
    own = (FieldTerm(field=field, op=op, values=(value,)) for field, op, value in given if value is not None)
    return (*own, *query.where.terms, *scope_terms(query.within))


def with_owned_groups(connection: Connection, query: LetterQuery) -> LetterQuery:
    """The same query with groups in place of their owners. Databases then know how many letters to expect; what a
    question inside the question finds, they guess. Terms of the search index get the hashes of masked values.
    """
    known = (_owned(connection, term) if _is_owner(term) else term for term in query.where.terms)
    terms = blinded(connection, known)
    return query if terms == query.where.terms else replace(query, where=Filter(terms))


def _is_owner(term: Term) -> TypeGuard[FieldTerm]:
    return isinstance(term, FieldTerm) and term.field is Field.OWNER


def _owned(connection: Connection, term: FieldTerm) -> FieldTerm:
    owned = select(groups.c.id).where(field_condition(replace(term, negated=False), {"owner": groups.c.owner}))
    ids = tuple(connection.scalars(owned.limit(_MOST_OWNED + 1)))
    if len(ids) > _MOST_OWNED:
        return term
    return FieldTerm(field=Field.GROUP, op=Op.IS, values=ids, negated=term.negated)


def needs_index(query: LetterQuery) -> bool:
    """Whether the search index is asked, and not only the letters themselves."""
    return not all(isinstance(term, FieldTerm) for term in query.where.terms)


def page_size(limit: int) -> int:
    return max(0, min(limit, MAX_PAGE))


def page_of(query: LetterQuery, dialect: str) -> Select[str]:
    """The ids of one page's letters: the nearest ones behind `after` or before `before`, nearest first."""
    return in_order(all_of(query, dialect), query, letters.c.created_at, letters.c.id).limit(
        page_size(query.limit)
    )


@lru_cache(maxsize=64)
def page_behind(query: LetterQuery, dialect: str) -> Select[str]:
    """As `page_of`, behind a place that is bound as `created_at` and `id`: a run asks for thousands of pages, and
    to make such a statement costs more than to ask it.
    """
    columns = (letters.c.created_at, letters.c.id)
    place = tuple_(*(bindparam(column.name, type_=column.type) for column in columns))
    found = all_of(query, dialect).where(tuple_(*columns) > place)
    return found.order_by(*columns).limit(page_size(query.limit))


def all_of(query: LetterQuery, dialect: str) -> Select[str]:
    """The ids of every letter of every page."""
    return select(letters.c.id.label("id")).where(*selected(query, terms_of(query), dialect))


def selected(query: LetterQuery, terms: Iterable[Term], dialect: str) -> list[ColumnElement[bool]]:
    """The conditions of these terms of the query, and of its ids."""
    found = conditions(terms, dialect)
    if query.ids is not None:
        found.append(letters.c.id.in_(list(dict.fromkeys(query.ids))))
    return found


def in_order(found: Select[Any], query: LetterQuery, *columns: ColumnElement[Any]) -> Select[Any]:
    """From the query's place on, in the order of pages: by these columns, when a letter failed and its id."""
    if query.after is not None:
        found = found.where(tuple_(*columns) < _place(query.after))
    if query.before is not None:
        return found.where(tuple_(*columns) > _place(query.before)).order_by(*columns)
    return found.order_by(*(column.desc() for column in columns))


def _place(place: Place) -> Tuple:
    columns = letters.c
    return tuple_(literal(place.created_at, columns.created_at.type), literal(place.id, columns.id.type))
