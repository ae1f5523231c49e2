"""What letters are, by one field: from the counters where they know it, else of a bounded number of letters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from redrive.insights import Facets, FacetValue
from redrive.search_terms import Field
from redrive.stores.estimates import plan_anew
from redrive.stores.postgres_search import all_matching
from redrive.stores.schema import letters
from redrive.stores.sql_count import counted_terms, span_of
from redrive.stores.sql_counters import as_facets, counted_in, failed_within
from redrive.stores.sql_search_fields import field_condition
from redrive.stores.sql_selection import all_of, needs_index, with_owned_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.letter_query import LetterQuery
    from redrive.stores.sql_counters import Matching

MOST_VALUES = 50
_FIELDS = {"status": "status", "queue": "queue", "type": "short_type", "handler": "handler"}
_NOTHING = Facets(status=(), queue=(), type=(), handler=(), counted=0, exact=True)


def facets(connection: Connection, query: LetterQuery, at_most: int) -> Facets:
    terms = counted_terms(query)
    if terms is None:
        return _in_letters(connection, query, at_most)
    span = span_of([term for term in terms if term.field is Field.CREATED])
    if span is None:
        return _NOTHING
    rest = [term for term in terms if term.field is not Field.CREATED]

    def matching(columns: Any) -> Iterator[ColumnElement[bool]]:
        return (field_condition(term, columns) for term in rest)

    found = {name: counted_by(connection, column, matching, *span) for name, column in _FIELDS.items()}
    return _told(found, counted=sum(found["status"].values()), exact=True)


def counted_by(
    connection: Connection, name: str, matching: Matching, since: datetime | None, until: datetime | None
) -> Counter[str]:
    """The letters that match and failed in the span, by a column that letters are counted by."""
    counted, edges = counted_in(since, until)
    found: Counter[str] = Counter()
    for each in counted:
        query = select(each.c[name], func.sum(each.c.letters)).where(*matching(each.c)).group_by(each.c[name])
        found.update({value: int(number) for value, number in connection.execute(query)})
    column = as_facets()[name]
    for edge in edges:
        mine = [*matching(as_facets()), *failed_within(*edge)]
        query = select(column, func.count()).select_from(letters).where(*mine).group_by(column)
        found.update({row[0]: row[1] for row in connection.execute(query)})
    return found


def _in_letters(connection: Connection, query: LetterQuery, at_most: int) -> Facets:
    query = with_owned_groups(connection, query)
    if connection.dialect.name == "postgresql" and needs_index(query):
        matching = all_matching(connection, query)
    else:
        plan_anew(connection)
        matching = all_of(query, connection.dialect.name)
    ids = list(connection.scalars(matching.limit(at_most + 1)))
    looked_at = ids[:at_most]
    found = {name: Counter[str]() for name in _FIELDS}
    columns = [letters.c[column] for column in _FIELDS.values()]
    for lot in _lots(looked_at):
        query_lot = select(*columns, func.count().label("number")).where(letters.c.id.in_(lot))
        for row in connection.execute(query_lot.group_by(*columns)):
            for name, value in zip(_FIELDS, row, strict=False):
                found[name][value] += row.number
    return _told(found, counted=len(looked_at), exact=len(ids) <= at_most)


def _lots(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + _LOT] for start in range(0, len(ids), _LOT))


_LOT = 2000


def _told(found: Mapping[str, Counter[str]], *, counted: int, exact: bool) -> Facets:
    values = {name: _most(each) for name, each in found.items()}
    return Facets(**values, counted=counted, exact=exact)


def _most(found: Counter[str]) -> tuple[FacetValue, ...]:
    used = [(value, number) for value, number in found.items() if number > 0]
    most = sorted(used, key=lambda each: (-each[1], each[0]))[:MOST_VALUES]
    return tuple(FacetValue(value, number) for value, number in most)
