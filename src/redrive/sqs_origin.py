"""What SQS said of a message when it was first read: kept in `Message.properties`, for people and for sending."""

from __future__ import annotations

import msgspec

from redrive.origin_bytes import OriginBytes

MAGIC = b"sqs\x00"
_SOURCE, _RECEPTIONS = "DeadLetterQueueSourceArn", "ApproximateReceiveCount"
_PLAIN = frozenset({_SOURCE, _RECEPTIONS, "SentTimestamp", "ApproximateFirstReceiveTimestamp"})


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """Where a message was first read."""

    queue: str
    message_id: str
    sent_at: int | None = None
    """Milliseconds, as SQS said."""
    types: dict[str, str] = {}
    """Of its attributes, those that are more than a text or bytes."""
    system: dict[str, str] = {}
    """What SQS itself tells of it, such as `DeadLetterQueueSourceArn` and `ApproximateReceiveCount`."""

    ours: bool = False
    """It was made here, and SQS moved it to the dead letters: it does not go out as a stranger's."""

    def __str__(self) -> str:
        source = self.system.get(_SOURCE, "").rpartition(":")[2]
        moved = f", moved there from {source}" if source else ""
        times = self.system.get(_RECEPTIONS, "")
        received = f", received {times} time{'' if times == '1' else 's'}" if times else ""
        return f"queue {self.queue}, message {self.message_id}{moved}{received}"

    @property
    def is_moved(self) -> bool:
        """By SQS, from another queue to where it was read."""
        return _SOURCE in self.system

    @property
    def without_what_is_private(self) -> Origin:
        """Senders, groups and traces may tell of a person; attributes have names that somebody chose."""
        told = {name: value for name, value in self.system.items() if name in _PLAIN}
        return Origin(self.queue, self.message_id, self.sent_at, system=told, ours=self.ours)


_bytes = OriginBytes(MAGIC, Origin)
origin_of, properties_of = _bytes.of, _bytes.encode
