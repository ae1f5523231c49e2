"""Order by key: what a message's order is kept by, and what is said of one that waits behind a dead predecessor.

A *lane* is the line of messages of one key in one queue. A letter of a lane that is not settled keeps the later
messages of it waiting: the consumer parks them as letters behind it, and a run sends them in their order.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.dead_letter import Fingerprint
from redrive.errors import Transient
from redrive.headers import encode_headers

if TYPE_CHECKING:
    from redrive.message import Message

_KEY = "key"
_HEADER = "header:"
_LANE = 32


class ParkedBehind(Transient):
    """An earlier message of the same key is dead: this one was not handled, and waits behind it."""


PARKED = f"{ParkedBehind.__module__}.{ParkedBehind.__qualname__}"
"""The `type` of a letter that has never failed, and only waits."""

_SAID = "an earlier message of the same key is dead"


def parked() -> ParkedBehind:
    return ParkedBehind(_SAID)


def parked_group(queue: str) -> Fingerprint:
    """One group per queue for all that wait: nothing is wrong with them."""
    digest = hashlib.sha256(f"{queue}\x1f{PARKED}".encode("utf-8", "surrogatepass")).hexdigest()
    return Fingerprint(id=digest[:32], title=f"ParkedBehind: {_SAID}")


class OrderedBy(msgspec.Struct, frozen=True):
    """What tells which messages of a queue must stay in their order: the message's key, or one of its headers."""

    header: str | None = None

    @classmethod
    def parse(cls, text: str) -> OrderedBy:
        """`key` or `header:NAME`. ValueError for anything else."""
        if text == _KEY:
            return cls()
        name = text.removeprefix(_HEADER)
        if name == text or not name:
            raise ValueError(f"{text!r} is neither 'key' nor 'header:NAME'")
        return cls(name)

    def lane(self, message: Message, queue: str) -> str | None:
        """None: the message has no such key, and no order is kept for it. A digest: keys may be personal data."""
        key = message.key if self.header is None else _encoded(message, self.header)
        if key is None:
            return None
        about = queue.encode("utf-8", "surrogatepass")
        return hashlib.sha256(len(about).to_bytes(4, "big") + about + key).hexdigest()[:_LANE]


def _encoded(message: Message, name: str) -> bytes | None:
    """The value of the first header of that name, whatever its type is."""
    found: list[Any] = [value for each, value in message.headers if each == name]
    return encode_headers(((name, found[0]),)) if found and found[0] is not None else None
