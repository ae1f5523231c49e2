"""KEKs that this process has itself: one that wraps, and older ones that still unwrap."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from redrive.errors import KeyMissing
from redrive.privacy.encryption.envelope import SECRET_BYTES, broken, cipher, joined
from redrive.privacy.encryption.key_source import Wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

_WRAPPING, _NAMING = b"redrive key wrapping 1", b"redrive key id 1"
_ID_DIGITS = 16


class KeyEncryptionKey:
    """32 random bytes. What wraps and what is shown as its id are derived from them apart from each other."""

    __slots__ = ("_cipher", "id")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"a key has {SECRET_BYTES} bytes")
        self.id = hmac.digest(secret, _NAMING, sha256).hex()[:_ID_DIGITS]
        self._cipher = cipher(hmac.digest(secret, _WRAPPING, sha256))

    def __repr__(self) -> str:
        return f"KeyEncryptionKey({self.id})"

    def wrap(self, secret: bytes, context: bytes) -> Wrapped:
        return Wrapped(self.id, self._cipher.encrypt(secret, self._bound(context)))

    def unwrap(self, data: bytes, context: bytes) -> bytes:
        secret = self._cipher.decrypt(data, self._bound(context))
        if secret is None:
            raise broken("its wrapped data key is not what was wrapped")
        return secret

    def _bound(self, context: bytes) -> bytes:
        return joined(_WRAPPING, self.id.encode(), context)


class LocalKeys:
    """The first key wraps. None at all: nothing can be wrapped or unwrapped."""

    def __init__(self, keys: Sequence[KeyEncryptionKey] = ()) -> None:
        self._keys = {key.id: key for key in keys}

    @property
    def current(self) -> str:
        return self._wrapping().id

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def wrap(self, secret: bytes, context: bytes) -> Wrapped:
        return self._wrapping().wrap(secret, context)

    def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        key = self._keys.get(wrapped.kek_id)
        if key is None:
            raise KeyMissing(wrapped.kek_id, known=", ".join(self._keys))
        return key.unwrap(wrapped.data, context)

    def _wrapping(self) -> KeyEncryptionKey:
        if not self._keys:
            raise KeyMissing("")
        return next(iter(self._keys.values()))
