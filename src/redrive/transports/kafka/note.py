"""What the driver itself has to remember of a record, in the one header `x-redrive`.

A record has a key, a value, and headers whose values are bytes. It has no place for an attempt's number, the story
of the failures, an identity that outlives a copy, microseconds, or a text that is told from bytes.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from redrive.message import Overlay

NAME = "x-redrive"
_MOST = 2**31
_encoder = msgspec.msgpack.Encoder()


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All times are microseconds since 1970. Absent is the usual."""

    place: str = ""
    """The topic it was written for. Other programs copy headers: in another topic it is another record."""
    group: str = ""
    """The only consumer group it is meant for; empty: for all."""
    identity: str = ""
    """Whose deliveries these are, whatever copies there are."""
    id: bytes | None = None
    source: bytes | None = None
    """None: its source is nothing, not an empty text."""
    queue: bytes | None = None
    """Its own queue, if it lies in another."""
    sent_at: int | None = None
    shape: str = ""
    """Of each header's value: t(ext), b(ytes), i(nteger). Empty: bytes all of them."""
    headers: bytes | None = None
    """The headers, if records cannot say them exactly."""
    overlay: Overlay | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, lt=_MOST)] = 1
    first_attempt_at: int | None = None
    trail: bytes | None = None
    put_at: int | None = None
    """When it was put where it lies, by the clock of whoever put it there."""
    due_at: int | None = None
    """It waits; not before this moment."""
    came_as: bytes | None = None
    """A record of somebody else's: where it came from (`Message.properties`)."""


_decoder = msgspec.msgpack.Decoder(Note)


def encode(note: Note) -> bytes:
    return _encoder.encode(note)


def decode(value: bytes | None, place: str) -> Note | None:
    """None for what no driver of ours has written for that topic: it came over the wire."""
    if value is None:
        return None
    try:
        note = _decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    counted = note.overlay is None or 0 <= note.overlay.retry_count < _MOST
    return note if counted and note.place == place else None
