"""`redrive alerts`: what rules found (`incidents`); channels, tried out; and what they could not deliver."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from redrive.cli import incidents
from redrive.cli.changing import DryRunOption, YesOption, confirm
from redrive.cli.invocation import settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Column, Format, FormatOption, note, write_rows
from redrive.errors import NotDelivered, NotFound, RedriveError, UsageError

if TYPE_CHECKING:
    from redrive.alerts.outbox import Outbox, Undelivered
    from redrive.alerts.outbox_sql import Figures
    from redrive.settings import Settings

T = TypeVar("T")

app = typer.Typer(help="What rules found, and how people are told of it.", no_args_is_help=True)
incidents.add_to(app)
undelivered_app = typer.Typer(help="Alerts that could not be delivered: list, resend, drop.", no_args_is_help=True)
app.add_typer(undelivered_app, name="undelivered")

_CHANNELS = (
    Column("channel", "CHANNEL"),
    Column("kind", "KIND"),
    Column("min_severity", "FROM"),
    Column("waiting", "WAITING", right=True),
    Column("delivered", "DELIVERED", right=True),
    Column("merged", "MERGED", right=True),
    Column("undelivered", "UNDELIVERED", right=True),
    Column("forgotten", "FORGOTTEN", right=True),
    Column("problem", "PROBLEM", shrinks=True, wraps=True),
)
_UNDELIVERED = (
    Column("number", "NUMBER", right=True),
    Column("channel", "CHANNEL"),
    Column("severity", "SEVERITY"),
    Column("state", "STATE"),
    Column("title", "TITLE", shrinks=True),
    Column("attempts", "ATTEMPTS", right=True),
    Column("given_up_at", "GIVEN UP"),
    Column("reason", "REASON", shrinks=True, wraps=True),
)

NumbersArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="[NUMBER]...", help="As `list` has them.", show_default=False),
]
AllOption = Annotated[bool, typer.Option("--all", help="All that are listed.")]
ChannelOption = Annotated[
    str | None, typer.Option("--channel", metavar="NAME", help="Only those of this channel.", show_default=False)
]


@app.command("channels")
def channels(ctx: typer.Context, output: FormatOption = Format.TABLE) -> int:
    """List channels without their secrets: what became of alerts there, and what is wrong.

    Those that the settings no longer have are listed while anything of theirs is left.

    Nothing is sent. Exits with 2 if one of them could never send anything.
    """
    settings = settings_of(ctx)

    async def work(outbox: Outbox) -> list[dict[str, Any]]:
        figures = await outbox.figures()
        left = [name for name, each in figures.items() if each.waiting or each.undelivered]
        names = dict.fromkeys((*settings.alerts.channels, *left))
        return [
            {"channel": name, **_kind(settings, name), **_numbers(figures, name), **await _problem(settings, name)}
            for name in names
        ]

    rows = _at_outbox(settings, work)
    write_rows(rows, _CHANNELS, output)
    if not rows and output is Format.TABLE:
        note("There are no channels: [alerts.channels.NAME] makes one, see docs/alert-channels.md.")
    return ExitCode.USAGE if any(row["problem"] for row in rows) else ExitCode.OK


def _kind(settings: Settings, name: str) -> dict[str, str]:
    channel = settings.alerts.channels.get(name)
    if channel is None:  # alerts of a channel that was taken out of the settings are not forgotten
        return {"kind": "", "min_severity": ""}
    kind = "webhook" if channel.is_webhook else channel.url.reveal().partition(":")[0]
    return {"kind": kind, "min_severity": channel.min_severity.value}


def _numbers(figures: Mapping[str, Figures], name: str) -> dict[str, int]:
    from msgspec.structs import asdict  # noqa: PLC0415  not needed for --help

    return asdict(figures[name]) if name in figures else {}


async def _problem(settings: Settings, name: str) -> dict[str, str]:
    from redrive.alerts_wiring import channel_of  # noqa: PLC0415  as above

    try:
        await channel_of(settings, name).check()
    except RedriveError as error:
        return {"problem": f"{error}: {error.remedy}" if error.remedy else str(error)}
    return {"problem": ""}


@app.command("test")
def test(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHANNEL", help="Its name in the settings.", show_default=False)],
) -> int:
    """Send a test alert by a channel, then that it is over, and say what happened.

    Each is tried once. Exits with 6 if the receiver cannot be reached or does not take it now, with 1 if trying
    again would not help, with 4 if it took the first and not the second.
    """
    from redrive.alerts.dispatch import attempt  # noqa: PLC0415  as above
    from redrive.alerts.trial import trial  # noqa: PLC0415  as above
    from redrive.alerts_wiring import channel_of  # noqa: PLC0415  as above
    from redrive.clock import SystemClock  # noqa: PLC0415  as above

    settings = settings_of(ctx)
    channel = channel_of(settings, name)
    if settings.server.public_url is None:
        note("Alerts have no link to the console: set server.public_url to have one.")
    for sent, alert in enumerate(trial(SystemClock().now())):
        try:
            asyncio.run(attempt(channel, alert))
        except NotDelivered as refused:
            complain(f"{name} ({channel.kind}): {alert.state} was not delivered: {refused}", refused.remedy)
            return ExitCode.PARTLY if sent else _code(refused)
        typer.echo(f"{name} ({channel.kind}): {alert.state} was delivered.")
    return ExitCode.OK


def _code(refused: NotDelivered) -> ExitCode:
    return ExitCode.FAILED if refused.permanent else ExitCode.UNREACHABLE


@undelivered_app.command("list")
def list_(ctx: typer.Context, *, channel: ChannelOption = None, output: FormatOption = Format.TABLE) -> None:
    """List alerts that were given up: after all attempts, or because trying again could not help."""
    settings = settings_of(ctx)
    write_rows(map(_row, _at_outbox(settings, lambda outbox: outbox.undelivered(channel))), _UNDELIVERED, output)


@undelivered_app.command("resend")
def resend(
    ctx: typer.Context,
    numbers: NumbersArgument = None,
    *,
    everything: AllOption = False,
    channel: ChannelOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Send alerts that were given up, each once more. Those that are delivered leave the list."""
    from redrive.alerts.resending import resend as sent_again  # noqa: PLC0415  as above
    from redrive.alerts_wiring import channel_of  # noqa: PLC0415  as above

    settings = settings_of(ctx)

    async def work(outbox: Outbox) -> int:
        chosen = await _chosen(outbox, numbers, channel, everything=everything)
        if dry_run:
            typer.echo(f"Would send {_counted(len(chosen))}. Nothing was changed.")
            return ExitCode.OK
        open_channels = {name: channel_of(settings, name) for name in {each.channel for each in chosen}}
        failed = 0
        for each in chosen:
            refused = await sent_again(outbox, open_channels[each.channel], each)
            if refused is None:
                typer.echo(f"{each.number}: delivered by {each.channel}.")
            else:
                complain(f"{each.number}: {each.channel} did not take it: {refused}", refused.remedy)
                failed += 1
        if failed:
            return ExitCode.PARTLY if failed < len(chosen) else ExitCode.UNREACHABLE
        return ExitCode.OK

    return _at_outbox(settings, work)


