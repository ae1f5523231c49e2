"""Search by a masked value: what is masked is kept beside a letter as keyed hashes, and what a person types is
hashed in the same way. Whoever has the hashes alone learns nothing, and cannot try out all CPFs without the key.

A number is the same with and without what stands between its digits, an address in small and capital letters.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from redrive.privacy.detectors import PHONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.message import Message
    from redrive.privacy.masking import Masker

SIZE = 16
"""Bytes of one hash: enough for no two values ever to share one."""
MOST = 256
"""Values of one message that can be searched for, in the order they stand; the rest cannot."""
LONGEST = 1024
"""Bytes of a value; what is longer cannot be searched for."""
SHORTEST_KEY = 16

_PURPOSE = b"redrive blind index 1"
_TEXT, _NUMBER = b"text:", b"number:"
_SEPARATORS = b" .-/()+"
_DIGITS = frozenset(b"0123456789")
_FEWEST_DIGITS = 8
_COUNTRY, _WITH_COUNTRY = b"55", range(12, 14)


class BlindIndex:
    """Its key is derived from the one it is given, so that the same secret can serve other purposes."""

    def __init__(self, key: bytes) -> None:
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"the key of a blind index has at least {SHORTEST_KEY} bytes")
        self._key = hmac.digest(key, _PURPOSE, sha256)

    def __repr__(self) -> str:
        return "BlindIndex(key=***)"

    def hashes(self, message: Message, masker: Masker) -> frozenset[bytes]:
        """Of everything that the masker hides in the message."""
        masks = masker.masks(message)[:MOST]
        forms = (form for mask in masks for form in _forms_kept(mask.value, is_phone=mask.kind == PHONE))
        return frozenset(map(self._hash, forms))

    def query(self, value: str) -> frozenset[bytes]:
        """Any of them is in the hashes of a message that holds the value; empty for a value that none can have."""
        return frozenset(map(self._hash, _forms_asked(value.encode("utf-8", "surrogatepass"))))

    def _hash(self, form: bytes) -> bytes:
        return hmac.digest(self._key, form, sha256)[:SIZE]


def _forms_kept(value: bytes, *, is_phone: bool) -> Iterator[bytes]:
    text = _folded(value)
    if not text or len(text) > LONGEST:
        return
    yield _TEXT + text
    number = _number(value)
    if number is not None:
        yield _NUMBER + number
        if is_phone and number.startswith(_COUNTRY) and len(number) in _WITH_COUNTRY:
            yield _NUMBER + number.removeprefix(_COUNTRY)


def _forms_asked(value: bytes) -> Iterator[bytes]:
    yield from _forms_kept(value, is_phone=True)  # with and without its country, for who knows how it was written


def _folded(value: bytes) -> bytes:
    return value.decode("utf-8", "replace").casefold().strip().encode("utf-8", "replace")


def _number(value: bytes) -> bytes | None:
    """Its digits (of a CNPJ, letters too) without what stands between them and without zeros in front, which a
    number in JSON has lost; None: it is none.
    """
    signs = value.translate(None, _SEPARATORS)
    if not signs.isalnum() or sum(each in _DIGITS for each in signs) < _FEWEST_DIGITS:
        return None
    return signs.upper().lstrip(b"0")
