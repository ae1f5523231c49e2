"""Azure Service Bus's own dead letters: by the reason that its consumer or the broker gave, by where they were
forwarded from, or only by where they lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive import servicebus_paths as paths
from redrive.dialects.arrival import Arrival, Reading, one_failure
from redrive.failure import FailureKind
from redrive.servicebus_origin import DeadLettered, origin_of

if TYPE_CHECKING:
    from redrive.failure import Failure

NAME = "azure-servicebus"

_OF_THE_BROKER = {
    "HeaderSizeExceeded": FailureKind.PERMANENT,
    "TTLExpiredException": FailureKind.TRANSIENT,
    "Session ID is null": FailureKind.PERMANENT,
    "Session id is null": FailureKind.PERMANENT,
    "MaxTransferHopCountExceeded": FailureKind.PERMANENT,
    "MaxDeliveryCountExceeded": FailureKind.PERMANENT,
}
"""Its own reasons, as Azure documents them. Any other is what a consumer wrote."""


def read(arrival: Arrival) -> Reading | None:
    origin = origin_of(arrival.message)
    lay_in = paths.parse(arrival.queue)
    dead = None if origin is None else origin.dead
    if dead is None and not lay_in.subqueue:
        return None
    told = dead or DeadLettered()
    named = arrival.usable(told.source) or (lay_in.parent if lay_in.subqueue else None)
    return Reading(
        dialect=NAME,
        home=named or arrival.home_by_name or arrival.home_by_message or arrival.queue,
        failures=(_failure(arrival, told, transfer=lay_in.subqueue == paths.TRANSFER_DEAD_LETTERS),),
        message=arrival.message,
        warnings=() if named else ("nothing tells the queue that it was dead-lettered in",),
    )


def _failure(arrival: Arrival, told: DeadLettered, *, transfer: bool) -> Failure:
    usual = "NotForwarded" if transfer else "DeadLettered"
    silent = "Service Bus could not forward it" if transfer else "dead-lettered without a description"
    return one_failure(
        arrival,
        type=f"servicebus.{_name(told.reason) or usual}",
        text=told.description or told.reason or silent,
        kind=_OF_THE_BROKER.get(told.reason, FailureKind.TRANSIENT if transfer else FailureKind.PERMANENT),
        attempt=told.deliveries,
        at=arrival.message.sent_at,
    )


def _name(reason: str) -> str:
    """A type is a name, and anybody can write a reason: of a sentence it is the letters and digits."""
    return "".join(each for each in reason.title() if each.isalnum()) if " " in reason else reason
