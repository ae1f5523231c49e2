"""`redrive list` and `redrive show`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from redrive.cli.ages import age
from redrive.cli.filters import LetterSelection, selecting
from redrive.cli.invocation import at_desk
from redrive.cli.letter_ids import short_ids
from redrive.cli.letter_page import print_letter
from redrive.cli.letter_record import SUMMARY, error_line, summary, whole_record
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_json, write_rows
from redrive.cli.paging import Page, page, tell_page
from redrive.clock import SystemClock
from redrive.dead_letter import DeadLetter
from redrive.desk import Desk
from redrive.errors import UsageError
from redrive.letter_query import MAX_PAGE, LetterQuery

app = typer.Typer()

_SHOWN = (
    Column("short_id", "ID"),
    Column("status", "STATUS"),
    Column("queue", "QUEUE"),
    Column("error", "ERROR", shrinks=True),
    Column("attempts", "ATTEMPTS", right=True),
    Column("age", "AGE", right=True),
)
_WRITTEN = tuple(Column(key, key) for key in SUMMARY)


@app.command("list")
@selecting
def list_letters(
    ctx: typer.Context,
    *,
    selection: LetterSelection,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MAX_PAGE, help="At most this many.")] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="ID", help="Go on behind this letter: older ones.", show_default=False),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="ID", help="Go back from this letter: newer ones.", show_default=False),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only say how many match, exactly.")] = False,
    output: FormatOption = Format.TABLE,
) -> int:
    """List dead letters, newest first.

    Exit 3 if filters were given and nothing matched them.
    """
    if after is not None and before is not None:
        raise UsageError("--after and --before go opposite ways", remedy="choose one of them")
    now = SystemClock().now()
    query = selection.query(now)
    if count:
        number = at_desk(ctx, lambda actions: actions.count(query)).number
        _write_count(number, output)
        return _exit_code(query, number)

    async def work(actions: Desk) -> Page:
        return await page(actions, query, limit=limit, after=after, before=before, counted=output is Format.TABLE)

    shown = at_desk(ctx, work)
    _write_list(shown.letters, output, now)
    tell_page(shown, limit)
    return _exit_code(query, len(shown.letters))


def _exit_code(query: LetterQuery, found: int) -> int:
    return ExitCode.NOTHING if query != LetterQuery() and not found else ExitCode.OK


def _write_count(number: int, output: Format) -> None:
    if output is Format.TABLE:
        typer.echo(str(number))
    elif output is Format.JSON:
        write_json({"count": number})
    else:
        write_rows([{"count": number}], [Column("count", "COUNT")], output)


def _write_list(letters: Sequence[DeadLetter], output: Format, now: datetime) -> None:
    if output is not Format.TABLE:
        write_rows(map(summary, letters), _WRITTEN, output)
    elif letters:
        shown = short_ids(letter.id for letter in letters)
        write_rows([_row(letter, shown[letter.id], now) for letter in letters], _SHOWN, output)
    else:
        note("No dead letters match.")


def _row(letter: DeadLetter, short_id: str, now: datetime) -> dict[str, Any]:
    extra = {"short_id": short_id, "error": error_line(letter), "age": age(letter.created_at, now)}
    return summary(letter) | extra


@app.command("show")
def show(
    ctx: typer.Context,
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="The letter's id, or the beginning of it.")],
    *,
    payload: Annotated[
        bool, typer.Option("--payload", help="Write the payload to stdout byte for byte, and nothing else.")
    ] = False,
    body: Annotated[bool, typer.Option("--body", help="Write the whole body so, the envelope included.")] = False,
    reveal: Annotated[
        str | None,
        typer.Option(
            "--reveal",
            metavar="REASON",
            help="Mask nothing; who and why is written down.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show one letter: payload, headers, every attempt with its stack trace, revisions, history.

    What is personal or secret is masked, unless --reveal says why it must be seen.
    """
    if payload and body:
        raise UsageError("--payload and --body cannot both be written", remedy="choose one of them")

    async def look(actions: Desk) -> DeadLetter:
        return await (actions.letter(letter_id) if reveal is None else actions.reveal(letter_id, reveal))

    letter = at_desk(ctx, look)
    if payload or body:
        _write_bytes(letter.message.payload if payload else letter.message.body)
    elif output is Format.TABLE:
        print_letter(letter, SystemClock().now())
    elif output is Format.JSON:
        write_json(whole_record(letter))
    else:
        write_rows([whole_record(letter)], _WRITTEN, output)


def _write_bytes(raw: bytes | None) -> None:
    if raw is None:
        note("The message has no body.")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()