@undelivered_app.command("drop")
def drop(
    ctx: typer.Context,
    numbers: NumbersArgument = None,
    *,
    everything: AllOption = False,
    channel: ChannelOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Take alerts off the list, unsent. Nobody can bring them back."""

    async def work(outbox: Outbox) -> None:
        chosen = await _chosen(outbox, numbers, channel, everything=everything)
        if dry_run:
            typer.echo(f"Would drop {_counted(len(chosen))}. Nothing was changed.")
            return
        confirm(f"Drop {_counted(len(chosen))} unsent?", yes=yes)
        typer.echo(f"Dropped {_counted(await outbox.drop([each.number for each in chosen]))}.")

    _at_outbox(settings_of(ctx), work)


async def _chosen(
    outbox: Outbox, numbers: Sequence[int] | None, channel: str | None, *, everything: bool
) -> list[Undelivered]:
    if bool(numbers) == everything:
        raise UsageError("which of them?", remedy="name their numbers, or --all")
    listed = await outbox.undelivered(channel)
    chosen = [each for each in listed if everything or each.number in (numbers or ())]
    missing = set(numbers or ()) - {each.number for each in chosen}
    if missing or not chosen:
        named = f" {', '.join(map(str, sorted(missing)))}" if missing else ""
        raise NotFound(f"nothing undelivered{named}", remedy="see `redrive alerts undelivered list`")
    return chosen


def _row(each: Undelivered) -> dict[str, Any]:
    return {
        "number": each.number,
        "channel": each.channel,
        "id": each.alert.id,
        "dedup_key": each.alert.dedup_key,
        "severity": each.alert.severity.value,
        "state": each.alert.state.value,
        "title": each.alert.title,
        "attempts": each.attempts,
        "given_up_at": each.at,
        "reason": each.reason,
    }


def _at_outbox(settings: Settings, work: Callable[[Outbox], Awaitable[T]]) -> T:
    from redrive.alerts_wiring import opened_outbox  # noqa: PLC0415  as above

    async def run() -> T:
        async with opened_outbox(settings) as outbox:
            return await work(outbox)

    return asyncio.run(run())


def _counted(number: int) -> str:
    return f"{number:,} alert" if number == 1 else f"{number:,} alerts"
