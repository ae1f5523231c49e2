"""`redrive engine`: carries out whatever redrive runs there are."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import structlog
import typer

from redrive.cli.invocation import settings_of
from redrive.cli.outcome import ExitCode

if TYPE_CHECKING:
    from redrive.settings import Settings

app = typer.Typer()
log = structlog.get_logger("redrive.engine")


@app.command("engine")
def engine(ctx: typer.Context) -> int:
    """Carry out redrive runs, also those that people and rules make meanwhile, until Ctrl-C or SIGTERM.

    Any number of engines share the runs; each letter is sent by one of them. What is being sent at the end is
    finished, the rest is left to the others.
    """
    asyncio.run(_serve(settings_of(ctx)))
    return ExitCode.OK


async def _serve(settings: Settings) -> None:
    from redrive.wiring import run_engine  # noqa: PLC0415  not needed for --help

    serving = asyncio.create_task(run_engine(settings))
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, serving.cancel)
    log.info("the engine carries out redrive runs")
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    log.info("the engine has stopped, nothing is in its hand")
