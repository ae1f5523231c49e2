"""Many rows at once on PostgreSQL, past SQLAlchemy: COPY, or one statement for several tables.

A batch of letters has tens of thousands of values. Given to the driver as they are, in one message per table,
they cost a fraction of what a statement per row costs.
"""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Integer, LargeBinary, TypeDecorator
from sqlalchemy.util import await_only

from redrive.stores.columns import ExactText, Moment, escape_all, microseconds, unescape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from asyncpg import Connection as Driver
    from sqlalchemy import Column, Connection, Table

    from redrive.stores.expressions import Values

    Inserts = Sequence[tuple[Table, Sequence[Values]]]

_FEW = 32


def insert_rows(connection: Connection, *inserts: tuple[Table, Sequence[Values]]) -> None:
    """All rows into their tables. The rows of one table have the same keys, and there is at least one; what is
    missing takes the column's default.
    """
    few = max(len(rows) for _, rows in inserts) <= _FEW
    (_insert_in_one_statement if few else _copy)(connection, inserts)


def _copy(connection: Connection, inserts: Inserts) -> None:
    for table, rows in inserts:
        names = tuple(rows[0])
        records = zip(*_columns(table, names, rows), strict=True)
        await_only(_driver(connection).copy_records_to_table(table.name, records=records, columns=names))


def _insert_in_one_statement(connection: Connection, inserts: Inserts) -> None:
    """Slower per row than COPY, which asks the server twice per table; for a few rows the asking takes longest."""
    named = tuple((table, tuple(rows[0])) for table, rows in inserts)
    arrays = [
        array
        for (table, columns), (_, rows) in zip(named, inserts, strict=True)
        for array in _columns(table, columns, rows)
    ]
    await_only(_driver(connection).execute(_one_statement(named), *arrays))


@cache
def _one_statement(named: tuple[tuple[Table, tuple[str, ...]], ...]) -> str:
    place, parts = 0, []
    for table, columns in named:
        arrays = ", ".join(f"${place + number}::{_array(table.c[name])}" for number, name in enumerate(columns, 1))
        names = ", ".join(f'"{name}"' for name in columns)
        parts.append(f'INSERT INTO "{table.name}" ({names}) SELECT * FROM unnest({arrays})')  # noqa: S608  names of ours
        place += len(columns)
    rest = ", ".join(f"part_{number} AS ({part})" for number, part in enumerate(parts[:-1]))
    return f"WITH {rest} {parts[-1]}" if rest else parts[-1]


def _array(column: Column[Any]) -> str:
    kind = column.type.impl_instance if isinstance(column.type, TypeDecorator) else column.type
    if isinstance(kind, BigInteger):
        return "bigint[]"
    if isinstance(kind, Integer):
        return "integer[]"
    return "bytea[]" if isinstance(kind, LargeBinary) else "text[]"


def known(connection: Connection, column: Column[str], values: Iterable[str]) -> set[str]:
    """Which of these values the column, one of exact text without repeats, has."""
    statement = _known_statement(column.table.name, column.name)
    rows = await_only(_driver(connection).fetch(statement, escape_all(list(values))))
    return {unescape(row[0]) for row in rows}


@cache
def _known_statement(table: str, column: str) -> str:
    # A look by the index for each value, whatever the server knows of the table: `= ANY` of a table that has grown
    # since it was last analysed reads all of it, and a plan that was made for an empty one stays.
    found = f'(SELECT true FROM "{table}" WHERE "{column}" = wanted)'  # noqa: S608  names of ours
    return f"SELECT wanted FROM unnest($1::text[]) AS wanted WHERE {found}"  # noqa: S608  as above


def _columns(table: Table, names: tuple[str, ...], rows: Sequence[Values]) -> list[Sequence[Any]]:
    """The rows' values, column by column, written as the column's type writes them."""
    values = zip(*map(itemgetter(*names), rows), strict=True)
    return [
        column if write is None else write(column)
        for column, write in zip(values, _writers(table, names), strict=True)
    ]


@cache
def _writers(table: Table, names: tuple[str, ...]) -> tuple[Callable[[Sequence[Any]], Sequence[Any]] | None, ...]:
    return tuple(_writer(table.c[name]) for name in names)


def _writer(column: Column[Any]) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    if isinstance(column.type, Moment):
        return _written_moments
    return escape_all if isinstance(column.type, ExactText) else None


def _written_moments(values: Sequence[datetime | None]) -> list[int | None]:
    return [None if value is None else microseconds(value) for value in values]


def _driver(connection: Connection) -> Driver:
    # SQLAlchemy begins its transaction with the first statement it is given. Before anything is written there has
    # been one: the groups were looked at.
    driver: Driver = connection.connection.driver_connection
    return driver
