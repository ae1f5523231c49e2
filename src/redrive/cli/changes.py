"""The decisions: `resolve`, `discard`, `restore`, `quarantine`, `release`, `purge`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import typer

from redrive.actions import Changed
from redrive.cli.changing import DryRunOption, LimitOption, YesOption, confirm
from redrive.cli.invocation import at_desk
from redrive.cli.letter_ids import IdsArgument, given_ids
from redrive.cli.letters_sent import counted
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.reasons import ReasonOption, given_reason
from redrive.dead_letter import TRANSITIONS, Status, Transition
from redrive.desk import Desk
from redrive.errors import TransitionRefused

app = typer.Typer()


class _Decision(NamedTuple):
    transition: Transition
    act: Callable[[Desk, Sequence[str], str], Awaitable[Changed]]
    done: str
    question: str
    help: str


_DECISIONS = (
    _Decision(
        Transition.RESOLVE,
        lambda desk, ids, why: desk.resolve(ids, why),
        "Resolved",
        "Mark {} as solved?",
        "Mark letters as solved: pending, redriven or quarantined ones.",
    ),
    _Decision(
        Transition.DISCARD,
        lambda desk, ids, why: desk.discard(ids, why),
        "Discarded",
        "Discard {}?",
        "Set pending or quarantined letters aside. They are kept, and can be restored.",
    ),
    _Decision(
        Transition.RESTORE,
        lambda desk, ids, why: desk.restore(ids, why),
        "Restored",
        "Make {} pending again?",
        "Make resolved or discarded letters pending again.",
    ),
    _Decision(
        Transition.QUARANTINE,
        lambda desk, ids, why: desk.quarantine(ids, why),
        "Quarantined",
        "Quarantine {}?",
        "Keep pending letters from being sent back until somebody releases them.",
    ),
    _Decision(
        Transition.RELEASE,
        lambda desk, ids, why: desk.release(ids, why),
        "Released",
        "Release {} from quarantine?",
        "End the quarantine of letters: they are pending again.",
    ),
    _Decision(
        Transition.PURGE,
        lambda desk, ids, why: desk.purge(ids, why),
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

        async def work(actions: Desk) -> int:
            letters = await actions.identify(wanted)
            if dry_run:
                return _tell_preview(await actions.preview(letters, decision.transition), decision.transition)
            why = given_reason(reason)
            confirm(decision.question.format(counted(len(letters))), yes=yes)
            changed = await decision.act(actions, letters, why)
            typer.echo(f"{decision.done} {counted(len(changed.done))}.")
            return _tell_left(changed, decision.transition)

        return at_desk(ctx, work)


for _each in _DECISIONS:
    _register(_each)


def _tell_preview(preview: Changed, transition: Transition) -> int:
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
