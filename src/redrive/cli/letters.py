"""`redrive list` and `redrive show`."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from redrive.actions import Actions
from redrive.cli.ages import age
from redrive.cli.filters import (
    GroupOption,
    HandlerOption,
    NewerOption,
    OlderOption,
    QueueOption,
    StatusOption,
    TypeOption,
    moment,
)
from redrive.cli.invocation import at_desk
from redrive.cli.letter_ids import short_ids
from redrive.cli.letter_page import print_letter
from redrive.cli.letter_record import SUMMARY, error_line, summary, whole_record
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_json, write_rows
from redrive.clock import SystemClock
from redrive.dead_letter import DeadLetter
from redrive.errors import UsageError
from redrive.letter_query import LetterQuery

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
def list_letters(
    ctx: typer.Context,
    *,
    queue: QueueOption = None,
    status: StatusOption = None,
    type_: TypeOption = None,
    handler: HandlerOption = None,
    group: GroupOption = None,
    older_than: OlderOption = None,
    newer_than: NewerOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")] = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Go on behind this letter.", show_default=False)
    ] = None,
    output: FormatOption = Format.TABLE,
) -> int:
    """List dead letters, newest first.

    Exit 3 if filters were given and nothing matched them.
    """
    now = SystemClock().now()
    query = LetterQuery(
        queue=queue,
        status=status,
        type=type_,
        handler=handler,
        group=group,
        created_before=moment(older_than, "--older-than", now),
        created_after=moment(newer_than, "--newer-than", now),
        limit=limit,
    )

    async def work(actions: Actions) -> list[DeadLetter]:
        return await actions.letters(query if after is None else await _behind(actions, query, after))

    letters = at_desk(ctx, work)
    _write_list(letters, output, now)
    if len(letters) == limit:
        note(f"There may be more: add --after {letters[-1].id}")
    filtered = query != LetterQuery(limit=limit)
    return ExitCode.NOTHING if filtered and not letters else ExitCode.OK


async def _behind(actions: Actions, query: LetterQuery, after: str) -> LetterQuery:
    return msgspec.structs.replace(query, after=(await actions.identify([after]))[0])


def _write_list(letters: list[DeadLetter], output: Format, now: datetime) -> None:
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
        bool, typer.Option("--payload", help="Write the payload's exact bytes to stdout, and nothing else.")
    ] = False,
    body: Annotated[
        bool, typer.Option("--body", help="Write the whole body's exact bytes, the envelope included.")
    ] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show one letter: payload, headers, every attempt with its stack trace, revisions, history."""
    if payload and body:
        raise UsageError("--payload and --body cannot both be written", remedy="choose one of them")
    letter = at_desk(ctx, lambda actions: actions.letter(letter_id))
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
