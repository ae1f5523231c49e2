"""S3's envelope: a body in JSON whose `error` and `retry_count` say what went wrong, whoever wrote it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from redrive.dialects.arrival import Arrival, Reading, one_failure
from redrive.failure import FailureKind

if TYPE_CHECKING:
    from redrive.failure import Failure
    from redrive.message import Envelope

NAME = "envelope"


def read(arrival: Arrival) -> Reading | None:
    told = arrival.message.envelope
    if told is None or (told.error is None and not told.retry_count):
        return None
    warnings = [] if told.error else ["the envelope counts retries and tells no error"]
    home = arrival.usable(told.queue)
    if home is None:
        warnings.append("the envelope names no queue that it could go back to")
    return Reading(
        dialect=NAME,
        home=home or arrival.home_by_name or arrival.home_by_message or arrival.queue,
        failures=(_failure(arrival, told),),
        message=arrival.message,
        warnings=tuple(warnings),
    )


def _failure(arrival: Arrival, told: Envelope) -> Failure:
    note = told.error
    return one_failure(
        arrival,
        type="" if note is None else note.code,
        text="" if note is None else note.message,
        trace="" if note is None else note.trace,
        kind=FailureKind.PERMANENT,
        attempt=told.retry_count,
        at=_made_at(told.timestamp) or arrival.message.sent_at,
    )


def _made_at(timestamp: str) -> datetime | None:
    """The envelope does not say when it failed. When it was made is the same each time it is read, unlike now."""
    try:
        made = datetime.fromisoformat(timestamp)
        return made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
