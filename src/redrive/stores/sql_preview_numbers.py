"""How many letters a query selects, by queue and by group, and when the first and the last failed: by counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, literal, select, union_all

from redrive.letter_query import Count
from redrive.preview import GROUPS_SHOWN
from redrive.search_terms import Field
from redrive.stores.columns import microseconds
from redrive.stores.schema import letters
from redrive.stores.sql_count import counted_terms, span_of
from redrive.stores.sql_counters import (
    DAY,
    HOUR,
    as_facets,
    counted_in,
    days_now,
    failed_within,
    hours_now,
)
from redrive.stores.sql_search_fields import field_condition
from redrive.stores.sql_statistics import MOST_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Subquery

    from redrive.letter_query import LetterQuery
    from redrive.search_terms import FieldTerm
    from redrive.stores.sql_count import Span
    from redrive.stores.sql_counters import Span as Microseconds

_EDGE = 50_000
"""Letters of the first and the last hour of a span that are counted one by one."""


class Spread(NamedTuple):
    number: Count
    by_queue: Mapping[str, int] = {}
    by_group: Mapping[str, int] = {}
    groups: int = 0
    spread_over: int = 0
    span: Microseconds = (None, None)
    """To the hour: none is before the first and none at the second or behind it."""


class Facets:
    """Conditions on whatever has the columns that letters are counted by."""

    def __init__(self, terms: Sequence[FieldTerm]) -> None:
        self._terms = [term for term in terms if term.field is not Field.CREATED]

    def __call__(self, columns: Any) -> list[ColumnElement[bool]]:
        return [field_condition(term, columns) for term in self._terms]


def spread(connection: Connection, query: LetterQuery) -> Spread | None:
    """None: counters do not know all that the query asks for."""
    terms = counted_terms(query)
    return None if terms is None else spread_by(connection, terms)


def spread_by(connection: Connection, terms: Sequence[FieldTerm]) -> Spread:
    """By terms that counters know."""
    span = span_of([term for term in terms if term.field is Field.CREATED])
    if span is None:
        return Spread(Count(0, exact=True))
    matching = Facets(terms)
    counted, exact = _counted(connection, matching, span)
    by_group, groups, number = _by_group(connection, counted)
    return Spread(
        number=Count(number, exact=exact),
        by_queue=_by_queue(connection, counted),
        by_group=by_group,
        groups=groups,
        spread_over=number,
        span=_ends(connection, matching, span) if number else (None, None),
    )


def _counted(connection: Connection, matching: Facets, span: Span) -> tuple[Subquery, bool]:
    """Queue, group and number, as many rows as there are; and whether that is all of them."""
    sums, edges = counted_in(*span)
    parts = [select(each.c.queue, each.c.group_id, each.c.letters).where(*matching(each.c)) for each in sums]
    exact = True
    for edge in edges:
        failed = select(letters.c.queue, letters.c.group_id, literal(1).label("letters"))
        some = failed.where(*matching(as_facets()), *failed_within(*edge)).limit(_EDGE).subquery()
        exact = exact and (connection.scalar(select(func.count()).select_from(some)) or 0) < _EDGE
        parts.append(select(some.c.queue, some.c.group_id, some.c.letters))
    return union_all(*parts).subquery("counted"), exact


def _by_queue(connection: Connection, counted: Subquery) -> dict[str, int]:
    number = func.sum(counted.c.letters)
    query = select(counted.c.queue, number).group_by(counted.c.queue).having(number > 0)
    query = query.order_by(number.desc(), counted.c.queue).limit(MOST_NAMES)
    return {queue: int(letters) for queue, letters in connection.execute(query)}


def _by_group(connection: Connection, counted: Subquery) -> tuple[dict[str, int], int, int]:
    """The largest, how many groups there are, and how many letters."""
    number = func.sum(counted.c.letters)
    query = select(
        counted.c.group_id,
        number.label("number"),
        func.count().over().label("groups"),
        func.sum(number).over().label("total"),
    )
    query = query.group_by(counted.c.group_id).having(number > 0)
    rows = connection.execute(query.order_by(number.desc(), counted.c.group_id).limit(GROUPS_SHOWN)).all()
    if not rows:
        return {}, 0, 0
    return {row.group_id: int(row.number) for row in rows}, rows[0].groups, int(rows[0].total)


def _ends(connection: Connection, matching: Facets, span: Span) -> Microseconds:
    """The hours of the first and of the last letter, or the ends of the span where those are nearer."""
    since, until = (None if each is None else microseconds(each) for each in span)
    days = days_now(since=since and since // DAY, until=until and -(-until // DAY))
    first, last = _first_and_last(connection, days, "day", matching)
    if first is None or last is None:
        return since, until
    begin, _ = _first_and_last(connection, hours_now(since=first * 24, until=(first + 1) * 24), "hour", matching)
    _, end = _first_and_last(connection, hours_now(since=last * 24, until=(last + 1) * 24), "hour", matching)
    oldest = first * DAY if begin is None else begin * HOUR
    behind = (last + 1) * DAY if end is None else (end + 1) * HOUR
    return oldest if since is None else max(oldest, since), behind if until is None else min(behind, until)


def _first_and_last(
    connection: Connection, counted: Subquery, unit: str, matching: Facets
) -> tuple[int | None, int | None]:
    column = counted.c[unit]
    used = select(column.label("unit")).where(*matching(counted.c)).group_by(column)
    some = used.having(func.sum(counted.c.letters) > 0).subquery()
    first, last = connection.execute(select(func.min(some.c.unit), func.max(some.c.unit))).one()
    return first, last
