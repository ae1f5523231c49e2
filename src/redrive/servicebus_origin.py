"""What Service Bus said of a message when it was first read: kept in `Message.properties`, for people and for
sending.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.origin_bytes import OriginBytes

MAGIC = b"servicebus\x00"


class DeadLettered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the broker said of a message that it, or its consumer, gave to a dead-letter queue."""

    reason: str = ""
    description: str = ""
    source: str = ""
    """The entity it was dead-lettered in, where dead letters are forwarded: `x-opt-deadletter-source`."""
    deliveries: int = 0


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    entity: str
    sequence: int
    message_id: str = ""
    texts: dict[str, str] = {}
    """Its properties that are texts, by the SDK's names, those that were set."""
    typed: dict[str, Any] = {}
    """Its properties that are no texts, by AMQP's names, as `amqp_values` keeps them."""
    application: dict[str, Any] = {}
    """Application properties whose types their headers do not tell, as `amqp_values` keeps them."""
    annotations: list[tuple[Any, Any]] = []
    """Those that its sender has set: name and value, as `amqp_values` keeps them."""
    priority: int | None = None
    durable: bool | None = None
    lives: float | None = None
    """Its time to live, in seconds."""
    body: str = "data"
    """Which kind of AMQP body it was: data; text or binary, a value that is one; value, any other; sequence.
    `unreadable`: nobody could tell. The last three are bytes of `amqp_values`' making.
    """
    sections: list[int] = []
    """How long its sections of data were, if there was more than one."""
    dead: DeadLettered | None = None
    """It lay in a dead-letter queue."""
    ours: bool = False
    """It was made here, and Service Bus moved it to the dead letters: it does not go out as a stranger's."""

    def __str__(self) -> str:
        return f"entity {self.entity}, sequence number {self.sequence}"


_bytes = OriginBytes(MAGIC, Origin)
origin_of, properties_of, decode = _bytes.of, _bytes.encode, _bytes.decode
