"""A run carried out in front of a person: progress, Ctrl-C, and what is told at its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from redrive.actions import Outcome, Result
from redrive.cli.letters_sent import counted, exit_code, tell_outcome
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import note
from redrive.cli.run_options import RunOptions
from redrive.cli.run_page import run_progress
from redrive.desk import Desk
from redrive.errors import Refused, Unreachable
from redrive.letter_query import LetterQuery
from redrive.run import RunChange, RunStatus
from redrive.run_report import summary

if TYPE_CHECKING:
    from redrive.run import Run

_TOLD_ONE_BY_ONE = 20
_INTERRUPTED = "interrupted"
_PAUSING = "Pausing: what is in hand is finished first. Once more ends the command at once."
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def sent_back(actions: Desk, letter_id: str) -> int:
    """One letter, as a run of its own that goes as the settings say; the exit code."""
    plan = RunOptions().plan(LetterQuery(ids=(letter_id,)), await actions.usual_run())
    run = await actions.create_run(await actions.plan_run(plan))
    if run.status is RunStatus.AWAITING_APPROVAL:
        raise needs_approval(run)
    return await tell_end(actions, await carried_out(actions, run))


def needs_approval(run: Run) -> Refused:
    """What is told about a run that was made and waits for a second person."""
    why = "" if run.approval is None else f": {run.approval.why}"
    return Refused(
        f"run {run.id} of {counted(run.total)} is made and needs an approval{why}",
        remedy=f"somebody else looks at it (redrive runs show {run.id}) and says: redrive runs approve {run.id}",
    )


async def carried_out(actions: Desk, run: Run) -> Run:
    """Until it has ended or does not run any more. Ctrl-C and SIGTERM pause it, and nothing is lost."""

    async def pause() -> None:
        with contextlib.suppress(Refused):  # it has ended meanwhile
            await actions.change_run(run.id, RunChange.PAUSE, _INTERRUPTED)

    try:
        with run_progress(run.total) as show, answering_signals(pause, _PAUSING):
            return await actions.carry_out(run.id, on_progress=show)
    except Unreachable as away:
        remedy = f"nothing is lost: `redrive runs resume {run.id}` goes on with the run"
        raise Unreachable(str(away), remedy=remedy) from away


@contextlib.contextmanager
def answering_signals(answer: Callable[[], Awaitable[None]], told: str) -> Iterator[None]:
    """The first signal is answered, and the person `told` so; the second one does what it would do without us."""
    loop = asyncio.get_running_loop()
    answers: list[asyncio.Future[None]] = []

    def answered() -> None:
        leave()
        note(told)
        answers.append(asyncio.ensure_future(answer()))

    def leave() -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    if threading.current_thread() is threading.main_thread():  # nobody else is told of signals
        for each in _SIGNALS:
            loop.add_signal_handler(each, answered)
    try:
        yield
    finally:
        leave()


async def tell_end(actions: Desk, run: Run, others: Sequence[Outcome] = ()) -> int:
    """What was sent, what became of it as far as that is known, what was not sent and why; the exit code.
    `others` are letters that were asked for and are not the run's.
    """
    sent = run.progress.sent + sum(each.result is Result.SENT for each in others)
    typer.echo(f"Sent {counted(sent)} back.")
    if run.progress.sent != run.progress.without_word:
        typer.echo(summary(run.progress))
    for each in others:
        if each.result is not Result.SENT:
            tell_outcome(each)
    await tell_run(actions, run)
    return code_of(run, sent, {each.result for each in others if each.result is not Result.SENT})


async def tell_run(actions: Desk, run: Run) -> None:
    """What of it was not sent and why, what it is now, and where to look."""
    await _tell_unsent(actions, run)
    _tell_halt(run)
    note(f"Run {run.id} is {run.status}: `redrive runs show {run.id}` tells what becomes of its letters.")


async def _tell_unsent(actions: Desk, run: Run) -> None:
    number = run.progress.refused + run.progress.passed_over
    told = await actions.unsent(run.id, at_most=_TOLD_ONE_BY_ONE) if number else []
    for each in told:
        complain(f"letter {each.letter_id}: {each.outcome}{f': {each.reason}' if each.reason else ''}")
    if number > len(told):
        complain(
            f"{counted(number - len(told))} more: refused or passed over",
            f"`redrive runs show {run.id} --letters` lists them",
        )


def _tell_halt(run: Run) -> None:
    if run.status is RunStatus.PAUSED:
        complain(
            f"run {run.id} is paused: {run.why}",
            f"`redrive runs resume {run.id}` goes on with it, `redrive runs cancel {run.id}` gives it up",
        )
    elif run.status is not RunStatus.DONE:
        complain(f"run {run.id} is {run.status}: {run.why}", "look at what came back before you make another run")


def code_of(run: Run, sent: int, others: set[Result]) -> int:
    """`sent` is how many went back in all; `others` are what became of letters that are not the run's."""
    if run.status is RunStatus.PAUSED and run.why == _INTERRUPTED:
        return ExitCode.INTERRUPTED
    results = others | ({Result.REFUSED} if run.progress.refused else set())
    results |= {Result.NOT_CLAIMED} if run.progress.passed_over else set()
    if run.status is RunStatus.DONE or (results and not sent):
        return exit_code(sent, results)
    if sent:
        return ExitCode.PARTLY
    return ExitCode.UNREACHABLE if run.status is RunStatus.PAUSED else ExitCode.REFUSED
