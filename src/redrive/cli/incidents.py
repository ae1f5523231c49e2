"""`redrive alerts list|show|acknowledge|snooze|wake|resolve|rules`: what rules found, and what is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.ages import age
from redrive.cli.invocation import at_desk, settings_of
from redrive.cli.letter_ids import short_ids
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_json, write_rows
from redrive.clock import SystemClock
from redrive.desk import Desk
from redrive.duration import short

if TYPE_CHECKING:
    from redrive.alerts.incident import Incident
    from redrive.alerts.rule import AlertRule

_SHOWN = (
    Column("short_id", "ALERT"),
    Column("severity", "SEVERITY"),
    Column("state", "STATE"),
    Column("queue", "QUEUE"),
    Column("title", "WHAT", shrinks=True),
    Column("counted", "COUNTS"),
    Column("age", "SINCE", right=True),
)
_FIELDS = (
    *("id", "key", "rule", "severity", "status", "title", "counts", "queue", "group_id", "path", "since"),
    *(
        "changed_at",
        "ended_at",
        "told_at",
        "acknowledged_by",
        "acknowledged_at",
        "snoozed_until",
        "snoozed_by",
        "held",
    ),
)
_WRITTEN = tuple(Column(key, key) for key in _FIELDS)
_RULES = (
    Column("name", "RULE"),
    Column("kind", "ON"),
    Column("severity", "SEVERITY"),
    Column("threshold", "THRESHOLD", right=True),
    Column("at_least", "AT LEAST", right=True),
    Column("window", "WINDOW", right=True),
    Column("cooldown", "COOLDOWN", right=True),
    Column("queues", "QUEUES"),
    Column("channels", "CHANNELS"),
)

IdArgument = Annotated[
    str, typer.Argument(metavar="ALERT", help="Its id, or the beginning of it.", show_default=False)
]
WhyOption = Annotated[str, typer.Option("--reason", "-r", help="Why, for the audit trail.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    for command in (list_, show, acknowledge, snooze, wake, resolve, rules):
        app.command(command.__name__.rstrip("_"))(command)


def list_(
    ctx: typer.Context,
    *,
    firing: Annotated[bool, typer.Option("--firing", help="Only what is so now.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")] = 50,
    output: FormatOption = Format.TABLE,
) -> None:
    """List what rules found: what is so now first, then what is over.

    `redrive serve` looks at the rules, every 15 seconds unless alerts.every says otherwise.
    """
    found = at_desk(ctx, lambda desk: desk.incidents(firing=firing, limit=limit))
    if output is Format.TABLE and not found:
        note("Nothing to tell.")
    elif output is Format.TABLE:
        shown = short_ids(each.id for each in found)
        write_rows((_row(each, shown[each.id]) for each in found), _SHOWN, output)
    else:
        write_rows(map(_record, found), _WRITTEN, output)


def show(ctx: typer.Context, alert: IdArgument) -> None:
    """Show one alert, as JSON."""
    write_json(_record(at_desk(ctx, lambda desk: desk.incident(alert))))


def acknowledge(ctx: typer.Context, alert: IdArgument, *, reason: WhyOption = "") -> None:
    """Say that you see to it: nobody is reminded any more. Its end is told."""
    _changed(ctx, lambda desk: desk.acknowledge(alert, reason), "acknowledged")


def snooze(
    ctx: typer.Context,
    alert: IdArgument,
    wait: Annotated[str, typer.Argument(metavar="TIME", help="Such as 30m, 4h or 2d.", show_default=False)],
    *,
    reason: WhyOption = "",
) -> None:
    """Tell nothing of it but its end for a while, also when it begins anew meanwhile."""
    _changed(ctx, lambda desk: desk.snooze(alert, wait, reason), f"snoozed for {wait}")


def wake(ctx: typer.Context, alert: IdArgument, *, reason: WhyOption = "") -> None:
    """Snooze it no longer."""
    _changed(ctx, lambda desk: desk.wake(alert, reason), "awake")


def resolve(ctx: typer.Context, alert: IdArgument, *, reason: WhyOption = "") -> None:
    """Say that it is over. It is told again only after it was over by itself."""
    _changed(ctx, lambda desk: desk.resolve_incident(alert, reason), "resolved")


def rules(ctx: typer.Context, *, output: FormatOption = Format.TABLE) -> int:
    """List the rules that are looked at, as alerts.rules of the settings say."""
    settings = settings_of(ctx)
    write_rows(map(_rule, settings.alerts.judged()), _RULES, output)
    if settings.alerts.every is None:
        note("Nobody looks at them: alerts.every is none.")
    return ExitCode.OK


def _changed(ctx: typer.Context, change: Callable[[Desk], Awaitable[Incident]], what: str) -> None:
    incident = at_desk(ctx, change)
    note(f"{incident.id} is {what}: {incident.title}")


def _row(incident: Incident, short_id: str) -> dict[str, Any]:
    now = SystemClock().now()
    return {
        "short_id": short_id,
        "severity": str(incident.severity),
        "state": _state(incident),
        "queue": incident.queue,
        "title": incident.title,
        "counted": ", ".join(f"{number:,} {name}" for name, number in incident.counts.items()),
        "age": age(incident.since, now),
    }


def _state(incident: Incident) -> str:
    now = SystemClock().now()
    if not incident.is_firing:
        return "over"
    if incident.is_snoozed(now) and incident.snoozed_until is not None:
        return f"snoozed {short((incident.snoozed_until - now).total_seconds())}"
    return "firing" if incident.acknowledged_by is None else f"seen by {incident.acknowledged_by}"


def _record(incident: Incident) -> dict[str, Any]:
    return {name: getattr(incident, name) for name in _FIELDS} | {"counts": dict(incident.counts)}


def _rule(rule: AlertRule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "kind": str(rule.kind),
        "severity": str(rule.severity),
        "threshold": f"{rule.threshold:g}" if rule.threshold else "",
        "at_least": rule.at_least or "",
        "window": short(rule.window),
        "cooldown": short(rule.cooldown),
        "queues": ", ".join(rule.queues),
        "channels": ", ".join(rule.channels),
    }
