"""Terms about a letter's own fields, as conditions on columns. None is ever NULL, for NOT must turn it round."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, false, func, literal, literal_column, not_, or_, select, type_coerce

from redrive.search_terms import COMPARISONS, Field, FieldTerm, Op
from redrive.stores.columns import escape
from redrive.stores.schema import groups, letters
from redrive.stores.sql_rows import TYPE_BUDGET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import ColumnElement

_COLUMNS: dict[Field, str] = {
    Field.QUEUE: "queue",
    Field.HANDLER: "handler",
    Field.STATUS: "status",
    Field.KIND: "kind",
    Field.GROUP: "group_id",
    Field.EVENT: "event_type",
    Field.SOURCE: "source",
    Field.ID: "id",
    Field.CORRELATION: "correlation_id",
    Field.ATTEMPTS: "attempts",
    Field.GENERATION: "generation",
    Field.REVISION: "revision",
    Field.CREATED: "created_at",
    Field.CHANGED: "changed_at",
    Field.OWNER: "owner",
}

_COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.MORE: operator.gt,
    Op.LESS: operator.lt,
    Op.AT_LEAST: operator.ge,
    Op.AT_MOST: operator.le,
}

_SURROGATES = range(0xD800, 0xE000)


def field_condition(term: FieldTerm, columns: Mapping[str, Any]) -> ColumnElement[bool]:
    """On letters, on counters of them, or on groups: on whatever has columns of these names."""
    holds = _holds(term, columns)
    return not_(holds) if term.negated else holds


def of_letters() -> dict[str, Any]:
    """The columns of `letters`. One that says nothing about its event is an event of its queue."""
    return {**letters.c, "event_type": func.coalesce(letters.c.event_type, letters.c.queue)}


def begins(column: ColumnElement[str], beginning: str) -> ColumnElement[bool]:
    """A range, which an index serves and no character can widen. Compared as it is stored: escaped."""
    behind = _first_behind(escape(beginning))
    lower = column >= beginning
    return lower if behind is None else and_(lower, type_coerce(column, Text) < literal(behind, Text))


def _holds(term: FieldTerm, columns: Mapping[str, Any]) -> ColumnElement[bool]:
    if term.field is Field.TYPE:
        return _of_type(term, columns["type"], columns["short_type"])
    if term.field is Field.OWNER and "owner" not in columns:
        owned: ColumnElement[bool] = columns["group_id"].in_(
            select(groups.c.id).where(_compared(term, groups.c.owner))
        )
        return owned
    if term.field is Field.REVISION and (term.op, term.values) == (Op.MORE, (0,)):
        # Written out, never bound: only so can a database tell that the index of edited letters serves it.
        edited: ColumnElement[bool] = columns["revision"] > literal_column("0")
        return edited
    return _compared(term, columns[_COLUMNS[term.field]])


def _of_type(term: FieldTerm, whole: ColumnElement[str], last: ColumnElement[str]) -> ColumnElement[bool]:
    """By the type's full name or its last part. A full name's last part is asked for as well: it has an index."""
    names = [str(value) for value in term.values]
    if term.op is not Op.IS or any(len(name) > TYPE_BUDGET for name in names):  # a name that was cut has lost it
        return or_(_compared(term, whole), _compared(term, last))
    plain = [name for name in names if "." not in name]
    dotted = [name for name in names if "." in name]
    full = and_(last.in_([name.rpartition(".")[2] for name in dotted]), whole.in_(dotted))
    return or_(last.in_(plain), full) if plain and dotted else full if dotted else last.in_(plain)


def _compared(term: FieldTerm, column: ColumnElement[Any]) -> ColumnElement[bool]:
    if term.op in COMPARISONS:
        return or_(false(), *(_COMPARE[term.op](column, value) for value in term.values))
    if term.op is Op.EXISTS:
        holds: ColumnElement[bool] = column != ""
    elif term.op is Op.BEGINS:
        holds = or_(false(), *(begins(column, str(value)) for value in term.values))
    elif term.op is Op.FITS:
        holds = _fits(column, [str(value) for value in term.values])
    else:
        holds = column.in_(term.values)
    return and_(column.is_not(None), holds) if getattr(column, "nullable", False) else holds


def _fits(column: ColumnElement[str], patterns: Sequence[str]) -> ColumnElement[bool]:
    """As `access.fits` has it, for any of the patterns."""
    names = [each for each in patterns if not each.endswith("*")]
    beginnings = [each[:-1] for each in patterns if each.endswith("*")]
    named = [column.in_(names)] if names else []
    return or_(false(), *named, *(begins(column, each) for each in beginnings))


def _first_behind(beginning: str) -> str | None:
    """The least text that is greater than everything that begins so; None if there is none."""
    for place in range(len(beginning) - 1, -1, -1):
        code = ord(beginning[place]) + 1
        if code <= sys.maxunicode:
            return beginning[:place] + chr(_SURROGATES.stop if code in _SURROGATES else code)
    return None
