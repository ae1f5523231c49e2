"""What the driver itself has to remember of a message, in the one binary attribute `x-redrive`.

A message has a body of text and ten attributes without an order. It has no place for an attempt's number, the
story of the failures, an identity that outlives a copy, a key, or headers that repeat.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from redrive.transports.drivers_note import MOST, NAME, DriversNote, encode, reader

__all__ = ["NAME", "Note", "decode", "encode"]


class Note(DriversNote, frozen=True, kw_only=True, omit_defaults=True):
    """`place`: the queue. `sent_at` is in every note that was sent."""

    id: bytes = b""
    key: bytes | None = None
    headers: bytes | None = None
    """The headers, if attributes cannot say them exactly."""
    put_at: int | None = None
    """When it was put where it lies, by the clock of whoever put it there."""
    due_at: int | None = None
    """It waits; not before this moment."""
    hops: Annotated[int, msgspec.Meta(ge=0, lt=MOST)] = 0
    """How often it is received only to wait on: no delay of SQS is longer than fifteen minutes."""


_read = reader(Note)


def decode(value: bytes | None) -> Note | None:
    """None for what no driver of ours has written: it came over the wire."""
    note = _read(value)
    return None if note is None or note.sent_at is None else note
