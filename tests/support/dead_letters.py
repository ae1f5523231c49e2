"""Messages that failed just now, or as long ago as a test wants, for commands that tell ages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.clock import new_id
from redrive.failure import type_name
from redrive.fingerprint import fingerprint
from redrive.message import Message
from redrive.testing.letters import a_failure, an_entry

if TYPE_CHECKING:
    from redrive.dead_letter import Entry
    from redrive.message import Headers


def an_order(number: int = 1, *, queue: str = "orders", headers: Headers = ()) -> Message:
    """In S3's envelope."""
    return Message.create(
        id=new_id(),
        sent_at=datetime.now(UTC),
        queue=queue,
        data={"order_id": number},
        source="checkout",
        metadata={"priority": "high"},
        headers=headers,
    )


def foreign(
    body: bytes | None, *, queue: str = "orders", headers: Headers = (), properties: bytes | None = None
) -> Message:
    """Somebody else's bytes."""
    sent_at = datetime.now(UTC)
    return Message(id=new_id(), queue=queue, body=body, sent_at=sent_at, headers=headers, properties=properties)


def dead(
    message: Message | None = None,
    *,
    queue: str = "orders",
    handler: str = "charge",
    error: Exception | None = None,
    attempts: int = 2,
    age: timedelta = timedelta(0),
    **more: Any,
) -> Entry:
    """An entry for the store: `attempts` attempts that ended in `error`, the last one `age` ago."""
    at = datetime.now(UTC) - age
    raised = error or ValueError("no such customer")
    tried = tuple(
        a_failure(number, at=at, type=type_name(type(raised)), text=str(raised), handler=handler)
        for number in range(1, attempts + 1)
    )
    message = message or an_order(queue=queue)
    entry = an_entry(message=message, queue=queue, handler=handler, failures=tried, at=at, **more)
    return msgspec.structs.replace(entry, fingerprint=fingerprint(tried[-1], queue=queue))
