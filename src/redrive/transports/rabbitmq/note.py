"""What the driver itself has to remember of a message, in the one header `x-redrive`.

AMQP has no place for an attempt's number, the story of the failures, an identity, microseconds, or nothing as a
body. A message of somebody else's that waits for its next attempt also carries what it looked like when it came:
republishing takes off what would make the broker lose, expire or copy it, and a broker that dead-letters rewrites
headers. Received again it is, byte for byte, what it was (G2).
"""

from __future__ import annotations

import zlib
from typing import Annotated

import msgspec

from redrive.message import Overlay
from redrive.transports.rabbitmq.table import Entry

NAME = b"x-redrive"
_MARK = bytes((len(NAME),)) + NAME
_MOST = 2**31
_encoder = msgspec.msgpack.Encoder()


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All times are microseconds since 1970. Absent is the usual."""

    identity: str = ""
    """Whose deliveries these are, whatever copies there are."""
    mark: int | None = None
    """Of the body it was published with. Other programs copy headers: with another body it is another message."""
    id: bytes | None = None
    """The message's id, where the property cannot hold it."""
    source: bytes | None = None
    sourceless: bool = False
    """Its source is nothing, not an empty text."""
    queue: bytes | None = None
    """Its own queue, if it lies in another."""
    sent_at: int | None = None
    key: bytes | None = None
    bodiless: bool = False
    """Its body is nothing, not empty."""
    headers: bytes | None = None
    """The headers, if AMQP cannot say them exactly."""
    overlay: Overlay | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, lt=2**31)] = 1
    first_attempt_at: int | None = None
    trail: bytes | None = None
    put_at: int | None = None
    """When it was put where it lies, by the clock of whoever put it there."""
    due_at: int | None = None
    """It waits; not before this moment."""
    came_as: bytes | None = None
    """A message of somebody else's: its properties as they came (`Message.properties`)."""
    control: tuple[bytes, bytes] | None = None
    """The texts of `error` and `retry_count` in its envelope, if others stand there now."""


def other_queue(own: str, place: str) -> bytes | None:
    """A message's own queue, if it lies in another."""
    return None if own == place else own.encode("utf-8", "surrogatepass")


def mark_of(body: bytes) -> int:
    return zlib.crc32(body)


_decoder = msgspec.msgpack.Decoder(Note)


def encode(note: Note) -> Entry:
    inner = _encoder.encode(note)
    return Entry(NAME, b"x" + len(inner).to_bytes(4) + inner)


def carries(table: bytes) -> bool:
    """Whether there may be one: a look that costs nothing."""
    return _MARK in table


def decode(entry: Entry) -> Note | None:
    """None for what no driver of ours has written: it came over the wire."""
    if entry.value[:1] != b"x":
        return None
    try:
        note = _decoder.decode(entry.value[5:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    counted = note.overlay is None or 0 <= note.overlay.retry_count < _MOST
    return note if counted else None
