"""The one way from a filter to SQL, for every database. All that a person wrote is a bound parameter.

Fields are columns of the letter or of its group. Free text, data and headers are looked up in the search index; a
letter that is not indexed yet is in no answer, not even to a term that excludes: nobody knows what is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, exists, not_, select

from redrive.search_terms import FieldTerm
from redrive.stores import sql_search_postgres, sql_search_sqlite
from redrive.stores.schema import letters, search_parts
from redrive.stores.sql_search_fields import field_condition, of_letters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement

    from redrive.search_terms import Term
    from redrive.stores.sql_search_postgres import IndexTerm


def conditions(terms: Iterable[Term], dialect: str, letter: Any = letters.c) -> list[ColumnElement[bool]]:
    """What must hold for a row of `letters`, one condition per term. `letter` has the columns that terms of the
    search index look at: the id is enough.
    """
    return [_condition(term, dialect, letter) for term in terms]


def _condition(term: Term, dialect: str, letter: Any) -> ColumnElement[bool]:
    if isinstance(term, FieldTerm):
        return field_condition(term, of_letters())
    holds = _on_sqlite(term, letter) if dialect == "sqlite" else _on_postgresql(term, letter)
    if not term.negated:
        return holds
    return and_(exists().where(search_parts.c.letter_id == letter.id), not_(holds))


def _on_sqlite(term: IndexTerm, letter: Any) -> ColumnElement[bool]:
    """SQLite may so begin with what was found, and not with all letters."""
    match = sql_search_sqlite.matching(term, search_parts.c)
    found: ColumnElement[bool] = letter.id.in_(select(search_parts.c.letter_id).where(match))
    return found


def _on_postgresql(term: IndexTerm, letter: Any) -> ColumnElement[bool]:
    """A look at the letter's own parts. The OFFSET keeps it that: PostgreSQL would else weigh to read the whole
    index first, and does not know that its rows lie apart from their content.
    """
    own = select(search_parts.c.id).where(search_parts.c.letter_id == letter.id)
    return own.where(sql_search_postgres.probing(term, search_parts.c)).offset(0).exists()
