"""What services of AWS write into attributes of what they give up: EventBridge, its Scheduler, Lambda and SNS.

Each name alone is nobody's: a producer may use it too. Which of them make a notice is said here once, for those
who read it and for those who leave it out when the message goes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.headers import header
from redrive.message import cut

if TYPE_CHECKING:
    from redrive.message import Headers

INVOCATION = "invocation"
"""Of a function that was invoked without waiting, or of a subscription to a topic: they write the same."""

_BUDGET = 256
_DIGITS = 7
_OF_EVENTS = frozenset(
    {
        "ERROR_CODE",
        "ERROR_MESSAGE",
        "EXECUTION_ID",
        "EXHAUSTED_RETRY_CONDITION",
        "IS_PAYLOAD_TRUNCATED",
        "RETRY_ATTEMPTS",
        "RULE_ARN",
        "SCHEDULED_TIME",
        "SCHEDULE_ARN",
        "TARGET_ARN",
    }
)
_OF_INVOCATIONS = frozenset({"ErrorCode", "ErrorMessage", "RequestID"})


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    by: str
    code: str
    text: str
    target: str = ""
    """An ARN, if it is told."""
    retries: int = 0
    is_cut: bool = False
    """The payload was too long, and is not whole."""


def notice_in(headers: Headers) -> Notice | None:
    return _of_eventbridge(headers) or _of_an_invocation(headers)


def without_notice(headers: Headers) -> Headers:
    """As the producer sent them."""
    found = notice_in(headers)
    if found is None:
        return headers
    theirs = _OF_INVOCATIONS if found.by == INVOCATION else _OF_EVENTS
    return tuple(each for each in headers if each[0] not in theirs)


def _of_eventbridge(headers: Headers) -> Notice | None:
    """A rule's, or the Scheduler's. What ended the retries is told only if retries ended it."""
    rule, schedule, target = (_word(headers, name) for name in ("RULE_ARN", "SCHEDULE_ARN", "TARGET_ARN"))
    if not target or not (rule or schedule):
        return None
    ended, text = _word(headers, "EXHAUSTED_RETRY_CONDITION"), _word(headers, "ERROR_MESSAGE")
    return Notice(
        by="eventbridge" if rule else "scheduler",
        code=_word(headers, "ERROR_CODE"),
        text=f"{text} ({ended})" if ended else text,
        target=target,
        retries=_count(_word(headers, "RETRY_ATTEMPTS")),
        is_cut=_word(headers, "IS_PAYLOAD_TRUNCATED").lower() == "true",
    )


def _of_an_invocation(headers: Headers) -> Notice | None:
    request, code, text = (_word(headers, name) for name in ("RequestID", "ErrorCode", "ErrorMessage"))
    return Notice(by=INVOCATION, code=code, text=text) if request and (code or text) else None


def _word(headers: Headers, name: str) -> str:
    value = header(headers, name)
    return cut(value, _BUDGET) if isinstance(value, str) else ""


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
