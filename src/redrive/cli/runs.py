"""`redrive runs`: what runs there are, what became of their letters, and what people decide about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.ages import age
from redrive.cli.changing import DryRunOption, RateOption, YesOption, confirm
from redrive.cli.invocation import at_desk
from redrive.cli.letters_sent import counted, tell_outcomes
from redrive.cli.outcome import ExitCode
from redrive.cli.output import Column, Format, FormatOption, note, write_json, write_rows
from redrive.cli.reasons import given_reason
from redrive.cli.run_edit import edit_summary
from redrive.cli.run_options import NameOption
from redrive.cli.run_page import outcome_record, print_run, run_record
from redrive.cli.running import carried_out, tell_end
from redrive.clock import SystemClock
from redrive.desk import Desk
from redrive.errors import UsageError
from redrive.redriving import LEASE, SEND_DEADLINE
from redrive.run import LetterOutcome, RunChange, RunStatus
from redrive.run_report import summary

if TYPE_CHECKING:
    from redrive.run import Run
    from redrive.run_report import RunReport

app = typer.Typer()

_SHOWN = (
    Column("id", "RUN"),
    Column("status", "STATUS"),
    Column("total", "LETTERS", right=True),
    Column("sent", "SENT", right=True),
    Column("confirmed", "CONFIRMED", right=True),
    Column("back", "BACK", right=True),
    Column("remaining", "LEFT", right=True),
    Column("requested_by", "BY"),
    Column("made", "MADE", right=True),
    Column("selection", "SELECTION", shrinks=True),
)
_WRITTEN = tuple(
    Column(key, key)
    for key in (
        *("id", "status", "why", "requested_by", "created_at", "changed_at", "ended_at", "total", "remaining"),
        *("in_hand", "sent", "confirmed", "came_back_same", "came_back_new", "refused", "released", "by_hand"),
        *(
            "last_sent_at",
            "without_word",
            "in_doubt",
            "passed_over",
            "summary",
            "estimated_end",
            "selection",
            "edit",
        ),
        *("at_most", "target", "to_origin", "quarantined", "allow_sensitive", "schema"),
        *("rate", "reason", "rule", "canary", "stage", "brakes", "approval"),
    )
)
TAKEN_OVER_AFTER = LEASE + SEND_DEADLINE
_LETTERS = tuple(Column(key, key.upper().replace("_", " ")) for key in LetterOutcome.__struct_fields__)

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's id, or the beginning of it.", show_default=False)
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", "-r", help="Why: the run's history keeps it.", show_default=False)
]
ActiveOption = Annotated[bool, typer.Option("--active", help="Only those that have not ended.")]
MostOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many.")]


@app.callback(invoke_without_command=True)
def runs(ctx: typer.Context) -> int:
    """List redrive runs, show what became of their letters, decide about them."""
    return ExitCode.OK if ctx.invoked_subcommand is not None else _list(ctx)


@app.command("list")
def list_(
    ctx: typer.Context,
    *,
    active: ActiveOption = False,
    limit: MostOption = 50,
    output: FormatOption = Format.TABLE,
) -> int:
    """List runs, the newest first."""
    return _list(ctx, active=active, limit=limit, output=output)


def _list(ctx: typer.Context, *, active: bool = False, limit: int = 50, output: Format = Format.TABLE) -> int:
    found = at_desk(ctx, lambda actions: actions.reports(active=active, limit=limit))
    if output is Format.TABLE and not found:
        note("No runs.")
    else:
        write_rows(map(_row, found), _SHOWN if output is Format.TABLE else _WRITTEN, output)
    return ExitCode.NOTHING if active and not found else ExitCode.OK


def _row(report: RunReport) -> dict[str, Any]:
    run = report.run
    made = f"{age(run.created_at, SystemClock().now())} ago"
    return {**run_record(report), "back": run.progress.came_back, "made": made}


@app.command("show")
def show(
    ctx: typer.Context,
    run: RunArgument,
    *,
    letters: Annotated[bool, typer.Option("--letters", help="What became of each letter, one by one.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show one run: what became of its letters, what is left, when it will end, why it stopped."""

    async def look(actions: Desk) -> None:
        report = await actions.report(run)
        if letters:
            outcomes = [outcome_record(each) async for each in actions.outcomes(report.run.id)]
            write_rows(outcomes, _LETTERS, output)
        elif output is Format.TABLE:
            print_run(report, await actions.run_history(report.run.id), SystemClock().now())
        elif output is Format.JSON:
            write_json(run_record(report))
        else:
            write_rows([run_record(report)], _WRITTEN, output)

    at_desk(ctx, look)


@app.command("pause")
def pause(ctx: typer.Context, run: RunArgument, *, reason: ReasonOption = None, name: NameOption = None) -> None:
    """Pause a run: within a second or two, nothing more of it is sent. Nothing is lost."""
    changed = _changed(ctx, run, RunChange.PAUSE, reason or "by hand", name)
    typer.echo(f"Paused run {changed.id}: {summary(changed.progress)}, {changed.remaining} remaining.")


