"""`redrive export`: every matching letter with its body, as JSON lines or CSV."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from redrive.cli.changing import progress
from redrive.cli.escaping import defuse
from redrive.cli.filters import LetterSelection, selecting
from redrive.cli.invocation import at_desk
from redrive.cli.letter_record import SUMMARY, record, whole_record
from redrive.cli.outcome import ExitCode
from redrive.cli.output import cell, json_text, note
from redrive.clock import SystemClock
from redrive.dead_letter import DeadLetter
from redrive.desk import Desk
from redrive.errors import Refused, UsageError
from redrive.message import printable

app = typer.Typer()

_OF_MESSAGE = ("source", "sent_at", "headers", "key", "key_encoding", "body", "body_encoding", "properties")


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


@app.command("export")
@selecting
def export(
    ctx: typer.Context,
    *,
    selection: LetterSelection,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="At most this many.", show_default=False)
    ] = None,
    output: Annotated[
        ExportFormat, typer.Option("--output", "-o", help="How to write them.", case_sensitive=False)
    ] = ExportFormat.JSONL,
    whole: Annotated[
        bool, typer.Option("--whole", help="With every attempt, revision and line of history (jsonl only).")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Write to this file, not to stdout.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    unmasked: Annotated[
        str | None,
        typer.Option(
            "--unmasked",
            metavar="REASON",
            help="Mask nothing; who and why is written down.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Write letters with their bodies, newest first. Bodies that are not UTF-8 are base64, and say so.

    What is personal or secret is masked, unless --unmasked says why not: only then can `redrive import` bring the
    letters back as they were.

    Exit 3 if nothing matched.
    """
    if whole and output is ExportFormat.CSV:
        raise UsageError("--whole does not fit into CSV", remedy="add --output jsonl")
    query = selection.query(SystemClock().now())

    async def work(actions: Desk) -> int:
        count = 0
        with _stream(file, force=force) as stream, _bar(stream, limit) as advance:
            write = _writer(stream, output, whole=whole)
            async for letter in actions.export(query, at_most=limit, whole=whole, unmasked=unmasked):
                write(letter)
                advance(1)
                count += 1
        return count

    count = at_desk(ctx, work)
    note(f"Exported {count} letter{'' if count == 1 else 's'}{f' to {file}' if file else ''}.")
    return ExitCode.OK if count else ExitCode.NOTHING


def _bar(stream: TextIO, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    # Among lines on the same terminal a bar would only be in the way.
    return nullcontext(lambda _done: None) if stream.isatty() else progress("Exporting", total)


def _writer(stream: TextIO, output: ExportFormat, *, whole: bool) -> Callable[[DeadLetter], None]:
    if output is ExportFormat.JSONL:
        told = whole_record if whole else record
        return lambda letter: _write_line(stream, told(letter))
    # Every text is quoted: Python leaves a lone carriage return bare, and readers would take it for a new row.
    table = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    table.writerow([*SUMMARY, *(f"message_{name}" for name in _OF_MESSAGE)])
    on_terminal = stream.isatty()
    return lambda letter: table.writerow([_csv_cell(value, on_terminal) for value in _values(record(letter))])


def _write_line(stream: TextIO, values: dict[str, Any]) -> None:
    stream.write(json_text(values) + "\n")


def _values(values: dict[str, Any]) -> Iterator[Any]:
    yield from (values[name] for name in SUMMARY)
    yield from (values["message"][name] for name in _OF_MESSAGE)


def _csv_cell(value: Any, on_terminal: bool) -> Any:
    if not isinstance(value, str) or on_terminal:
        return defuse(cell(value)) if not isinstance(value, int) else value
    return defuse(printable(value))


@contextmanager
def _stream(file: Path | None, *, force: bool) -> Iterator[TextIO]:
    """Stdout, or a file that only its owner may read and that appears under its name when it is complete."""
    if file is None:
        yield sys.stdout
        return
    if file.exists() and not force:
        raise Refused(f"{file} exists", remedy="choose another name, or add --force to replace it")
    part = file.with_name(f"{file.name}.part")
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write {part}: {error.strerror}", remedy="choose another folder") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            yield stream
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
