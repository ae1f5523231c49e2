"""What is told about letters that were sent back, and about those that were not."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from redrive.actions import Outcome, Result
from redrive.cli.outcome import ExitCode, complain


def counted(number: int) -> str:
    return f"{number} letter{'' if number == 1 else 's'}"


def tell_outcomes(outcomes: Sequence[Outcome]) -> int:
    """Says how many were sent and what became of each other one; gives the exit code."""
    sent = sum(outcome.result is Result.SENT for outcome in outcomes)
    typer.echo(f"Sent {counted(sent)} back.")
    return tell_left(outcomes)


def tell_left(outcomes: Sequence[Outcome]) -> int:
    """Says what became of those that were not sent; gives the exit code."""
    left = [outcome for outcome in outcomes if outcome.result is not Result.SENT]
    for outcome in left:
        tell_outcome(outcome)
    return exit_code(len(outcomes) - len(left), {outcome.result for outcome in left})


def tell_outcome(outcome: Outcome) -> None:
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


def exit_code(sent: int, results: set[Result]) -> int:
    """`results` are those of the letters that were not sent."""
    failed = [code for result, code in _EXIT_CODES.items() if result in results]
    if not failed:
        return ExitCode.OK
    return ExitCode.PARTLY if sent else failed[0]
