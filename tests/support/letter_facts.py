"""A letter as a store gives it, for tests that need no store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.dead_letter import DeadLetter, Status
from redrive.testing.letters import NOON, a_message

if TYPE_CHECKING:
    from redrive.message import Headers


def a_letter(body: bytes | None = b'{"order": 17}', *, headers: Headers = (), **given: Any) -> DeadLetter:
    usual: dict[str, Any] = {
        "id": "0198f2ab-1234-7000-8000-000000000001",
        "status": Status.PENDING,
        "how": None,
        "message": a_message(body=body, headers=headers),
        "queue": "orders",
        "handler": "charge",
        "kind": "permanent",
        "type": "shop.errors.NoCustomer",
        "text": "order 17 has no customer",
        "group_id": "9f2c" + "0" * 28,
        "identity": "x",
        "generation": 2,
        "revision": 0,
        "deliveries": 1,
        "attempts": 3,
        "created_at": NOON,
        "first_attempt_at": NOON,
        "last_attempt_at": NOON,
        "changed_at": NOON,
    }
    return DeadLetter(**(usual | given))
