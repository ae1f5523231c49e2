"""`redrive groups`: dead letters by cause, and what people say and decide about causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from msgspec import UNSET, UnsetType

from redrive.cli.ages import age
from redrive.cli.changing import DryRunOption, YesOption, confirm
from redrive.cli.filters import QueueOption
from redrive.cli.group_page import group_record, print_group
from redrive.cli.invocation import at_desk
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_json, write_rows
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.cli.sparkline import sparkline
from redrive.clock import SystemClock
from redrive.dead_letter import DeadLetter, FailureGroup, Verdict
from redrive.desk import Desk
from redrive.errors import NotFound, Refused, UsageError

app = typer.Typer()

_SHOWN = (
    Column("short_id", "GROUP"),
    Column("pending", "PENDING", right=True),
    Column("total", "TOTAL", right=True),
    Column("spark", "LAST 24 HOURS"),
    Column("queue", "QUEUE"),
    Column("handler", "HANDLER"),
    Column("owner", "OWNER"),
    Column("verdict", "VERDICT"),
    Column("title", "CAUSE", shrinks=True),
    Column("last", "LAST SEEN", right=True),
)
_WRITTEN = tuple(Column(key, key) for key in FailureGroup.__struct_fields__)
_SHORT = 12

OwnerOption = Annotated[str | None, typer.Option("--owner", help="Of this owner.", show_default=False)]
_VERDICTS = ", ".join(verdict.replace(" ", "-") for verdict in Verdict)
VerdictOption = Annotated[
    str | None, typer.Option("--verdict", help=f"With this verdict: {_VERDICTS}.", show_default=False)
]
GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group's id, or the beginning of it.", show_default=False)
]


@app.callback(invoke_without_command=True)
def groups(
    ctx: typer.Context,
    *,
    queue: QueueOption = None,
    owner: OwnerOption = None,
    verdict: VerdictOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")] = 50,
    output: FormatOption = Format.TABLE,
) -> int:
    """List failures by cause, those with the most pending letters first.

    The letters of one: redrive list --group GROUP
    """
    if ctx.invoked_subcommand is not None:
        return ExitCode.OK
    judged = _verdict(verdict)
    filters: dict[str, Any] = {"queue": queue, "owner": owner, "verdict": None if judged is UNSET else judged}
    found = at_desk(ctx, lambda actions: actions.groups(**filters, limit=limit))
    if output is Format.TABLE and not found:
        note("No failures." if queue is None else f"No failures of {queue}.")
    elif output is Format.TABLE:
        write_rows(map(_row, found), _SHOWN, output)
    else:
        write_rows(map(group_record, found), _WRITTEN, output)
    filtered = any(value is not None for value in filters.values())
    return ExitCode.NOTHING if filtered and not found else ExitCode.OK


def _row(group: FailureGroup) -> dict[str, Any]:
    last = f"{age(group.last_seen, SystemClock().now())} ago"
    return {**group_record(group), "short_id": group.id[:_SHORT], "last": last, "spark": sparkline(group.trend)}


@app.command("show")
def show(ctx: typer.Context, group: GroupArgument, output: FormatOption = Format.TABLE) -> None:
    """Show one group: its numbers, its trend, an example, what was said about it, its history."""

    async def work(actions: Desk) -> tuple[FailureGroup, DeadLetter | None]:
        found = await actions.group(group)
        return found, await _example(actions, found)

    found, example = at_desk(ctx, work)
    if output is Format.TABLE:
        print_group(found, example, SystemClock().now())
    else:
        _write(found, output)


async def _example(actions: Desk, group: FailureGroup) -> DeadLetter | None:
    try:
        return None if group.example is None else await actions.letter(group.example)
    except NotFound:  # purged since
        return None


def _write(group: FailureGroup, output: Format) -> None:
    if output is Format.JSON:
        write_json(group_record(group))
    else:
        write_rows([group_record(group)], _WRITTEN, output)


@app.command("set")
def set_(
    ctx: typer.Context,
    group: GroupArgument,
    *,
    owner: Annotated[str | None, typer.Option("--owner", help="Who looks after it.", show_default=False)] = None,
    verdict: Annotated[
        str | None,
        typer.Option("--verdict", help=f"What is to be done: {_VERDICTS}.", show_default=False),
    ] = None,
    note_: Annotated[str | None, typer.Option("--note", help="What is known.", show_default=False)] = None,
    runbook: Annotated[
        str | None, typer.Option("--runbook", help="What to do, or where it says so.", show_default=False)
    ] = None,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Say something about a group: it stays with it across redrives, purges and upgrades.

    An empty text takes away what was said: --owner ''
    """
    said = {"owner": owner, "note": note_, "runbook": runbook}
    values: dict[str, Any] = {name: UNSET if text is None else text for name, text in said.items()}
    values["verdict"] = _verdict(verdict)
    if all(value is UNSET for value in values.values()):
        raise UsageError("nothing to set", remedy="give --owner, --verdict, --note or --runbook")

    async def work(actions: Desk) -> FailureGroup:
        if dry_run:
            return await actions.group(group)
        return await actions.annotate(group, **values, reason=reason or "")

    changed = at_desk(ctx, work)
    typer.echo(f"Would set {_named(values)} of" if dry_run else f"Set {_named(values)} of", nl=False)
    typer.echo(f" group {changed.id}.{' Nothing was changed.' if dry_run else ''}")


