"""What the driver itself has to remember of a record, in the one header `x-redrive`.

A record has a key, a value, and headers whose values are bytes. It has no place for an attempt's number, the story
of the failures, an identity that outlives a copy, microseconds, or a text that is told from bytes.
"""

from __future__ import annotations

from redrive.transports.drivers_note import NAME, DriversNote, encode, reader

__all__ = ["NAME", "Note", "decode", "encode"]


class Note(DriversNote, frozen=True, kw_only=True, omit_defaults=True):
    """`place`: the topic."""

    group: str = ""
    """The only consumer group it is meant for; empty: for all."""
    id: bytes | None = None
    shape: str = ""
    """Of each header's value: t(ext), b(ytes), i(nteger). Empty: bytes all of them."""
    headers: bytes | None = None
    """The headers, if records cannot say them exactly."""
    put_at: int | None = None
    """When it was put where it lies, by the clock of whoever put it there."""
    due_at: int | None = None
    """It waits; not before this moment."""


_read = reader(Note)


def decode(value: bytes | None, place: str) -> Note | None:
    """None for what no driver of ours has written for that topic: it came over the wire."""
    note = _read(value)
    return None if note is None or note.place != place else note
