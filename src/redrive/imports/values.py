"""What formats have in common: names, times, and a letter of one failure. ValueError says what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redrive.dead_letter import Entry
from redrive.failure import Failure, FailureKind
from redrive.fingerprint import fingerprint

if TYPE_CHECKING:
    from redrive.failure import Raised
    from redrive.message import Message

LONGEST_NAME = 2000
"""Bytes of a queue's or a handler's name: what every database takes into an index."""
MOST_ATTEMPTS = 1_000_000


def checked_name(what: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{what} should be a text that is not empty")
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        raise ValueError(f"{what} is longer than {LONGEST_NAME} bytes")
    return name


def moment(what: str, value: Any) -> datetime:
    """An ISO 8601 time or seconds since 1970; without a zone it is UTC."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(value.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, TypeError, AttributeError, OverflowError, OSError):
        raise ValueError(f"{what} should be a time such as 2026-03-01 12:00:00") from None


def failed_once(
    message: Message,
    identity: str,
    *,
    handler: str,
    attempts: int,
    at: datetime,
    chain: tuple[Raised, ...],
    kind: FailureKind = FailureKind.PERMANENT,
) -> Entry:
    """A message of which only the last failure is known."""
    queue = checked_name("queue", message.queue)
    told = checked_name("handler", handler)
    failure = Failure(attempt=min(attempts, MOST_ATTEMPTS), at=at, kind=kind, handler=told, chain=chain)
    return Entry(
        identity=identity,
        message=message,
        queue=queue,
        handler=handler,
        failures=(failure,),
        fingerprint=fingerprint(failure, queue=queue),
        at=at,
        first_attempt_at=at,
    )
