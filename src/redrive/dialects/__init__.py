"""What frameworks and brokers write on a dead letter, read into one form: one small module per dialect.

`read` asks each in turn, and the first that knows the message answers. Every reader is total: what it cannot make
sense of becomes a partial answer with a warning, never an exception. A message that nobody understands is a letter
all the same: it waits in quarantine for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from redrive.dialects import envelope, native, ours
from redrive.dialects.arrival import UNKNOWN_HANDLER, Arrival, Reading, one_failure
from redrive.failure import FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.message import Headers

__all__ = ["DIALECTS", "UNKNOWN_HANDLER", "Arrival", "Dialect", "Reading", "read", "strip"]


class Dialect(Protocol):
    """A module of this package is one."""

    NAME: str

    def read(self, arrival: Arrival) -> Reading | None:
        """What it says, or None if it is not written in this dialect. Never raises."""
        ...

    def strip(self, headers: Headers) -> Headers:
        """The headers without what this dialect adds to a dead letter."""
        ...


DIALECTS: Sequence[Dialect] = (ours, envelope, native)
"""In the order in which they are asked."""


def read(arrival: Arrival) -> Reading:
    """What is known of a message that lay in a dead-letter queue. Never raises."""
    known = (dialect.read(arrival) for dialect in DIALECTS)
    return next((reading for reading in known if reading is not None), None) or _not_understood(arrival)


def strip(headers: Headers) -> Headers:
    """The headers as they were before the message died, whichever dialects told of it."""
    for dialect in DIALECTS:
        headers = dialect.strip(headers)
    return headers


def _not_understood(arrival: Arrival) -> Reading:
    names = ", ".join(dialect.NAME for dialect in DIALECTS)
    why = f"no dialect understands what it says of its failure (asked: {names})"
    home = arrival.home_by_message or arrival.home_by_name or arrival.queue
    return Reading(
        dialect=None,
        home=home,
        failures=(one_failure(arrival, type="redrive.NotUnderstood", text=why, kind=FailureKind.PERMANENT),),
        message=arrival.message,
        quarantine=why,
    )
