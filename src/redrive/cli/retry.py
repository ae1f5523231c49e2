"""`redrive retry`: letters go back to their queues, as a redrive run."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from redrive.cli.changing import DryRunOption, LimitOption, YesOption, confirm, progress
from redrive.cli.edit_options import EditOptions
from redrive.cli.filters import GroupOption, LetterSelection, QueueOption, WhereOption
from redrive.cli.given_file import check_stdin_once
from redrive.cli.invocation import at_desk, goes_through_server, settings_of
from redrive.cli.letter_ids import OptionalIds, given_ids
from redrive.cli.letters_sent import counted, tell_left, tell_outcomes
from redrive.cli.option_sets import taking
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Format, note, write_json
from redrive.cli.run_edit import edit_summary
from redrive.cli.run_options import RunOptions
from redrive.cli.run_page import print_samples
from redrive.cli.running import carried_out, needs_approval, tell_end
from redrive.cli.typed_order import InTypedOrder, typed
from redrive.clock import SystemClock
from redrive.dead_letter import Status
from redrive.desk import Desk
from redrive.errors import Refused, UsageError
from redrive.letter_query import LetterQuery
from redrive.preview import SAMPLE, Level
from redrive.redriving import unclaimed
from redrive.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redrive.actions import Outcome
    from redrive.preview import Preview
    from redrive.run import Run, RunPlan
    from redrive.run_actions import EditedSample, PlannedRun, SortedOut
    from redrive.run_policy import RunPolicy
    from redrive.transports.inspection import Inspector

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One field for each option that says which letters, and whether."""

    where: WhereOption = None
    queue: QueueOption = None
    group: GroupOption = None
    limit: LimitOption = None
    quarantined: Annotated[
        bool, typer.Option("--quarantined", help="QUARANTINED ones as well: released and sent; needs --reason.")
    ] = False
    detach: Annotated[
        bool, typer.Option("--detach", help="Only make the run: `redrive engine` carries it out.")
    ] = False
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="TEXT",
            help="For scripts: the same key again goes on with the same run.",
            show_default=False,
        ),
    ] = None
    dry_run: DryRunOption = False
    output: Annotated[
        Format, typer.Option("--output", "-o", help="How to write the preview of --dry-run: table, json.")
    ] = Format.TABLE
    yes: YesOption = False

    @property
    def selects(self) -> bool:
        return any(each is not None for each in (self.where, self.queue, self.group))

    def query(self) -> LetterQuery:
        selection = LetterSelection(where=self.where, queue=self.queue, group=self.group)
        return selection.query(SystemClock().now())


@app.command("retry", cls=InTypedOrder)
@taking(_Asked, "asked")
@taking(RunOptions, "options")
@taking(EditOptions, "edits")
def retry(
    ctx: typer.Context, ids: OptionalIds = None, *, asked: _Asked, options: RunOptions, edits: EditOptions
) -> int:
    """Send letters back to the queue they failed in: those that are named, or all pending ones that match.

    It makes a run: which letters is settled when it begins, each is sent with the same id and bytes, and what
    becomes of each is kept (`redrive runs show`). Ctrl-C pauses it; a crash loses none.
    """
    check_stdin_once([*(ids or ()), *edits.sources])
    named = given_ids(ids) if ids else []
    _check_selected(named, asked)
    looking = partial(_inspector, ctx)
    planned = _Planning(options, edits, typed(ctx), asked.quarantined)

    async def work(actions: Desk) -> int:
        retrying = _Retrying(actions, looking, asked, planned)
        if named:
            return await retrying.named(await actions.identify(named[: asked.limit]))
        return await retrying.selected()

    return at_desk(ctx, work, name=options.name, tells=True)


def _inspector(ctx: typer.Context) -> AbstractAsyncContextManager[Inspector | None]:
    """Looks into the broker; a server has its own."""
    if goes_through_server(ctx):
        return nullcontext()
    from redrive.doctor_wiring import inspector  # noqa: PLC0415  only for --dry-run

    return inspector(settings_of(ctx))


def _check_selected(named: Sequence[str], asked: _Asked) -> None:
    if named and asked.selects:
        raise UsageError(
            "ids and a filter exclude each other", remedy="name letters, or choose them with --where, not both"
        )
    if named and asked.key is not None:
        raise UsageError(
            "--key is for letters that are chosen by a filter",
            remedy="choose them with --where, --group or --queue; a letter that was sent is not sent again anyway",
        )
    if not named and not asked.selects:
        raise UsageError(
            "no letters are chosen", remedy="name them, or choose them with --where, --group or --queue"
        )


@dataclass(frozen=True)
class _Planning:
    """What is asked for beside the letters themselves."""

    options: RunOptions
    edits: EditOptions
    typed: Sequence[str]
    quarantined: bool

    def plan(self, selection: LetterQuery, policy: RunPolicy, *, at_most: int | None = None) -> RunPlan:
        plan = self.edits.onto(self.options.plan(selection, policy, at_most=at_most), self.typed)
        return msgspec.structs.replace(plan, quarantined=self.quarantined)


