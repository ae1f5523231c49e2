"""`redrive retry`, and the decisions: `resolve`, `discard`, `restore`, `quarantine`, `release`, `purge`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, NamedTuple

import typer

from redrive.actions import Actions, Changed, Outcome, Result
from redrive.cli.changing import DryRunOption, LimitOption, YesOption, confirm, progress
from redrive.cli.invocation import at_desk
from redrive.cli.letter_ids import IdsArgument, given_ids
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import note
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.dead_letter import TRANSITIONS, Status, Transition
from redrive.errors import TransitionRefused

app = typer.Typer()

RateOption = Annotated[
    float | None, typer.Option("--rate", metavar="N", help="Send at most N per second.", show_default=False)
]


@app.command("retry")
def retry(
    ctx: typer.Context,
    ids: IdsArgument,
    *,
    rate: RateOption = None,
    original_exchange: Annotated[
        bool,
        typer.Option("--original-exchange", help="RabbitMQ: to the first exchange, and all queues bound there."),
    ] = False,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> int:
    """Send letters back to the queue they failed in.

    Each is claimed, sent with the same id and bytes, and marked; a crash in between loses none.
    """
    wanted = given_ids(ids)[:limit]

    async def work(actions: Actions) -> int:
        letters = await actions.identify(wanted)
        if dry_run:
            return tell_preview(await actions.preview(letters, Transition.CLAIM), Transition.CLAIM)
        if original_exchange:
            note("every queue bound to the exchange gets a copy, also those where the message did not fail")
        confirm(f"Send {counted(len(letters))} back?", yes=yes)
        with progress("Sending back", len(letters)) as advance:
            outcomes = await actions.retry(letters, rate=rate, to_origin=original_exchange, on_progress=advance)
        return tell_outcomes(outcomes)

    return at_desk(ctx, work)


class _Decision(NamedTuple):
    transition: Transition
    act: Callable[[Actions, Sequence[str], str], Awaitable[Changed]]
    done: str
    question: str
    help: str


_DECISIONS = (
    _Decision(
        Transition.RESOLVE,
        Actions.resolve,
        "Resolved",
        "Mark {} as solved?",
        "Mark letters as solved: pending, redriven or quarantined ones.",
    ),
    _Decision(
        Transition.DISCARD,
        Actions.discard,
        "Discarded",
        "Discard {}?",
        "Set pending or quarantined letters aside. They are kept, and can be restored.",
    ),
    _Decision(
        Transition.RESTORE,
        Actions.restore,
        "Restored",
        "Make {} pending again?",
        "Make resolved or discarded letters pending again.",
    ),
    _Decision(
        Transition.QUARANTINE,
        Actions.quarantine,
        "Quarantined",
        "Quarantine {}?",
        "Keep pending letters from being sent back until somebody releases them.",
    ),
    _Decision(
        Transition.RELEASE,
        Actions.release,
        "Released",
        "Release {} from quarantine?",
        "End the quarantine of letters: they are pending again.",
    ),
    _Decision(
        Transition.PURGE,
        Actions.purge,
        "Purged",
        "Delete {} for ever, payload and failures included?",
        "Delete resolved or discarded letters for ever. Only the lines of their history stay.",
    ),
)


def _register(decision: _Decision) -> None:
    @app.command(decision.transition.value, help=decision.help)
    def decide(
        ctx: typer.Context,
        ids: IdsArgument,
        *,
        reason: ReasonOption = None,
        limit: LimitOption = None,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
    ) -> int:
        wanted = given_ids(ids)[:limit]

        async def work(actions: Actions) -> int:
            letters = await actions.identify(wanted)
            if dry_run:
                return tell_preview(await actions.preview(letters, decision.transition), decision.transition)
            why = given_reason(reason)
            confirm(decision.question.format(counted(len(letters))), yes=yes)
            changed = await decision.act(actions, letters, why)
            typer.echo(f"{decision.done} {counted(len(changed.done))}.")
            return _tell_left(changed, decision.transition)

        return at_desk(ctx, work)


for _each in _DECISIONS:
    _register(_each)


def counted(number: int) -> str:
    return f"{number} letter{'' if number == 1 else 's'}"


def tell_outcomes(outcomes: Sequence[Outcome]) -> int:
    """Says how many were sent and what became of each other one; gives the exit code."""
    sent = sum(outcome.result is Result.SENT for outcome in outcomes)
    typer.echo(f"Sent {counted(sent)} back.")
    for outcome in outcomes:
        if outcome.result is not Result.SENT:
            _tell_outcome(outcome)
    return _exit_code(sent, {outcome.result for outcome in outcomes})


def _tell_outcome(outcome: Outcome) -> None:
    if outcome.result is Result.NOT_CLAIMED:
        complain(f"letter {outcome.letter_id} is {outcome.status}: not sent", outcome.note)
    elif outcome.result is Result.UNKNOWN:
        complain(f"letter {outcome.letter_id}: it is not known whether it was sent: {outcome.note}", _TAKEOVER)
    elif outcome.result is Result.NOT_FOUND:
        complain(f"no letter {outcome.letter_id}", "`redrive list` shows the ids")
    else:
        complain(f"letter {outcome.letter_id}: {outcome.result}: {outcome.note}")


_TAKEOVER = "retry it in a minute: a second copy would carry the same redrive id"

_EXIT_CODES = {
    Result.UNKNOWN: ExitCode.UNREACHABLE,
    Result.NOT_TRIED: ExitCode.UNREACHABLE,
    Result.REFUSED: ExitCode.FAILED,
    Result.NOT_CLAIMED: ExitCode.REFUSED,
    Result.NOT_FOUND: ExitCode.NOTHING,
}
"""If none was sent, the gravest of what happened decides: the first of these."""


def _exit_code(sent: int, results: set[Result]) -> int:
    failed = [code for result, code in _EXIT_CODES.items() if result in results]
    if not failed:
        return ExitCode.OK
    return ExitCode.PARTLY if sent else failed[0]


def tell_preview(preview: Changed, transition: Transition) -> int:
    typer.echo(f"Would {transition} {counted(len(preview.done))}. Nothing was changed.")
    return _tell_left(preview, transition)


def _tell_left(changed: Changed, transition: Transition) -> int:
    for letter_id, status in changed.left.items():
        if status is None:
            complain(f"no letter {letter_id}", "`redrive list` shows the ids")
        else:
            refusal = TransitionRefused(letter_id, str(transition), status)
            complain(str(refusal), f"only {_sources(transition)} letters can be")
    if not changed.left:
        return ExitCode.OK
    if changed.done:
        return ExitCode.PARTLY
    return ExitCode.REFUSED if any(changed.left.values()) else ExitCode.NOTHING


def _sources(transition: Transition) -> str:
    return " and ".join(status for status in Status if status in TRANSITIONS[transition].sources)