def _verdict(text: str | None) -> Verdict | UnsetType | None:
    if text is None:
        return UNSET
    wanted = " ".join(text.lower().replace("-", " ").replace("_", " ").split())
    if not wanted:
        return None
    try:
        return Verdict(wanted)
    except ValueError:
        raise UsageError(f"{text!r} is no verdict", remedy=f"use one of: {_VERDICTS}") from None


def _named(values: dict[str, Any]) -> str:
    return ", ".join(name for name in ("owner", "verdict", "note", "runbook") if values[name] is not UNSET)


@app.command("merge")
def merge(
    ctx: typer.Context,
    into: Annotated[str, typer.Argument(metavar="INTO", help="The group that stays.", show_default=False)],
    others: Annotated[
        list[str],
        typer.Argument(metavar="GROUP", help="The groups that become part of it.", show_default=False),
    ],
    *,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Make groups of one cause one group, the letters that will come included.

    Each letter is moved: a large group takes a while, and workers may go on meanwhile. Interrupted, the same
    command again completes it. `redrive groups split` takes it back.
    """

    async def work(actions: Desk) -> None:
        target = await actions.group(into)
        number = sum([group.total for group in await _distinct(actions, others) if group.id != target.id])
        what = f"{len(others)} group{'' if len(others) == 1 else 's'} with {_counted(number)} into {target.id}"
        if dry_run:
            typer.echo(f"Would merge {what}. Nothing was changed.")
            return
        why = given_reason(reason)
        confirm(f"Merge {what}?", yes=yes)
        merged = await actions.merge(into, others, why)
        typer.echo(f"Merged: group {merged.id} has {_counted(merged.total)}.")

    at_desk(ctx, work)


async def _distinct(actions: Desk, named: Sequence[str]) -> list[FailureGroup]:
    found = [await actions.group(each) for each in named]
    return list({group.id: group for group in found}.values())


@app.command("split")
def split(
    ctx: typer.Context,
    group: GroupArgument,
    fingerprint: Annotated[
        str,
        typer.Argument(
            metavar="FINGERPRINT", help="Which of those that `show` lists as merged.", show_default=False
        ),
    ],
    *,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Make a group that was merged into another its own again, with all its letters.

    Interrupted, the same command again completes it.
    """

    async def work(actions: Desk) -> None:
        whole = await actions.group(group)
        part = next((each for each in whole.merged if each.startswith(fingerprint.lower())), None)
        if dry_run and part is None:
            raise Refused(
                f"group {fingerprint} is not part of {whole.id}", remedy="`redrive groups show` lists them"
            )
        if dry_run:
            typer.echo(f"Would split {part} off {whole.id}. Nothing was changed.")
            return
        why = given_reason(reason)
        confirm(f"Split {part or fingerprint} off {whole.id}?", yes=yes)
        own = await actions.split(group, fingerprint, why)
        typer.echo(f"Split: group {own.id} has {_counted(own.total)}.")

    at_desk(ctx, work)


def _counted(letters: int) -> str:
    return f"{letters} letter{'' if letters == 1 else 's'}"