@dataclass(frozen=True)
class _Retrying:
    actions: Desk
    looking: Callable[[], AbstractAsyncContextManager[Inspector | None]]
    asked: _Asked
    planning: _Planning

    async def named(self, letters: list[str]) -> int:
        found = await self.actions.sort_out(letters, quarantined=self.asked.quarantined)
        plan = self.planning.plan(LetterQuery(ids=found.pending), await self.actions.usual_run())
        if self.asked.dry_run:
            return await self._preview_named(plan, found)
        if not found.pending and not found.claimed:
            return tell_outcomes(found.left)
        planned = await self.actions.plan_run(plan) if found.pending else None
        await self._check_schema(plan, found.pending[:SAMPLE])
        _ask(plan, counted(len(letters)), yes=self.asked.yes)
        # What is being sent may be what somebody died of: then its lease runs out, and it is taken over.
        others = [*found.left, *(await self.actions.retry(found.claimed, begun=True) if found.claimed else ())]
        place = {letter_id: at for at, letter_id in enumerate(letters)}
        others.sort(key=lambda each: place[each.letter_id])
        return tell_outcomes(others) if planned is None else await self._run(planned, others)

    async def selected(self) -> int:
        query = self.asked.query()
        if query.group is not None:  # the beginning of an id could fit another group when letters are taken
            query = msgspec.structs.replace(query, group=(await self.actions.group(query.group)).id)
        plan = self.planning.plan(query, await self.actions.usual_run(), at_most=self.asked.limit)
        if self.asked.dry_run:
            return await self._preview(plan)
        made = None if self.asked.key is None else await self.actions.run_made_by(self.asked.key, plan)
        if made is not None:
            note(f"Run {made.id} was made by this key before.")
            return await self._go_on(made)
        await self._make_searchable(query)
        planned = await self.actions.plan_run(plan)
        shown = await self.actions.preview_run(plan)
        _warn(shown)
        await self._check_schema(plan, [letter.id for letter in shown.sample])
        _ask(plan, counted(planned.count), yes=self.asked.yes)
        return await self._run(planned)

    async def _check_schema(self, plan: RunPlan, letter_ids: Sequence[str]) -> None:
        """Before a run is made: whether the first letters would fit."""
        if not plan.schema or self.planning.edits.pass_over:
            return
        samples = await self.actions.edit_samples(plan, letter_ids)
        if unfit := [sample for sample in samples if sample.misfits]:
            raise _does_not_fit(unfit, len(samples))

    async def _make_searchable(self, query: LetterQuery) -> None:
        """What the filter would not find yet must not be left out."""
        if backlog := await self.actions.search_backlog(query):
            with progress("Making letters searchable", backlog) as advance:
                await self.actions.index(on_progress=advance)

    async def _preview_named(self, plan: RunPlan, found: SortedOut) -> int:
        if found.pending:
            await self._preview(plan)
        left = tell_left([*found.left, *(unclaimed(each, Status.REDRIVING) for each in found.claimed)])
        return ExitCode.PARTLY if left and found.pending else left

    async def _preview(self, plan: RunPlan) -> int:
        from redrive.cli.preview_page import preview_record, print_preview  # noqa: PLC0415  only for --dry-run

        async with self.looking() as inspecting:
            shown = await self.actions.preview_run(plan, inspector=inspecting)
            samples = await self.actions.edit_samples(plan, [letter.id for letter in shown.sample])
        if self.asked.output is Format.TABLE:
            print_preview(shown, SystemClock().now())
            print_samples(samples)
        else:
            edited = [msgspec.structs.asdict(sample) for sample in samples]
            write_json(preview_record(shown) | {"edited": edited})
        note("Nothing was changed.")
        return ExitCode.OK if shown.count else ExitCode.NOTHING

    async def _run(self, planned: PlannedRun, others: Sequence[Outcome] = ()) -> int:
        return await self._go_on(await self.actions.create_run(planned, key=self.asked.key), others)

    async def _go_on(self, run: Run, others: Sequence[Outcome] = ()) -> int:
        if run.status is RunStatus.RUNNING and not self.asked.detach:
            run = await carried_out(self.actions, run)
        elif run.status in {RunStatus.RUNNING, RunStatus.AWAITING_APPROVAL}:
            return _left_to_others(run, others)
        return await tell_end(self.actions, run, others)


def _left_to_others(run: Run, others: Sequence[Outcome]) -> int:
    left = tell_left(others)
    if run.status is RunStatus.AWAITING_APPROVAL:
        raise needs_approval(run)
    typer.echo(f"Made run {run.id} of {counted(run.total)}.")
    note("`redrive engine` carries it out.")
    return ExitCode.PARTLY if left else ExitCode.OK


def _does_not_fit(unfit: Sequence[EditedSample], looked_at: int) -> Refused:
    for sample in unfit:
        complain(f"letter {sample.letter_id} would not fit the schema: {'; '.join(sample.misfits)}")
    return Refused(
        f"{len(unfit)} of the first {counted(looked_at)} would not fit the schema: nothing was sent",
        remedy="correct the edit or the schema; or --pass-over sends those that fit, and only those",
    )


def _warn(shown: Preview) -> None:
    for check in shown.checks:
        if check.level is Level.STOP:
            raise Refused(f"{check.text}; nothing was sent", remedy="--dry-run shows what was looked at")
        if check.level is Level.WARN:
            note(f"warning: {check.text}")


def _ask(plan: RunPlan, letters: str, *, yes: bool) -> None:
    if plan.to_origin:
        note("everybody who reads the exchange or topic gets a copy, also where the message did not fail")
    edited = edit_summary(plan)
    where = "back" if plan.target is None else f"to {plan.target!r}"
    confirm(f"Send {letters} {where}{edited}?", yes=yes)
