"""A sealed value, byte by byte. AES-256-GCM; numbers are big-endian.

| bytes | what |
|---|---|
| 1 | version |
| 16 | id of the data key |
| 12 | nonce, random |
| | what was sealed, as long as it was |
| 16 | tag |

The tag covers, beside the value, the place it was sealed for and the data key's id. So a value that is moved to
another letter, column or revision does not open there, nor does one with a bit changed or cut off.
"""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING, NamedTuple

from redrive.errors import SealBroken

if TYPE_CHECKING:
    from redrive.privacy.encryption.aes import Aes

VERSION = b"\x01"
KEY_ID_BYTES = 16
SECRET_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
_HEAD_BYTES = len(VERSION) + KEY_ID_BYTES
OVERHEAD = _HEAD_BYTES + NONCE_BYTES + TAG_BYTES
"""Bytes that a sealed value is longer."""

MOST_USES = 2**32
"""Values that one data key seals: with more, two random nonces could be the same (NIST SP 800-38D, 8.3)."""
LONGEST = 2**31 - 1
"""Bytes of one value: what AES-GCM takes here at once."""

_PURPOSE = b"redrive seal 1"
_LENGTH = struct.Struct(">I")
_BROKEN = "somebody or a disk has changed it: restore it from a backup, and find out who can write there"


class Place(NamedTuple):
    """What a value is sealed for. It opens nowhere else."""

    letter_id: str
    column: str
    revision: int = 0


class UsedUp(RuntimeError):
    """The key may seal nothing more; another one has to be taken."""


class DataKey:
    """Seals and opens values. It seals as many as it was allowed to, and opens any number. For many threads."""

    __slots__ = ("_cipher", "_left", "_lock", "id")

    def __init__(self, key_id: bytes, secret: bytes, *, uses: int = 0) -> None:
        if len(key_id) != KEY_ID_BYTES or len(secret) != SECRET_BYTES:
            raise ValueError("a data key has an id of 16 bytes and a secret of 32")
        self.id = key_id
        self._cipher = cipher(secret)
        self._left = uses
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"DataKey({self.id.hex()})"

    @property
    def left(self) -> int:
        """How many values it may still seal."""
        return self._left

    def allow(self, uses: int) -> None:
        """So many more. Whoever calls it has made sure that all processes together stay below MOST_USES."""
        with self._lock:
            self._left += uses

    def seal(self, value: bytes, place: Place) -> bytes:
        """UsedUp if it may seal no more; nothing has happened then."""
        if len(value) > LONGEST:
            raise ValueError(f"a value of {len(value)} bytes is too long to be sealed")
        with self._lock:
            if self._left < 1:
                raise UsedUp(f"data key {self.id.hex()} is used up")
            self._left -= 1
        return b"".join((VERSION, self.id, self._cipher.encrypt(value, bound(place, self.id))))

    def open(self, sealed: bytes, place: Place) -> bytes:
        """What was sealed for that place. SealBroken for anything else."""
        if key_id_of(sealed) != self.id:
            raise broken("it is sealed with another data key")
        value = self._cipher.decrypt(sealed[_HEAD_BYTES:], bound(place, self.id))
        if value is None:
            raise broken("it is not what was sealed for this place")
        return value


def cipher(secret: bytes) -> Aes:
    from redrive.privacy.encryption.aes import Aes  # noqa: PLC0415  slow to import, and not all who may seal do

    return Aes(secret)


def key_id_of(sealed: bytes) -> bytes:
    """The id of its data key. SealBroken for what is no sealed value at all."""
    if len(sealed) < OVERHEAD:
        raise broken("it is cut off")
    if not sealed.startswith(VERSION):
        raise broken("it is of a version that is not known here")
    return sealed[len(VERSION) : _HEAD_BYTES]


def bound(place: Place, key_id: bytes) -> bytes:
    """What the tag covers beside the value: never the same for two places."""
    return joined(_PURPOSE, _encoded(place.letter_id), _encoded(place.column), b"%d" % place.revision, key_id)


def joined(*parts: bytes) -> bytes:
    """Each with its length in front: no two lists of parts become the same bytes."""
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def broken(why: str) -> SealBroken:
    return SealBroken(f"the seal of a value is broken: {why}", remedy=_BROKEN)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
