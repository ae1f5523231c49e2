"""What a driver itself has to remember of a message on a broker that has no place for it: one header or attribute,
`x-redrive`, which other programs see, copy and may forge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from redrive.message import Overlay

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "x-redrive"
MOST = 2**31


class DriversNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all of them have. All times are microseconds since 1970. Absent is the usual."""

    place: str = ""
    """Where it was written for. Other programs copy headers: elsewhere it is another message."""
    identity: str = ""
    """Whose deliveries these are, whatever copies there are."""
    source: bytes | None = None
    """None: its source is nothing, not an empty text."""
    queue: bytes | None = None
    """Its own queue, if it lies in another."""
    sent_at: int | None = None
    overlay: Overlay | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, lt=MOST)] = 1
    first_attempt_at: int | None = None
    trail: bytes | None = None
    came_as: bytes | None = None
    """A message of somebody else's: what its broker said of it first (`Message.properties`)."""


N = TypeVar("N", bound=DriversNote)
_encoder = msgspec.msgpack.Encoder()


def encode(note: DriversNote) -> bytes:
    return _encoder.encode(note)


def reader(kind: type[N]) -> Callable[[bytes | None], N | None]:
    """Reads what came over the wire. None for what no driver of ours can have written."""
    decoder = msgspec.msgpack.Decoder(kind)

    def read(value: bytes | None) -> N | None:
        if value is None:
            return None
        try:
            note = decoder.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        counted = note.overlay is None or 0 <= note.overlay.retry_count < MOST
        return note if counted else None

    return read
