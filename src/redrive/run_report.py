"""What can be said about a run: the sentence of its outcomes, and when it will end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.run import PassedOver, Run, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.run import Progress


UNSENT = frozenset({"refused", *PassedOver})
"""Outcomes of letters that were not sent, and that are not the run's to send any more."""


WHY: dict[str, str] = {
    PassedOver.NOT_PENDING: "somebody else has dealt with it since",
    PassedOver.NOT_FOUND: "there is no such letter any more",
    PassedOver.CAME_BACK_MEANWHILE: "it has failed once more since the run was made: look at it again",
    PassedOver.UNREADABLE: "its content cannot be read, `redrive show` says why: nothing of it was sent",
    PassedOver.BLOCKED: "an earlier letter of its key is open: send, resolve or discard that one first",
}
"""Of outcomes that no line of the letter's history explains."""


class Unsent(msgspec.Struct, frozen=True):
    """A letter that was not sent, and what its history says about it."""

    letter_id: str
    outcome: str
    """One of UNSENT."""
    reason: str


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    run: Run
    estimated_end: datetime | None = None
    """None: it has ended, does not run, or nothing is known yet."""
    in_doubt: int = 0
    """Letters that may have been sent, and that nobody goes on with."""

    @property
    def summary(self) -> str:
        return summary(self.run.progress)


def summary(progress: Progress) -> str:
    """As in "500 sent, 479 confirmed, 9 came back with the same group, 3 with a new one, 9 without word"."""
    return ", ".join(_parts(progress))


def _parts(told: Progress) -> Iterator[str]:
    yield f"{told.sent} sent"
    yield f"{told.confirmed} confirmed"
    yield f"{told.came_back_same} came back with the same group"
    yield f"{told.came_back_new} with a new one"
    if told.by_hand:
        yield f"{told.by_hand} decided by hand"
    yield f"{told.without_word} without word"
    if told.refused:
        yield f"{told.refused} refused by the broker"
    if told.passed_over:
        yield f"{told.passed_over} passed over"
    if told.released:
        yield f"{told.released} given back unsent"
    if told.in_hand:
        yield f"{told.in_hand} in hand"


def unsent(run: Run) -> int:
    """Letters that are still to be sent: not taken yet, or in somebody's hand."""
    return run.remaining + run.progress.in_hand


def estimated_end(run: Run, now: datetime) -> datetime | None:
    """At the speed so far, and never sooner than the run's rate allows. None: it does not run, or nothing is known
    yet.
    """
    if run.status is not RunStatus.RUNNING or not unsent(run):
        return None
    paces = [1 / run.plan.rate] if run.plan.rate else []
    # Of a run that was paused nobody knows how much of the time it ran.
    unbroken = run.changed_at <= run.created_at
    if unbroken and run.progress.sent and run.progress.last_sent_at is not None:
        paces.append((run.progress.last_sent_at - run.created_at).total_seconds() / run.progress.sent)
    try:
        return now + timedelta(seconds=unsent(run) * max(paces)) if paces else None
    except OverflowError:
        return None
