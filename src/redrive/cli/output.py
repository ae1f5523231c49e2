"""What commands write: data on stdout as a table, JSON, JSON lines or CSV; everything else on stderr.

A command makes rows (mappings of plain values) and columns, and calls `write_rows`. JSON carries whole rows
with their types, a table and CSV carry the columns.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from redrive.cli.escaping import defuse, escape, escape_json
from redrive.message import printable

if TYPE_CHECKING:
    from rich.console import Console

_UNCUT_WIDTH = 100_000


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


FormatOption = Annotated[
    Format, typer.Option("--output", "-o", help="How to write the data on stdout.", case_sensitive=False)
]
"""For every reading command: `output: FormatOption = Format.TABLE`."""

Row = Mapping[str, Any]
"""Text, numbers, booleans, None, datetimes, and lists and mappings of those."""


class Column(NamedTuple):
    key: str
    title: str
    style: str = ""
    """A rich style, for terminals only."""
    right: bool = False
    shrinks: bool = False
    """Gives way first when the terminal is narrow; every other column keeps its width while it can."""
    wraps: bool = False
    """And goes on in the next line, where others lose their end."""


def write_rows(rows: Iterable[Row], columns: Sequence[Column], output: Format) -> None:
    """The rows on stdout. An empty table is a header alone, empty JSON is `[]`: nothing to guess for a script."""
    if output is Format.TABLE:
        _write_table(rows, columns)
    elif output is Format.CSV:
        _write_csv(rows, columns)
    elif output is Format.JSON:
        write_json(list(rows))
    else:
        for row in rows:
            sys.stdout.write(json_text(row) + "\n")


def write_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=2) + "\n")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that is safe on a terminal; datetimes in ISO 8601, big integers exact."""
    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent, default=_plain))


def note(text: str) -> None:
    """One line for the person, on stderr."""
    sys.stderr.write(escape(text) + "\n")


def console(stream: TextIO | None = None) -> Console:
    """A rich console for stdout (or `stream`): colours only on a terminal and without NO_COLOR; a pipe gets
    lines as long as they need to be.
    """
    from rich.console import Console  # noqa: PLC0415  not needed for --help of a command, JSON or CSV

    target = stream or sys.stdout
    on_terminal = target.isatty()
    coloured = on_terminal and not os.environ.get("NO_COLOR")
    return Console(
        file=target,
        color_system="auto" if coloured else None,
        force_terminal=on_terminal,
        width=None if on_terminal else _UNCUT_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def cell(value: Any) -> str:
    """A value as one harmless line: nothing for None, yes or no, ISO 8601 time, JSON for lists."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, str):
        return escape(value)
    return json_text(value) if isinstance(value, Mapping | list | tuple) else str(value)


def _write_table(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    from rich.table import Table  # noqa: PLC0415  as above
    from rich.text import Text  # noqa: PLC0415  as above

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            Text(column.title),
            style=column.style or None,
            justify="right" if column.right else "left",
            no_wrap=not column.shrinks,  # rich takes width from columns that may wrap first
        )
    for row in rows:
        values = ((cell(row.get(column.key)), column.wraps) for column in columns)
        table.add_row(
            *(Text(value, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis") for value, wraps in values)
        )
    console().print(table)


def _write_csv(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    # Every text is quoted: Python leaves a lone carriage return bare, and readers would take it for a new row.
    writer = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    # On a terminal the escapes are needed; in a file the bytes of the data are.
    shown = escape if sys.stdout.isatty() else printable
    header: list[Any] = [column.key for column in columns]
    values = ([_csv_cell(row.get(column.key)) for column in columns] for row in rows)
    for line in chain([header], values):
        writer.writerow([shown(value) if isinstance(value, str) else value for value in line])


def _csv_cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, Mapping | list | tuple):
        return defuse(json_text(value))
    return defuse(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _moment(value)
    raise TypeError(f"{type(value).__name__} has no place in a row: turn it into text first")


def _moment(value: datetime) -> str:
    return value.isoformat(sep="T", timespec="milliseconds")
