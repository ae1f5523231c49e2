"""`redrive reprocess --queue NAME_dlq`: S3's command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from redrive.actions import Actions, Outcome, Reprocessed, Result, Selection
from redrive.cli.changing import DryRunOption, LimitOption, RateOption, YesOption, confirm, progress
from redrive.cli.invocation import at_store, settings_of
from redrive.cli.outcome import ExitCode
from redrive.cli.output import note
from redrive.cli.run_options import NameOption
from redrive.cli.running import carried_out, code_of, needs_approval, tell_run
from redrive.dead_letter import Status
from redrive.errors import CorruptFile, Unreachable
from redrive.run import RunStatus

app = typer.Typer()


@app.command("reprocess")
def reprocess(
    ctx: typer.Context,
    *,
    queue: Annotated[
        str, typer.Option("--queue", "-q", metavar="NAME_dlq", help="The dead-letter queue.", show_default=False)
    ],
    no_store: Annotated[bool, typer.Option("--no-store", help="Only what lies in NAME_dlq.")] = False,
    rate: RateOption = None,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    name: NameOption = None,
) -> int:
    """Put everything dead of one queue back: the pending letters in the store, and what lies in NAME_dlq.

    Each message goes back once, to its own queue, with error and retry count reset. The letters are a run, as of
    `retry --queue NAME`; what halts it keeps back the rest. Where there is no store, or it cannot be reached, only
    the queue is looked at.
    """
    without = "--no-store" if no_store else _missing_store(ctx)
    with_store = without is None

    async def work(actions: Actions) -> int:
        selection = (await actions.select_dead(queue, with_store=with_store)).first(limit)
        if not with_store:
            note(f"{without}: only what lies in {queue} is reprocessed, no letter of a store.")
        if selection.in_other_hands:
            note(f"{selection.in_other_hands} of {queue} are in the hands of another process and left to it.")
        if not selection.total:
            others = f", and no letter of {selection.home} is pending" if with_store else ""
            typer.echo(f"Nothing to reprocess: {queue} is empty{others}.")
            return ExitCode.OK
        if dry_run:
            typer.echo(f"Would reprocess {_parts(selection)}. Nothing was changed.")
            return ExitCode.OK
        confirm(f"Reprocess {_parts(selection)}?", yes=yes)
        done = await _reprocessed(actions, selection, rate)
        code = tell(done, selection)
        if done.run is None:
            return code
        await tell_run(actions, done.run)
        of_run = code_of(done.run, done.total, set())
        return of_run if done.halted else code or of_run

    return at_store(ctx, work, name=name, tells=True)


async def _reprocessed(actions: Actions, selection: Selection, rate: float | None) -> Reprocessed:
    run = await actions.begin_reprocessing(selection, rate=rate)
    if run is not None and run.status is RunStatus.AWAITING_APPROVAL:
        # A rule that wants a second look at these letters wants it for what goes to the same queue beside them.
        if selection.in_queue:
            note(f"What lies in {selection.dead_letter_queue} waits with it: give the command again then.")
        raise needs_approval(run)
    if run is not None:
        run = await carried_out(actions, run)
    left = selection.in_queue + len(selection.unfinished)
    with progress("Reprocessing", left) as advance:
        return await actions.end_reprocessing(selection, run, rate=rate, on_progress=advance)


def _missing_store(ctx: typer.Context) -> str | None:
    """Why there is no store to look into, or None if there is one."""
    from redrive.wiring import require_store  # noqa: PLC0415  not needed for --help

    try:
        require_store(settings_of(ctx))
    except CorruptFile:
        raise  # it holds letters, and somebody should know
    except Unreachable as error:
        return str(error)
    return None


def _parts(selection: Selection) -> str:
    parts = _sum(selection.in_queue, selection.pending, selection)
    begun = len(selection.unfinished)
    return f"{parts}, and {begun} more if the command that began to send them died" if begun else parts


def _sum(from_queue: int, from_store: int, selection: Selection) -> str:
    total = from_queue + from_store
    what = f"{total} message{'' if total == 1 else 's'}"
    store = f", {from_store} from the store" if selection.with_store else ""
    return f"{what}: {from_queue} from the queue {selection.dead_letter_queue}{store}"


def tell(done: Reprocessed, selection: Selection) -> int:
    """Writes what was done and what was not, but for what its run can tell; the exit code."""
    typer.echo(f"Reprocessed {_sum(done.queue.sent, done.from_store, selection)}")
    others = [outcome for outcome in done.unfinished if outcome.result is not Result.SENT]
    under_way = [outcome for outcome in others if outcome.status is Status.REDRIVING]
    if under_way:
        note(f"{len(under_way)} begun by another process, for example {_example(under_way[0])}")
    failed = [outcome for outcome in others if outcome.status is not Status.REDRIVING]
    troubles = [*_queue_troubles(done, selection), *_store_troubles(failed)]
    for trouble in troubles:
        note(trouble)
    if not troubles:
        return ExitCode.OK
    return ExitCode.PARTLY if done.total else ExitCode.FAILED


def _queue_troubles(done: Reprocessed, selection: Selection) -> Iterator[str]:
    queue = selection.dead_letter_queue
    if done.halted and selection.in_queue:
        yield f"{selection.in_queue} in {queue} were not tried: the run of the letters did not come to its end."
    if done.queue.came_back:
        yield f"{done.queue.came_back} came straight back and were left in {queue}: their handler still fails."
    if done.queue.refused:
        yield f"{done.queue.refused} were refused by the broker and left in {queue}."
    if done.queue.not_met:
        yield (
            f"{done.queue.not_met} more were counted in {queue} and not met: another process took or holds them; "
            "run the command again for what is left."
        )
    if done.queue.untried:
        yield f"{done.queue.untried} behind those were not tried: take the others out of {queue} first."


def _store_troubles(failed: Sequence[Outcome]) -> Iterator[str]:
    examples = {outcome.result: outcome for outcome in failed}
    for result, count in Counter(outcome.result for outcome in failed).items():
        yield f"{count} {result}, for example {_example(examples[result])}"


def _example(outcome: Outcome) -> str:
    return f"letter {outcome.letter_id}: {outcome.note}"
