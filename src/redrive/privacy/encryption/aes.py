"""AES-256-GCM: the one place that knows the library which does it."""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from redrive.privacy.encryption.envelope import NONCE_BYTES, TAG_BYTES


class Aes:
    __slots__ = ("_cipher",)

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(secret)

    def encrypt(self, value: bytes, bound: bytes) -> bytes:
        """A random nonce, then what was encrypted, then the tag, which covers `bound` as well."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, value, bound)

    def decrypt(self, data: bytes, bound: bytes) -> bytes | None:
        """None unless it is what `encrypt` gave, with the same `bound`."""
        if len(data) < NONCE_BYTES + TAG_BYTES:
            return None
        try:
            return self._cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], bound)
        except InvalidTag:
            return None
