"""What services of AWS write into attributes when they give up: EventBridge, its Scheduler, Lambda and SNS.

What they give up is an event or an invocation: its target is seldom a queue, and then there is nowhere it could be
sent back to without a person.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from redrive.dialects.arrival import MOST_ATTEMPTS, Arrival, Reading, one_failure
from redrive.failure import FailureKind
from redrive.headers import header
from redrive.message import cut

NAME = "aws"

_BUDGET = 256
_DIGITS = 7


class _Told(NamedTuple):
    by: str
    code: str
    text: str
    target: str
    attempts: int


def read(arrival: Arrival) -> Reading | None:
    told = _of_eventbridge(arrival) or _of_an_invocation(arrival)
    if told is None:
        return None
    meant = arrival.usable(queue_of(told.target))
    where = f": it was meant for {told.target}" if told.target else ""
    return Reading(
        dialect=NAME,
        home=meant or arrival.home_by_name or arrival.home_by_message or arrival.queue,
        failures=(
            one_failure(
                arrival,
                type=f"{told.by}.{told.code or 'Undelivered'}",
                text=told.text or "no more is told",
                kind=FailureKind.PERMANENT,
                attempt=told.attempts,
                at=arrival.message.sent_at,
            ),
        ),
        message=arrival.message,
        quarantine=None
        if meant
        else f"{told.by} could not deliver it, and names no queue to send it back to{where}",
    )


def queue_of(arn: str) -> str | None:
    """The queue's name, if that is the ARN of one."""
    parts = arn.split(":")
    return parts[5] if len(parts) == 6 and parts[0] == "arn" and parts[2] == "sqs" else None  # noqa: PLR2004


def _of_eventbridge(arrival: Arrival) -> _Told | None:
    """A rule's, or the Scheduler's. What ended the retries is told only if retries ended it."""
    rule, schedule, target = (_word(arrival, name) for name in ("RULE_ARN", "SCHEDULE_ARN", "TARGET_ARN"))
    if not target or not (rule or schedule):
        return None
    ended, text = _word(arrival, "EXHAUSTED_RETRY_CONDITION"), _word(arrival, "ERROR_MESSAGE")
    return _Told(
        by="eventbridge" if rule else "scheduler",
        code=_word(arrival, "ERROR_CODE"),
        text=f"{text} ({ended})" if ended else text,
        target=target,
        attempts=1 + _count(_word(arrival, "RETRY_ATTEMPTS")),
    )


def _of_an_invocation(arrival: Arrival) -> _Told | None:
    """Of a function that was invoked without waiting, or of a subscription to a topic: they write the same."""
    request, code, text = (_word(arrival, name) for name in ("RequestID", "ErrorCode", "ErrorMessage"))
    if not request or not (code or text):
        return None
    return _Told(by="invocation", code=code, text=text, target="", attempts=1)


def _word(arrival: Arrival, name: str) -> str:
    value: Any = header(arrival.message.headers, name)
    return cut(value, _BUDGET) if isinstance(value, str) else ""


def _count(text: str) -> int:
    return min(int(text), MOST_ATTEMPTS) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0
