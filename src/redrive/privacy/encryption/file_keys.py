"""Data keys of files: each file has its own, and carries it wrapped in its header. So it can be read wherever its
KEK is, without any database.

A header, byte by byte: 1 length of the KEK's id, the id, 16 id of the data key, 2 length of the wrapped key, the
wrapped key.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from redrive.errors import KeyMissing
from redrive.privacy.encryption.envelope import (
    KEY_ID_BYTES,
    MOST_USES,
    SECRET_BYTES,
    DataKey,
    Place,
    broken,
    joined,
)
from redrive.privacy.encryption.key_source import Wrapped

if TYPE_CHECKING:
    from redrive.privacy.encryption.key_source import KeySource

_CONTEXT = b"redrive file key 1"
_KEK_LENGTH, _WRAPPED_LENGTH = struct.Struct(">B"), struct.Struct(">H")
_REMEMBERED = 16


class FileKey:
    """Seals and opens the pieces of one file."""

    def __init__(self, purpose: str, key: DataKey, header: bytes) -> None:
        self.header = header
        """What the file has to carry."""
        self._purpose = purpose
        self._key = key

    def seal(self, piece: bytes, *, of: str, number: int = 0) -> bytes:
        """`of` and `number` say which piece of the file it is."""
        return self._key.seal(piece, Place(of, self._purpose, number))

    def open(self, sealed: bytes, *, of: str, number: int = 0) -> bytes:
        """SealBroken unless it is that piece of that file."""
        return self._key.open(sealed, Place(of, self._purpose, number))


class FileKeys:
    """`source` None: no KEK is known, and nothing sealed can be read. `seals`: whether new files are sealed."""

    def __init__(self, source: KeySource | None = None, *, seals: bool = False) -> None:
        if seals and source is None:
            raise ValueError("whoever seals needs a key")
        self._source = source
        self.seals = seals
        self._unwrapped = lru_cache(_REMEMBERED)(self._unwrap)

    def new(self, purpose: str) -> FileKey:
        """For a file that nobody has written yet."""
        if self._source is None:
            raise KeyMissing("")
        key_id, secret = os.urandom(KEY_ID_BYTES), os.urandom(SECRET_BYTES)
        wrapped = self._source.wrap(secret, _context(purpose, key_id))
        return FileKey(purpose, DataKey(key_id, secret, uses=MOST_USES), _header(key_id, wrapped))

    def read(self, purpose: str, header: bytes) -> FileKey:
        """KeyMissing if its KEK is not known here, SealBroken if the header is not what was written."""
        return FileKey(purpose, self._unwrapped(purpose, header), header)

    def _unwrap(self, purpose: str, header: bytes) -> DataKey:
        key_id, wrapped = parse_header(header)
        if self._source is None:
            raise KeyMissing(wrapped.kek_id)
        secret = self._source.unwrap(wrapped, _context(purpose, key_id))
        if len(secret) != SECRET_BYTES:
            raise broken("its wrapped data key is not one of ours")
        return DataKey(key_id, secret)


def _header(key_id: bytes, wrapped: Wrapped) -> bytes:
    kek_id = wrapped.kek_id.encode()
    lengths = _KEK_LENGTH.pack(len(kek_id)), _WRAPPED_LENGTH.pack(len(wrapped.data))
    return b"".join((lengths[0], kek_id, key_id, lengths[1], wrapped.data))


def parse_header(header: bytes) -> tuple[bytes, Wrapped]:
    """The data key's id and how it is wrapped. SealBroken for what is no header."""
    try:
        (kek_bytes,) = _KEK_LENGTH.unpack_from(header)
        key_at = _KEK_LENGTH.size + kek_bytes
        (wrapped_bytes,) = _WRAPPED_LENGTH.unpack_from(header, key_at + KEY_ID_BYTES)
        wrapped_at = key_at + KEY_ID_BYTES + _WRAPPED_LENGTH.size
        kek_id = header[_KEK_LENGTH.size : key_at].decode()
    except (struct.error, UnicodeDecodeError):
        raise broken("its header is damaged") from None
    if len(header) != wrapped_at + wrapped_bytes:
        raise broken("its header is damaged")
    return header[key_at : key_at + KEY_ID_BYTES], Wrapped(kek_id, header[wrapped_at:])


def _context(purpose: str, key_id: bytes) -> bytes:
    return joined(_CONTEXT, purpose.encode(), key_id)


NO_KEYS = FileKeys()
"""Nothing is sealed, and nothing sealed can be read."""
