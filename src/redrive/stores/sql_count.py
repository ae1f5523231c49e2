"""How many letters a query selects. What counters know is answered by them, at any number of letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.letter_query import Count
from redrive.search_terms import Field, FieldTerm, Op
from redrive.stores import sql_counters
from redrive.stores.columns import microseconds, moment
from redrive.stores.estimates import plan_anew
from redrive.stores.postgres_search import all_matching
from redrive.stores.sql_search_fields import field_condition
from redrive.stores.sql_selection import all_of, needs_index, terms_of, with_owned_groups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.letter_query import LetterQuery

    Span = tuple[datetime | None, datetime | None]

COUNTED = frozenset(
    {Field.QUEUE, Field.HANDLER, Field.KIND, Field.TYPE, Field.GROUP, Field.EVENT, Field.STATUS, Field.OWNER}
)
"""Fields that letters are counted by, besides the time."""
_OPPOSITE = {Op.MORE: Op.AT_MOST, Op.AT_MOST: Op.MORE, Op.LESS: Op.AT_LEAST, Op.AT_LEAST: Op.LESS}


def count(connection: Connection, query: LetterQuery, at_most: int | None) -> Count:
    """All letters that the query selects, on whatever page. Beyond `at_most`, counting may stop."""
    terms = counted_terms(query)
    if terms is None:
        return _in_letters(connection, query, at_most)
    span = span_of([term for term in terms if term.field is Field.CREATED])
    if span is None:
        return Count(0, exact=True)
    facets = [term for term in terms if term.field is not Field.CREATED]

    def matching(columns: Any) -> Iterator[ColumnElement[bool]]:
        return (field_condition(term, columns) for term in facets)

    return Count(sql_counters.count(connection, matching, *span), exact=True)


def _in_letters(connection: Connection, query: LetterQuery, at_most: int | None) -> Count:
    query = with_owned_groups(connection, query)
    if connection.dialect.name == "postgresql" and needs_index(query):
        found = all_matching(connection, query)
    else:
        plan_anew(connection)
        found = all_of(query, connection.dialect.name)
    if at_most is not None:
        found = found.limit(at_most + 1)
    number = connection.scalar(select(func.count()).select_from(found.subquery())) or 0
    if at_most is not None and number > at_most:
        return Count(at_most, exact=False)
    return Count(number, exact=True)


def counted_terms(query: LetterQuery) -> list[FieldTerm] | None:
    """All that the query asks for, if the counters know all of it."""
    terms = terms_of(query)
    known = [term for term in terms if isinstance(term, FieldTerm) and term.field in {*COUNTED, Field.CREATED}]
    return known if query.ids is None and len(known) == len(terms) else None


def span_of(terms: list[FieldTerm]) -> Span | None:
    """From the first moment on and before the second; None if no moment is in it."""
    since: list[int] = []
    until: list[int] = []
    for term in terms:
        op = _OPPOSITE[term.op] if term.negated else term.op
        at: int = microseconds(term.values[0])  # type: ignore[arg-type]  # of a CREATED term, a moment
        (since if op in {Op.MORE, Op.AT_LEAST} else until).append(at + (op in {Op.MORE, Op.AT_MOST}))
    try:
        first = moment(max(since)) if since else None
    except OverflowError:  # later than the last moment
        return None
    try:
        return first, moment(min(until)) if until else None
    except OverflowError:
        return first, None
