"""Where in Kafka a message was first read: kept in `Message.properties`, for people and for sending it back."""

from __future__ import annotations

import msgspec

from redrive.origin_bytes import OriginBytes

MAGIC = b"kafka\x00"


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


_bytes = OriginBytes(MAGIC, Origin)
origin_of, properties_of = _bytes.of, _bytes.encode
