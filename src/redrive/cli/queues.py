"""`redrive queues`: how full and how busy the broker's queues are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from redrive.cli.app_target import load_app
from redrive.cli.invocation import settings_of
from redrive.cli.output import Column, Format, FormatOption, console, note, write_rows
from redrive.errors import Unreachable, UsageError

app = typer.Typer()

_COLUMNS = (
    Column("name", "QUEUE", shrinks=True),
    Column("type", "TYPE"),
    Column("ready", "READY", right=True),
    Column("delayed", "DELAYED", right=True),
    Column("unacked", "UNACKED", right=True),
    Column("consumers", "CONSUMERS", right=True),
    Column("incoming", "IN/S", right=True),
    Column("outgoing", "OUT/S", right=True),
)
_EVERY = 2.0


@app.command("queues")
def queues(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:APP]", help="Only the queues of this App.", show_default=False),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", metavar="NAME", help="Only this queue and its own; repeatable."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every 2 s, until Ctrl-C.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show what lies in the broker's queues, who consumes them, and how much goes in and out.

    Without a name, all of them. RabbitMQ lists them by its management API alone: where that is not enabled, those
    of the settings.
    """
    from redrive.doctor_wiring import figures  # noqa: PLC0415  the whole machinery, not needed for --help

    settings = settings_of(ctx)
    if watch and not (sys.stdout.isatty() and output is Format.TABLE):
        raise UsageError("--watch is for a table on a terminal", remedy="leave it out")
    loaded = None if target is None else load_app(target)
    named = [*(queue or ()), *(loaded.handlers if loaded else ())]

    async def show() -> None:
        found = await figures(settings, app=loaded, queues=named)
        _write([asdict(each) for each in found.queues], output)
        if found.incomplete:
            note(found.incomplete)

    if not watch:
        asyncio.run(show())
        return
    with suppress(KeyboardInterrupt):  # how it is meant to end
        asyncio.run(_watch(show))


def _write(rows: list[dict[str, Any]], output: Format) -> None:
    if output is Format.TABLE:
        rows = [{**row, "incoming": _rate(row["incoming"]), "outgoing": _rate(row["outgoing"])} for row in rows]
    write_rows(rows, _COLUMNS, output)


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{value:,.1f}"


async def _watch(show: Callable[[], Awaitable[None]]) -> None:
    """In one event loop: it answers Ctrl-C at the next pause, and one loop for each look could end before that."""
    while True:
        console().clear()
        try:
            await show()
        except Unreachable as error:  # it may come back
            note(f"error: {error}")
        await asyncio.sleep(_EVERY)
