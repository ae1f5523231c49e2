"""`redrive stats`: S2's statistics, and S1's five analyses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from redrive.cli.ages import age
from redrive.cli.filters import duration
from redrive.cli.invocation import at_desk
from redrive.cli.letter_record import SUMMARY, error_line, summary
from redrive.cli.output import Column, Format, FormatOption, write_json, write_rows
from redrive.clock import SystemClock
from redrive.dead_letter import Status
from redrive.duration import short
from redrive.letter_query import LetterQuery
from redrive.statistics import Statistics

app = typer.Typer()

_COLUMNS = (
    Column("what", "WHAT"),
    Column("name", "NAME", shrinks=True),
    Column("count", "COUNT", right=True),
    Column("rate", "FAILURE RATE", right=True),
)
_TITLE = Column("title", "CAUSE", shrinks=True)
_TYPES = (
    Column("event_type", "TYPE", shrinks=True),
    Column("total", "TOTAL", right=True),
    Column("pending", "PENDING", right=True),
    Column("resolved", "RESOLVED", right=True),
)
_PENDING = (
    Column("id", "ID"),
    Column("message_id", "MESSAGE"),
    Column("queue", "QUEUE"),
    Column("error", "ERROR", shrinks=True),
    Column("age", "AGE", right=True),
)

LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")]


@app.callback(invoke_without_command=True)
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
    if ctx.invoked_subcommand is not None:
        return
    limit = duration(older_than, "--older-than")
    statistics = at_desk(ctx, lambda actions: actions.statistics(older_than=limit))
    if output is Format.JSON:
        write_json(_record(statistics, limit))
    else:
        write_rows(_rows(statistics, limit, as_text=output is Format.TABLE), _COLUMNS, output)


@app.command("pending")
def pending(ctx: typer.Context, limit: LimitOption = 50, output: FormatOption = Format.TABLE) -> None:
    """List what is pending, newest first.

    All of it, page by page: redrive list --status PENDING
    """
    query = LetterQuery(status=Status.PENDING, limit=limit)
    letters = at_desk(ctx, lambda actions: actions.letters(query))
    now = SystemClock().now()
    shown = [{**summary(each), "error": error_line(each), "age": age(each.created_at, now)} for each in letters]
    if output is Format.TABLE:
        write_rows(shown, _PENDING, output)
    else:
        write_rows(map(summary, letters), [Column(key, key) for key in SUMMARY], output)


@app.command("errors")
def errors(ctx: typer.Context, limit: LimitOption = 10, output: FormatOption = Format.TABLE) -> None:
    """Count pending letters by cause, the most frequent first."""
    found = at_desk(ctx, lambda actions: actions.top_errors(limit=limit))
    write_rows(map(asdict, found), (Column("pending", "PENDING", right=True), _TITLE), output)


@app.command("rate")
def rate(
    ctx: typer.Context,
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="How far back: 7d, 12h; at most three years.")
    ] = "7d",
    output: FormatOption = Format.TABLE,
) -> None:
    """Count letters per hour (UTC) in which they failed, hours without any included."""
    within = duration(since, "--since")
    found = at_desk(ctx, lambda actions: actions.error_rate(within))
    write_rows(map(asdict, found), (Column("hour", "HOUR"), Column("letters", "LETTERS", right=True)), output)


@app.command("types")
def types(ctx: typer.Context, output: FormatOption = Format.TABLE) -> None:
    """Count letters by the event type of their message: all of them, the pending, the resolved.

    It is the payload's `event_type` or `type`, or a header of that name; else the queue.
    """
    found = at_desk(ctx, lambda actions: actions.by_event_type())
    write_rows(map(asdict, found), _TYPES, output)


@app.command("resolution")
def resolution(ctx: typer.Context, output: FormatOption = Format.TABLE) -> None:
    """Say how long it took to resolve the letters that are resolved: the mean, in hours."""
    found = at_desk(ctx, lambda actions: actions.time_to_resolve())
    hours = found.mean_hours
    shown = hours if hours is None or output is not Format.TABLE else f"{hours:.2f}"
    columns = (Column("resolved", "RESOLVED", right=True), Column("mean_hours", "MEAN HOURS", right=True))
    write_rows([{"resolved": found.resolved, "mean_hours": shown}], columns, output)


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
