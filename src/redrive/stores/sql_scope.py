"""What somebody may know of, as a condition on a queue's name: the one way from a scope to SQL.

Patterns are never patterns of the database: a name is compared as a whole and a beginning is a range, both by
bytes and both served by an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import not_, select

from redrive.access import EVERYWHERE
from redrive.search_terms import Field, FieldTerm, Op
from redrive.stores.expressions import lots, one_of
from redrive.stores.schema import letters
from redrive.stores.sql_search_fields import field_condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement, Connection

    from redrive.access import Scope


def scope_terms(within: Scope) -> tuple[FieldTerm, ...]:
    """None if everything is in the scope."""
    if within is None or EVERYWHERE[0] in within:
        return ()
    return (FieldTerm(field=Field.QUEUE, op=Op.FITS, values=within),)


def inside(queue: ColumnElement[str], within: Scope) -> list[ColumnElement[bool]]:
    """What must hold for a row with this column; nothing, if everything is in the scope."""
    return [field_condition(term, {"queue": queue}) for term in scope_terms(within)]


def outside(queue: ColumnElement[str], within: Scope) -> list[ColumnElement[bool]]:
    """The opposite. Not to be asked where everything is in the scope: no condition could say "nothing"."""
    return [not_(each) for each in inside(queue, within)]


def letters_inside(connection: Connection, letter_ids: Iterable[str], within: Scope) -> set[str]:
    """Those of the letters that exist and are in the scope."""
    found: set[str] = set()
    for lot in lots(letter_ids):
        mine = one_of(letters.c.id, lot, connection.dialect.name)
        found |= set(connection.scalars(select(letters.c.id).where(mine, *inside(letters.c.queue, within))))
    return found
