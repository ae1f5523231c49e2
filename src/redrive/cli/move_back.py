"""`redrive move-back QUEUE_dlq`: the broker moves its own dead letters back, and we only watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from redrive.cli.changing import DryRunOption, YesOption, confirm, progress
from redrive.cli.invocation import at_store
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import note
from redrive.cli.run_options import NameOption
from redrive.cli.running import answering_signals
from redrive.errors import NotFound, RedriveError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.actions import Actions
    from redrive.transports.moving import Movable, Move

app = typer.Typer()

_UNLOOKED_AT = (
    "Nobody looks at them: nothing is filtered, edited, recorded or told apart, there is no canary, no brake and "
    "no proof of what becomes of each. `redrive collect` and `redrive retry` do all that."
)
_CANCELLING = (
    "Cancelling: what was moved stays where it is. Once more ends the command, and SQS goes on by itself."
)


@app.command("move-back")
def move_back(
    ctx: typer.Context,
    *,
    queue: Annotated[str, typer.Argument(metavar="QUEUE_dlq", help="A dead-letter queue of SQS's own.")],
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", min=1, help="At most N per second, 500 at most.", show_default=False),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", "-r", help="Why: the audit trail keeps it.", show_default=False)
    ] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the move that is under way.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    name: NameOption = None,
) -> int:
    """Let SQS move everything in a dead-letter queue back to the queues it came from (StartMessageMoveTask).

    For what was not collected, and goes back as it is. Letters in the store are not touched. Ctrl-C cancels the
    move; what was moved stays where it is. Messages that were sent to the dead-letter queue, and not moved there
    by SQS, cannot go back this way.
    """

    async def work(actions: Actions) -> int:
        movable = await actions.movable(queue)
        if cancel:
            return await _cancelled(actions, movable, dry_run=dry_run, yes=yes)
        if not movable.ready and movable.under_way is None:
            typer.echo(f"Nothing to move back: {queue} is empty.{_others(movable)}")
            return ExitCode.OK
        paced = actions.plan_move(movable, rate)
        told = f"{_about(movable)} of {queue} to {' and '.join(movable.targets)}{_pace(paced)}"
        note(_UNLOOKED_AT + _others(movable))
        if dry_run:
            typer.echo(f"Would move {told} back. Nothing was changed.")
            return ExitCode.OK
        confirm(f"Move {told} back?", yes=yes)
        move = await actions.start_move(movable, rate=rate, reason=reason or "")
        return await _followed(actions, move, movable.ready)

    return at_store(ctx, work, name=name, tells=True)


async def _cancelled(actions: Actions, movable: Movable, *, dry_run: bool, yes: bool) -> int:
    move = movable.under_way
    if move is None:
        raise NotFound(f"no move of {movable.queue!r} is under way", remedy="there is nothing to cancel")
    if dry_run:
        typer.echo(f"Would cancel the move of {movable.queue}. Nothing was changed.")
        return ExitCode.OK
    confirm(f"Cancel the move of {movable.queue}?", yes=yes)
    ended = await actions.follow_move(await actions.cancel_move(move))
    typer.echo(f"{ended.state}: about {ended.moved} of {movable.queue} were moved back, and stay there.")
    return ExitCode.OK


async def _followed(actions: Actions, move: Move, expected: int) -> int:
    interrupted = False

    async def give_up() -> None:
        nonlocal interrupted
        try:
            await actions.cancel_move(move)
            interrupted = True
        except RedriveError as error:
            complain(f"the move goes on: {error}", error.remedy)

    try:
        with progress("Moving back", expected) as advance, answering_signals(give_up, _CANCELLING):
            ended = await actions.follow_move(move, _counting(advance))
    except Unreachable as away:
        remedy = f"SQS goes on by itself: `redrive move-back {move.queue} --cancel` ends it"
        raise Unreachable(str(away), remedy=remedy) from away
    return _told(ended, interrupted=interrupted)


def _counting(advance: Callable[[int], None]) -> Callable[[Move], None]:
    done = 0

    def count(move: Move) -> None:
        nonlocal done
        advance(move.moved - done)
        done = move.moved

    return count


def _told(move: Move, *, interrupted: bool) -> int:
    """Says how it ended; the exit code."""
    whole = "" if move.total is None else f" of about {move.total}"
    typer.echo(f"{move.state}: {move.moved}{whole} messages of {move.queue} were moved back.")
    if move.state == "COMPLETED":
        return ExitCode.OK
    if move.state == "FAILED":
        collect = f"redrive collect {move.queue} takes what is left, wherever it came from"
        complain(f"SQS gave up: {move.why or 'it does not say why'}", collect)
    else:
        note(f"What was moved stays where it is, the rest in {move.queue}.")
    if interrupted and move.state == "CANCELLED":
        return ExitCode.INTERRUPTED
    return ExitCode.PARTLY if move.moved else ExitCode.FAILED


def _about(movable: Movable) -> str:
    return f"about {movable.ready} message{'' if movable.ready == 1 else 's'}"


def _pace(rate: int | None) -> str:
    return "" if rate is None else f", at most {rate} per second,"


def _others(movable: Movable) -> str:
    """What somebody has received, and SQS can only move when it is visible again."""
    number = movable.in_other_hands
    return f" {number} more are in the hands of another process and left to it." if number else ""
