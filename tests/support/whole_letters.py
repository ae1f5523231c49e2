"""Whole letters, as a store gives them, without a store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redrive.clock import new_id
from redrive.dead_letter import DeadLetter, Happening, Revision, Status
from redrive.testing.letters import NOON, a_failure, a_message

if TYPE_CHECKING:
    from redrive.message import Message


def a_whole_letter(message: Message | None = None, **given: Any) -> DeadLetter:
    """Edited once, failed in two lives, and resolved by hand. Any field may be given."""
    original = message or a_message()
    usual: dict[str, Any] = {
        "id": new_id(),
        "status": Status.RESOLVED,
        "how": "by hand",
        "message": original,
        "queue": "orders",
        "handler": "charge",
        "kind": "permanent",
        "type": "shop.errors.NoCustomer",
        "text": "order 17 has no customer",
        "group_id": "ab" * 16,
        "identity": f"embedded:1:{new_id()}/charge",
        "generation": 2,
        "revision": 1,
        "deliveries": 3,
        "attempts": 3,
        "created_at": NOON,
        "first_attempt_at": NOON - timedelta(minutes=5),
        "last_attempt_at": NOON + timedelta(hours=1),
        "changed_at": NOON + timedelta(hours=2),
        "failures": (a_failure(1), a_failure(2), a_failure(1, text="again")),
        "generations": (1, 1, 2),
        "revisions": (_revision(0, a_message(id=original.id, body=b"\xff")), _revision(1, original)),
        "history": (
            Happening(at=NOON, by="consumer", what="recorded", before="", after="PENDING", reason=""),
            Happening(at=NOON, by="ann", what="resolved", before="PENDING", after="RESOLVED", reason="\ud800\x00"),
        ),
    }
    return DeadLetter(**(usual | given))


def _revision(number: int, message: Message) -> Revision:
    return Revision(number=number, at=NOON, by="ann", reason="", message=message)
