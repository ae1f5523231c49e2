"""What services of AWS could not deliver: EventBridge, its Scheduler, Lambda and SNS, by what they write into
attributes.

What they give up is an event or an invocation: its target is seldom a queue, and then there is nowhere it could be
sent back to without a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.aws_notice import INVOCATION, notice_in
from redrive.dialects.arrival import Arrival, Reading, one_failure
from redrive.failure import FailureKind
from redrive.message import cut

if TYPE_CHECKING:
    from redrive.aws_notice import Notice

NAME = "aws"

_BUDGET = 256


class _Published(msgspec.Struct, frozen=True, tag_field="Type", tag="Notification"):
    """SNS's envelope, as far as it is needed: a function's own payload is none."""

    topic: str = msgspec.field(name="TopicArn")
    message: str = msgspec.field(name="Message")


def read(arrival: Arrival) -> Reading | None:
    told = notice_in(arrival.message.headers)
    if told is None:
        return None
    by, where = _whose(arrival, told)
    meant = arrival.usable(queue_of(told.target))
    return Reading(
        dialect=NAME,
        home=meant or arrival.home_by_name or arrival.home_by_message or arrival.queue,
        failures=(
            one_failure(
                arrival,
                type=f"{by}.{told.code or 'Undelivered'}",
                text=told.text or "no more is told",
                kind=FailureKind.PERMANENT,
                attempt=1 + told.retries,
                at=arrival.message.sent_at,
            ),
        ),
        message=arrival.message,
        quarantine=_why_not(by, where, cut_off=told.is_cut, known=meant is not None),
    )


def queue_of(arn: str) -> str | None:
    """The queue's name, if that is the ARN of one."""
    parts = arn.split(":")
    return parts[5] if len(parts) == 6 and parts[0] == "arn" and parts[2] == "sqs" else None  # noqa: PLR2004


def _whose(arrival: Arrival, told: Notice) -> tuple[str, str]:
    """Who gave it up, and what it was meant for. Lambda and SNS write the same attributes; only SNS has put the
    message into its envelope, unless it was to deliver it raw.
    """
    if told.by != INVOCATION:
        return told.by, f": it was meant for {told.target}"
    try:
        published = msgspec.json.decode(arrival.message.body or b"", type=_Published)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "lambda", ""
    return "sns", f": it was published to {cut(published.topic, _BUDGET)}"


def _why_not(by: str, where: str, *, cut_off: bool, known: bool) -> str | None:
    if cut_off:
        return f"{by} has cut off its payload, which was too long: the whole one has to be found elsewhere{where}"
    return None if known else f"{by} could not deliver it, and names no queue to send it back to{where}"
