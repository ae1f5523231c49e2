"""`redrive doctor`: what may lose messages, and what to do about it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from msgspec.structs import asdict

from redrive.cli.app_target import load_app
from redrive.cli.invocation import settings_of
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, write_rows
from redrive.finding import Finding, FindingLevel

app = typer.Typer()

_COLUMNS = (
    Column("level", "LEVEL"),
    Column("place", "PLACE"),
    Column("check", "CHECK"),
    Column("queue", "QUEUE"),
    Column("what", "WHAT", shrinks=True, wraps=True),
    Column("remedy", "REMEDY", shrinks=True, wraps=True),
)


@app.command("doctor")
def doctor(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:APP]", help="The App whose queues to look at.", show_default=False),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", metavar="NAME", help="Only this queue and its own; repeatable."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> int:
    """Look at broker, store, disks and settings for everything that may lose messages. Changes nothing.

    Queues are those of the App and of the settings; where neither names any, all of the broker's. Takes half a
    minute at most: what has not answered by then is told. Exits with 1 if there are problems, 6 if the broker or
    the store cannot be reached; warnings, and what does not tell, are 0.
    """
    from redrive.doctor_wiring import examine  # noqa: PLC0415  the whole machinery, not needed for --help

    settings = settings_of(ctx)
    loaded = None if target is None else load_app(target)
    found = asyncio.run(examine(settings, app=loaded, queues=queue or ()))
    write_rows(map(asdict, found), _COLUMNS, output)
    return _code(found)


def _code(found: list[Finding]) -> ExitCode:
    if any(each.unreachable for each in found):
        return ExitCode.UNREACHABLE
    return ExitCode.FAILED if any(each.level is FindingLevel.PROBLEM for each in found) else ExitCode.OK
