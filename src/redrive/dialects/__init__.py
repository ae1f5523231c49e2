"""What frameworks and brokers write on a dead letter, read into one form: one small module per dialect.

`read` asks each in turn, and the first that knows the message answers. Every reader is total: what it cannot make
sense of becomes a partial answer with a warning, never an exception. A message that nobody understands is a letter
all the same: it waits in quarantine for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from redrive.dialects import aws, envelope, native, ours, servicebus, sqs
from redrive.dialects.arrival import Arrival, Reading, one_failure
from redrive.failure import UNKNOWN_HANDLER, FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIALECTS", "UNKNOWN_HANDLER", "Arrival", "Dialect", "Reading", "read"]


class Dialect(Protocol):
    """A module of this package is one."""

    NAME: str

    def read(self, arrival: Arrival) -> Reading | None:
        """What it says, or None if it is not written in this dialect. Never raises."""
        ...


DIALECTS: Sequence[Dialect] = (ours, envelope, native, sqs, aws, servicebus)
"""In the order in which they are asked. Where SQS tells whence it has moved a message, that is the last word: what
a service of AWS wrote into it is older, or its producer's own.
"""


def read(arrival: Arrival) -> Reading:
    """What is known of a message that lay in a dead-letter queue. Never raises."""
    for dialect in DIALECTS:
        reading = dialect.read(arrival)
        if reading is not None:
            return reading
    return _not_understood(arrival)


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
