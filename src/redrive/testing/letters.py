"""Failures, messages and entries as they come from a consumer, for tests that need one and not its details."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from redrive.clock import new_id
from redrive.dead_letter import Entry, Fingerprint
from redrive.failure import Failure, FailureKind, Frame, Host, Raised
from redrive.message import Message

if TYPE_CHECKING:
    from redrive.control import RedriveTicket

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

_HOST = Host(name="worker-1", process=4711, app="shop", app_version="1.2.3", environment="test")


def a_failure(
    attempt: int = 1,
    *,
    at: datetime = NOON,
    type: str = "shop.errors.NoCustomer",  # noqa: A002  the field's own name
    text: str = "order 17 has no customer",
    kind: FailureKind = FailureKind.PERMANENT,
    handler: str = "charge",
) -> Failure:
    """With a cause and stack traces, each of which says which attempt it is."""
    frames = (Frame("shop/charge.py", 40 + attempt, "charge", "raise NoCustomer(order)", own=True),)
    cause = Raised("KeyError", f"'customer' (attempt {attempt})", frames, "cause")
    return Failure(
        attempt=attempt,
        at=at,
        kind=kind,
        handler=handler,
        chain=(cause, Raised(type, text, frames)),
        host=_HOST,
    )


def a_message(**given: Any) -> Message:
    """Any field of a Message may be given."""
    usual: dict[str, Any] = {
        "id": new_id(),
        "queue": "orders",
        "body": b'{"order": 17}',
        "sent_at": NOON,
        "source": "shop",
    }
    return Message(**(usual | given))


def a_group(name: str = "no customer") -> Fingerprint:
    """The same name is the same group."""
    return Fingerprint(id=hashlib.sha256(name.encode()).hexdigest()[:32], title=f"NoCustomer: {name}")


def an_entry(
    identity: str | None = None,
    *,
    message: Message | None = None,
    queue: str = "orders",
    handler: str = "charge",
    attempts: int = 1,
    failures: tuple[Failure, ...] | None = None,
    group: str = "no customer",
    at: datetime = NOON,
    ticket: RedriveTicket | None = None,
    quarantine: str | None = None,
    lane: str | None = None,
) -> Entry:
    """One message that failed `attempts` times, a minute apart and the last time at `at`, or as `failures` say.
    Without an identity it is a message that nobody has seen before.
    """
    told = failures or tuple(
        a_failure(number, at=at - timedelta(minutes=attempts - number), handler=handler)
        for number in range(1, attempts + 1)
    )
    return Entry(
        identity=identity or new_id(),
        message=message or a_message(queue=queue),
        queue=queue,
        handler=handler,
        failures=told,
        fingerprint=a_group(group),
        at=at,
        first_attempt_at=told[0].at,
        ticket=ticket,
        quarantine=quarantine,
        lane=lane,
    )
