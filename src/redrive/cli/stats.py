"""`redrive stats` (S2's statistics) and `redrive check` (S0's monitor)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from redrive.cli.ages import age
from redrive.cli.filters import duration
from redrive.cli.invocation import at_desk, settings_of
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, write_json, write_rows
from redrive.clock import SystemClock
from redrive.duration import short
from redrive.statistics import Statistics

app = typer.Typer()

_COLUMNS = (
    Column("what", "WHAT"),
    Column("name", "NAME", shrinks=True),
    Column("count", "COUNT", right=True),
    Column("rate", "FAILURE RATE", right=True),
)


@app.command("stats")
def stats(
    ctx: typer.Context,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="DURATION", help="Count open letters older than this.")
    ] = "1d",
    output: FormatOption = Format.TABLE,
) -> None:
    """Count letters by status, queue, exception type, handler and reason.

    Queues, types and reasons count open letters: PENDING and QUARANTINED.
    """
    limit = duration(older_than, "--older-than")
    statistics = at_desk(ctx, lambda actions: actions.statistics(older_than=limit))
    if output is Format.JSON:
        write_json(_record(statistics, limit))
    else:
        write_rows(_rows(statistics, limit, as_text=output is Format.TABLE), _COLUMNS, output)


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
    if not (max_pending is None and oldest is None):  # the desk says what is wrong with that
        require_store(settings_of(ctx))
    verdict = at_desk(ctx, lambda actions: actions.check(max_pending=max_pending, max_age=oldest))
    typer.echo(verdict.line)
    return ExitCode.FAILED if verdict.alert else ExitCode.OK


def _record(statistics: Statistics, limit: float) -> dict[str, Any]:
    """S2's DeadLetterStatistics under its names, and S0's reasons and old letters beside it."""
    return {
        "total_dead_letter_messages": statistics.total,
        "messages_by_status": dict(statistics.by_status),
        "messages_by_queue": dict(statistics.by_queue),
        "messages_by_exception_type": dict(statistics.by_type),
        "failure_rate_by_handler": {
            each.handler: {"succeeded": each.succeeded, "failed": each.failed, "rate": each.rate}
            for each in statistics.failure_rates
        },
        "reasons": [{"reason": reason, "count": count} for reason, count in statistics.reasons],
        "oldest": statistics.oldest,
        "older_than": {"seconds": limit, "count": statistics.older},
    }


def _rows(statistics: Statistics, limit: float, *, as_text: bool) -> Iterator[dict[str, Any]]:
    yield {"what": "total", "name": "letters", "count": statistics.total}
    parts = {"status": statistics.by_status, "queue": statistics.by_queue, "type": statistics.by_type}
    for what, counts in parts.items():
        for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            if count or not as_text:
                yield {"what": what, "name": name, "count": count}
    for each in statistics.failure_rates:
        rate = f"{each.rate:.1%} of {each.succeeded + each.failed}" if as_text else each.rate
        yield {"what": "handler", "name": each.handler, "count": each.failed, "rate": rate}
    for reason, count in statistics.reasons:
        yield {"what": "reason", "name": reason, "count": count}
    yield {"what": "older than", "name": short(limit), "count": statistics.older}
    if statistics.oldest is not None and as_text:
        yield {"what": "oldest", "name": age(statistics.oldest, SystemClock().now())}
