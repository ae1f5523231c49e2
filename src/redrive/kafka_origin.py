"""Where in Kafka a message was first read: kept in `Message.properties`, for people and for sending it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from redrive.message import Message

MAGIC = b"kafka\x00"
_encoder = msgspec.msgpack.Encoder()


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """Where a record was first read. The first three are read by SQL too: see stores/dlq_view_sql.py."""

    topic: str
    partition: int
    offset: int
    partitions: int = 0
    """How many its topic had then; 0: not known."""
    timestamp: int | None = None
    """Milliseconds, as its producer or broker said."""
    group: str = ""
    """The consumer group that read it; empty if it was read before this was kept."""

    def __str__(self) -> str:
        by = f", read by group {self.group}" if self.group else ""
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}{by}"


_decoder = msgspec.msgpack.Decoder(Origin)


def origin_of(message: Message) -> Origin | None:
    """None for a message that was made here, or came from a broker of another kind."""
    raw = message.properties
    if raw is None or not raw.startswith(MAGIC):
        return None
    try:
        return _decoder.decode(raw[len(MAGIC) :])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def properties_of(origin: Origin) -> bytes:
    return MAGIC + _encoder.encode(origin)
