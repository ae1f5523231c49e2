"""Dead letters that our own consumer put into the broker's dead-letter queue: the whole story travels as a trail,
the last error in the overlay too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.dialects.arrival import Arrival, Reading, one_failure
from redrive.failure import UNKNOWN_HANDLER, FailureKind, decode_trail, identity_in
from redrive.message import cut

if TYPE_CHECKING:
    from redrive.failure import Failure
    from redrive.message import ErrorNote

NAME = "redrive"

_LONGEST_HANDLER = 255
_LONGEST_IDENTITY = 1000


def read(arrival: Arrival) -> Reading | None:
    note = None if arrival.message.overlay is None else arrival.message.overlay.error
    if not arrival.trail and note is None:
        return None
    trail = decode_trail(arrival.trail)
    told = tuple(_with_handler(failure) for failure in trail)
    warnings = () if told or not arrival.trail else ("the trail of its failures cannot be read",)
    if not told and note is not None:
        told = (_noted(arrival, note),)
    if not told:
        return None
    return Reading(
        dialect=NAME,
        home=arrival.home_by_name or arrival.home_by_message or arrival.queue,
        failures=told,
        message=arrival.message,
        identity=_identity(arrival.trail),
        first_attempt_at=told[0].at if trail else None,
        warnings=warnings,
    )


def _identity(trail: bytes | None) -> str | None:
    found = identity_in(trail)
    return found if 0 < len(found) <= _LONGEST_IDENTITY else None


def _with_handler(failure: Failure) -> Failure:
    """The trail came over the wire."""
    handler = cut(failure.handler, _LONGEST_HANDLER) or UNKNOWN_HANDLER
    return failure if handler == failure.handler else msgspec.structs.replace(failure, handler=handler)


def _noted(arrival: Arrival, note: ErrorNote) -> Failure:
    return one_failure(
        arrival,
        type=note.code,
        text=note.message,
        trace=note.trace,
        kind=FailureKind.PERMANENT,
        attempt=arrival.message.retry_count,
    )