@app.command("resume")
def resume(
    ctx: typer.Context,
    run: RunArgument,
    *,
    reason: ReasonOption = None,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it to `redrive engine`.")] = False,
    name: NameOption = None,
) -> int:
    """Go on with a run that is paused, or whose process has died: carry it out here.

    Beside an engine or another process that carries it out, this one takes its share.
    """

    async def work(actions: Desk) -> int:
        found = await actions.run(run)
        if found.status is not RunStatus.RUNNING:
            found = await actions.change_run(found.id, RunChange.RESUME, reason or "by hand")
        if detach:
            typer.echo(f"Resumed run {found.id}.")
            return ExitCode.OK
        return await tell_end(actions, await carried_out(actions, found))

    return at_desk(ctx, work, name=name, tells=True)


@app.command("cancel")
def cancel(
    ctx: typer.Context,
    run: RunArgument,
    *,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    name: NameOption = None,
) -> None:
    """Give a run up: what was not sent yet stays pending. What was sent is not called back."""

    async def work(actions: Desk) -> None:
        found = await actions.run(run)
        if dry_run:
            typer.echo(f"Would cancel run {found.id}: {counted(found.remaining)} stay. Nothing was changed.")
            return
        confirm(f"Cancel run {found.id}, {found.remaining} of {counted(found.total)} unsent?", yes=yes)
        ended = await actions.change_run(found.id, RunChange.CANCEL, reason or "by hand")
        typer.echo(f"Cancelled run {ended.id}: {summary(ended.progress)}.")
        if ended.progress.in_hand:
            note(
                "Those in hand are marked or given back by whoever has them; of an engine that died, "
                f"`redrive runs show {ended.id}` tells them as in doubt within {TAKEN_OVER_AFTER:g} s."
            )

    at_desk(ctx, work, name=name)


@app.command("approve")
def approve(
    ctx: typer.Context,
    run: RunArgument,
    *,
    reason: ReasonOption = None,
    yes: YesOption = False,
    name: NameOption = None,
) -> None:
    """Approve a run that somebody else has asked for. It runs from then on."""

    async def work(actions: Desk) -> None:
        found = await actions.run(run)
        how = edit_summary(found.plan)
        confirm(f"Send {counted(found.total)} back{how}, as {found.requested_by} asks for?", yes=yes)
        approved = await actions.change_run(found.id, RunChange.APPROVE, reason or "")
        typer.echo(f"Approved run {approved.id}.")
        note(f"`redrive engine` carries it out, or `redrive runs resume {approved.id}` here.")

    at_desk(ctx, work, name=name)


@app.command("reject")
def reject(ctx: typer.Context, run: RunArgument, *, reason: ReasonOption = None, name: NameOption = None) -> None:
    """Refuse a run that waits for approval, with a reason. Nothing of it is sent."""
    changed = _changed(ctx, run, RunChange.REJECT, given_reason(reason), name)
    typer.echo(f"Rejected run {changed.id}.")


@app.command("settle")
def settle(
    ctx: typer.Context,
    run: RunArgument,
    *,
    sent: Annotated[
        bool, typer.Option("--sent", help="They were sent, as far as you know; needs --reason.")
    ] = False,
    send_again: Annotated[
        bool, typer.Option("--send-again", help="Send them, under the redrive ids that they have.")
    ] = False,
    rate: RateOption = None,
    reason: ReasonOption = None,
    yes: YesOption = False,
    name: NameOption = None,
) -> int:
    """Decide about letters in doubt: those of a run that has ended, whose engine died while it sent them.

    Sent again they have the same redrive id as a copy that may be there already: an inbox knows both as one.
    """
    if sent is send_again:
        raise UsageError("what about them is not said", remedy="give --sent or --send-again, one of them")
    why = given_reason(reason) if sent else reason or ""

    async def work(actions: Desk) -> int:
        report = await actions.report(run)
        number = counted(report.in_doubt)
        if not report.in_doubt:
            typer.echo(f"No letter of run {report.run.id} is in doubt.")
            return ExitCode.NOTHING
        if send_again:
            confirm(f"Send {number} again, under the same redrive ids?", yes=yes)
            return tell_outcomes(await actions.send_again(report.run, rate=rate))
        confirm(f"Take {number} as sent?", yes=yes)
        typer.echo(f"Took {counted(await actions.take_as_sent(report.run, why))} as sent.")
        return ExitCode.OK

    return at_desk(ctx, work, name=name)


def _changed(ctx: typer.Context, run: str, change: RunChange, reason: str, name: str | None) -> Run:
    return at_desk(ctx, lambda actions: actions.change_run(run, change, reason), name=name)
