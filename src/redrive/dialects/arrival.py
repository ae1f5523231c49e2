"""What readers of dialects are given, and what they give back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from redrive.failure import TEXT_BUDGET, UNKNOWN_HANDLER, Failure, FailureKind, Frame, Raised
from redrive.message import Message, cut

MOST_ATTEMPTS = 1_000_000
"""Beyond any real number: what came over the wire must not overflow where it is counted."""

_LONGEST_QUEUE = 255
_TYPE_BUDGET = 256
_LINE_BUDGET = 512
_MOST_TRACE_LINES = 64


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was found in a dead-letter queue."""

    message: Message
    queue: str
    """Where it lay."""
    home_of_dead: Callable[[str], str | None]
    """The queue whose dead-letter queue has that name, if there could be one."""
    now: datetime
    trail: bytes | None = None
    """What our own consumer sent along, if it was one of ours."""

    @property
    def home_by_name(self) -> str | None:
        """The queue whose dead letters lie there, if the name tells."""
        return self.home_of_dead(self.queue)

    @property
    def home_by_message(self) -> str | None:
        """The queue that the message was made for, as far as its producer or broker says."""
        return self.usable(self.message.queue)

    def usable(self, name: object) -> str | None:
        """The name if a message can be sent back there: a queue's, and not one for the dead."""
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_QUEUE or not name.isprintable():
            return None
        return None if name == self.queue or self.home_of_dead(name) is not None else name


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    dialect: str | None
    """None: nobody understood it."""
    home: str
    """The queue that it failed in, and goes back to."""
    failures: tuple[Failure, ...]
    """Oldest first, at least one."""
    message: Message
    """As it is to be kept."""
    identity: str | None = None
    """The letter's, if this is a copy of one. None: the delivery's identity and the handler tell."""
    first_attempt_at: datetime | None = None
    """None: nobody knows when it was tried first."""
    quarantine: str | None = None
    """Why it must not be sent back before a person has looked, or None."""
    warnings: tuple[str, ...] = ()
    """What could not be read, in words that hold nothing of the message."""

    @property
    def handler(self) -> str:
        return self.failures[-1].handler or UNKNOWN_HANDLER


def one_failure(
    arrival: Arrival,
    *,
    type: str,  # noqa: A002  the field's own name
    text: str,
    kind: FailureKind,
    trace: str = "",
    attempt: int = 1,
    at: datetime | None = None,
) -> Failure:
    """A failure told by somebody else; `at` None is now. Whose trace it is nobody knows: its last lines are kept
    as they are, each as the source of a frame.
    """
    lines = trace.splitlines()[-_MOST_TRACE_LINES:]
    frames = tuple(
        Frame("trace", number, "?", cut(line, _LINE_BUDGET), own=False) for number, line in enumerate(lines, 1)
    )
    raised = Raised(cut(type, _TYPE_BUDGET) or "Error", cut(text, TEXT_BUDGET), frames)
    return Failure(
        attempt=max(1, min(attempt, MOST_ATTEMPTS)),
        at=_not_later(at, arrival.now),
        kind=kind,
        handler=UNKNOWN_HANDLER,
        chain=(raised,),
    )


def _not_later(at: datetime | None, now: datetime) -> datetime:
    """Another machine's clock may be ahead: nothing has failed in the future."""
    if at is None:
        return now
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(aware, now)
