"""`redrive collect`: what others dead-lettered comes into the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from redrive.cli.changing import progress
from redrive.cli.invocation import settings_of
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redrive.collector import Collected
    from redrive.settings import Settings

app = typer.Typer()

_COLUMNS = (
    Column("queue", "QUEUE", shrinks=True),
    Column("new", "COLLECTED", right=True),
    Column("again", "KNOWN", right=True),
    Column("came_back", "CAME BACK", right=True),
    Column("quarantined", "QUARANTINED", right=True),
    Column("refused", "REFUSED", right=True),
)


@app.command("collect")
def collect(
    ctx: typer.Context,
    queues: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUEUE",
            help="Dead-letter or limbo queues; none named: collector.queues of the settings.",
            show_default=False,
        ),
    ] = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Stop when the queues are empty.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Collect at most this many.", show_default=False)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Collect at most N per second.", show_default=False),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> int:
    """Bring dead letters of the broker's queues into the store, whoever put them there.

    Each one is in the store before it leaves its queue; one that is there already is not recorded twice. What
    nobody can read is kept in quarantine. Without --once it goes on until Ctrl-C or SIGTERM. A queue that does not
    exist is an error: it is not made here.
    """
    settings = settings_of(ctx)
    if settings.broker.has_server:
        _check(settings, queues or settings.collector.queues, waits=not once)
    return asyncio.run(_collect(settings, queues or (), once=once, limit=limit, rate=rate, output=output))


def _check(settings: Settings, queues: Sequence[str], *, waits: bool) -> None:
    """NotFound: made by us, a queue would be in the way of its owner, who may declare it differently."""
    from redrive.broker_setup import missing_queues  # noqa: PLC0415  not needed for --help

    try:
        missing = asyncio.run(missing_queues(settings, list(filter(None, queues))))
    except Unreachable:
        if waits:  # for the broker too
            return
        raise
    if missing:
        raise NotFound(
            f"there is no queue {missing[0]!r} on the broker",
            remedy="`redrive queues` lists those that are there, `redrive setup` makes those of an app",
        )


async def _collect(
    settings: Settings, queues: Sequence[str], *, once: bool, limit: int | None, rate: float | None, output: Format
) -> int:
    from redrive.wiring import collector, run_collector  # noqa: PLC0415  the whole machinery, not needed for --help

    async with collector(settings, queues, rate=rate, limit=limit) as collecting:
        collecting.listen_to_signals()
        if once:
            waiting = await collecting.backlog()
            with progress("Collecting", waiting if limit is None else min(waiting, limit)) as advance:
                await collecting.run(once=True, on_progress=advance)
        else:
            await run_collector(collecting, settings)
    _write(collecting.collected, output)
    return _exit_code(collecting.collected, interrupted=once and not collecting.complete)


def _write(collected: Mapping[str, Collected], output: Format) -> None:
    rows = [{"queue": queue, **asdict(counts)} for queue, counts in collected.items()]
    write_rows(rows, _COLUMNS, output)
    for queue, counts in collected.items():
        if counts.quarantined:
            note(f"{counts.quarantined} of {queue} could not be understood: `redrive list --status QUARANTINED`.")
        if counts.refused:
            note(f"{counts.refused} of {queue} were not recorded and stay there: the log says why.")


def _exit_code(collected: Mapping[str, Collected], *, interrupted: bool) -> int:
    if interrupted:
        return ExitCode.INTERRUPTED
    if not any(counts.refused for counts in collected.values()):
        return ExitCode.OK
    return ExitCode.PARTLY if any(counts.settled for counts in collected.values()) else ExitCode.FAILED
