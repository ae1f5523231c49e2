"""What the driver itself has to remember of a message, in the one application property `x-redrive`.

Service Bus has no place for an attempt's number, the story of the failures, an identity that outlives a copy, or
microseconds. Its SDK gives text and bytes alike as bytes, and application properties have no order and no repeats.
"""

from __future__ import annotations

import zlib

from redrive.transports.drivers_note import NAME, DriversNote, encode, reader

__all__ = ["NAME", "Note", "decode", "encode", "mark_of"]


class Note(DriversNote, frozen=True, kw_only=True, omit_defaults=True):
    """`place`: the queue or topic it was sent to."""

    mark: int = 0
    """Of the body it was sent with: with another body it is another message too."""
    id: bytes | None = None
    key: bytes | None = None
    bodiless: bool = False
    """Its body is nothing, not empty."""
    headers: bytes = b""


_read = reader(Note)


def mark_of(body: bytes | None) -> int:
    return zlib.crc32(body or b"")


def decode(value: object, *, place: str, body: bytes) -> Note | None:
    """None for what no driver of ours has sent to that queue or topic with that body: it came over the wire."""
    note = _read(value) if isinstance(value, bytes) else None
    if note is None or note.place.casefold() != place.casefold() or note.mark != mark_of(body):
        return None
    return note
