"""`redrive check`: S0's monitor, for cron."""

from __future__ import annotations

from typing import Annotated

import typer

from redrive.cli.filters import duration
from redrive.cli.invocation import at_desk, goes_through_server, settings_of
from redrive.cli.outcome import ExitCode

app = typer.Typer()


@app.command("check")
def check(
    ctx: typer.Context,
    max_pending: Annotated[
        int | None,
        typer.Option("--max-pending", metavar="N", min=0, help="More open letters than this are too many."),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option("--max-age", metavar="DURATION", help="An open letter older than this is too old."),
    ] = None,
) -> int:
    """Exit 0 with one line if all is well, 1 with one line that begins with ALERT if not: for cron.

    Open letters are those pending and those in quarantine. Where no store has been made yet it exits with 6: most
    likely it runs in the wrong folder.
    """
    from redrive.wiring import require_store  # noqa: PLC0415  not needed for --help

    oldest = None if max_age is None else duration(max_age, "--max-age")
    nothing = max_pending is None and oldest is None  # the desk says what is wrong with that
    if not (nothing or goes_through_server(ctx)):
        require_store(settings_of(ctx))
    verdict = at_desk(ctx, lambda actions: actions.check(max_pending=max_pending, max_age=oldest))
    typer.echo(verdict.line)
    return ExitCode.FAILED if verdict.alert else ExitCode.OK
