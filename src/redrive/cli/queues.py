"""`redrive queues`: how full and how busy the broker's queues are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.app_target import load_app
from redrive.cli.invocation import goes_through_server, server_desk, settings_of
from redrive.cli.output import Column, Format, FormatOption, console, note, write_rows
from redrive.errors import Unreachable, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.app import App
    from redrive.transports.inspection import QueueFigures

    Look = Callable[[], Awaitable[tuple[Sequence[QueueFigures], str]]]

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
    of the settings. On Kafka those that the consumer group has read; READY is its lag.
    """
    if watch and not (sys.stdout.isatty() and output is Format.TABLE):
        raise UsageError("--watch is for a table on a terminal", remedy="leave it out")
    loaded = None if target is None else load_app(target)
    named = [*(queue or ()), *(loaded.handlers if loaded else ())]
    look = _through_server(ctx, named) if goes_through_server(ctx) else _at_broker(ctx, loaded, named)

    async def show() -> None:
        found, incomplete = await look()
        _write([{column.key: getattr(each, column.key) for column in _COLUMNS} for each in found], output)
        if incomplete:
            note(incomplete)

    if not watch:
        asyncio.run(show())
        return
    with suppress(KeyboardInterrupt):  # how it is meant to end
        asyncio.run(_watch(show))


def _at_broker(ctx: typer.Context, app: App | None, named: Sequence[str]) -> Look:
    from redrive.doctor_wiring import figures  # noqa: PLC0415  the whole machinery, not needed for --help

    settings = settings_of(ctx)

    async def look() -> tuple[Sequence[QueueFigures], str]:
        found = await figures(settings, app=app, queues=named)
        return found.queues, found.incomplete

    return look


def _through_server(ctx: typer.Context, named: Sequence[str]) -> Look:
    async def look() -> tuple[Sequence[QueueFigures], str]:
        async with server_desk(ctx) as desk:
            found, incomplete = await desk.queues(named)
        return [each for each in found if _is_told_of(each)], incomplete

    return look


def _is_told_of(queue: QueueFigures) -> bool:
    """By the broker; else it is a queue that letters alone tell of."""
    return any(getattr(queue, column.key) is not None for column in _COLUMNS if column.key != "name")


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
