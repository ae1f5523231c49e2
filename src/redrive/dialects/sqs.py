"""SQS's own dead letters: it tells the queue, and how often a message was received. Why it was never deleted
nobody tells: that is in the logs of its consumer.
"""

from __future__ import annotations

from redrive.dialects.arrival import MOST_ATTEMPTS, Arrival, Reading, one_failure
from redrive.dialects.aws import queue_of
from redrive.failure import FailureKind
from redrive.sqs_origin import origin_of

NAME = "sqs"

_SOURCE, _RECEPTIONS = "DeadLetterQueueSourceArn", "ApproximateReceiveCount"
_DIGITS = 7


def read(arrival: Arrival) -> Reading | None:
    origin = origin_of(arrival.message)
    source = None if origin is None else origin.system.get(_SOURCE)
    if origin is None or source is None:
        return None
    home = arrival.usable(queue_of(source))
    attempts = _attempts(origin.system.get(_RECEPTIONS, ""))
    return Reading(
        dialect=NAME,
        home=home or arrival.home_by_name or arrival.home_by_message or arrival.queue,
        failures=(
            one_failure(
                arrival,
                type="sqs.MaxReceiveCount",
                text=f"received and never deleted (count {attempts}); the logs of its consumer may tell why",
                kind=FailureKind.PERMANENT,
                attempt=attempts,
                at=arrival.message.sent_at,
            ),
        ),
        message=arrival.message,
        warnings=() if home else ("DeadLetterQueueSourceArn names no queue that it could go back to",),
    )


def _attempts(receptions: str) -> int:
    """SQS counts over all queues, and the last one was ours."""
    if not (receptions.isascii() and receptions.isdigit() and len(receptions) < _DIGITS):
        return 1
    return max(1, min(int(receptions) - 1, MOST_ATTEMPTS))
