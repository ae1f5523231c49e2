"""The few SQL expressions that are not in SQLAlchemy, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, bindparam, case, literal

from redrive.stores.columns import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Table
    from sqlalchemy.dialects.sqlite import Insert

T = TypeVar("T")

LOT = 500
"""Ids per statement: far below every database's limit of parameters."""


def insert_into(table: Table, dialect: str) -> Insert:
    """An INSERT that knows ON CONFLICT; PostgreSQL's has the same methods as SQLite's."""
    statement: Insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
    return statement


def later(one: ColumnElement[T], other: ColumnElement[T] | T) -> ColumnElement[T]:
    """The greater of two; SQLite and PostgreSQL call it by different names."""
    rival = _like(one, other)
    return case((one > rival, one), else_=rival)


def earlier(one: ColumnElement[T], other: ColumnElement[T] | T) -> ColumnElement[T]:
    rival = _like(one, other)
    return case((one < rival, one), else_=rival)


def _like(column: ColumnElement[T], value: ColumnElement[T] | T) -> ColumnElement[T]:
    # A bare value inside CASE would be stored by its Python type, not by the column's.
    return value if isinstance(value, ColumnElement) else literal(value, column.type)


def begins_with(column: ColumnElement[str], beginning: str) -> ColumnElement[bool]:
    """For columns of hexadecimal ids: a range, which an index serves and no wildcard can widen."""
    return and_(column >= beginning, column < beginning + "\U0010ffff")


def one_of(column: ColumnElement[str], texts: Sequence[str], dialect: str) -> ColumnElement[bool]:
    """For columns of exact text. PostgreSQL takes them as one value, which is quicker than one for each."""
    if dialect != "postgresql":
        return column.in_(texts)
    return column == any_(literal([escape(each) for each in texts], ARRAY(Text)))


def any_of(column: ColumnElement[str], name: str = "ids") -> ColumnElement[bool]:
    """As `one_of` on PostgreSQL, for a statement that is made once: the texts, escaped, are bound by that name."""
    return column == any_(bindparam(name, type_=ARRAY(Text)))


def lots(ids: Iterable[T]) -> Iterator[list[T]]:
    """The ids, each once, in portions of LOT."""
    rest = iter(dict.fromkeys(ids))
    while lot := list(islice(rest, LOT)):
        yield lot


Values = dict[str, Any]
