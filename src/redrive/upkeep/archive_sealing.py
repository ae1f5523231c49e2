"""A sealed archive: the bytes of a plain one in pieces, each sealed with the file's own data key.

| bytes | what |
|---|---|
| 4 | magic |
| 1 | format version |
| 4 | CRC-32C of the two that follow |
| 2 | length of the header |
| | header: the data key, wrapped |
| | pieces |

A piece: 1 kind (`p`, and `e` for the last), 4 length, the sealed value. It is sealed as that kind and by its
number, so that none can be changed, moved, repeated or left out, nor anything cut off, without being found. It is
checked before anything of it is given out. Numbers are big-endian.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, BinaryIO, cast

import google_crc32c

from redrive.errors import SealBroken
from redrive.privacy.encryption.envelope import OVERHEAD
from redrive.privacy.encryption.file_keys import parse_header

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from redrive.privacy.encryption.file_keys import FileKey, FileKeys

MAGIC = b"\xd7RAR"
"""What every sealed archive begins with, and nothing else."""
SEALED_FOR = "archive"
PIECE_BYTES = 64 * 1024

_VERSION = b"\x01"
_HEAD = struct.Struct(">IH")
_LENGTH = struct.Struct(">H")
_PIECE = struct.Struct(">cI")
_GOES_ON, _ENDS = b"p", b"e"


class DamagedSeal(OSError):
    """The file is not what was written. An OSError, as what reads compressed files expects of a bad one."""


class SealedWriter:
    """Takes what a file would take. Nothing is whole before `finish`."""

    def __init__(self, file: BinaryIO, key: FileKey) -> None:
        self._file = file
        self._key = key
        self._waiting = bytearray()
        self._number = 0
        length = _LENGTH.pack(len(key.header))
        checksum = google_crc32c.value(length + key.header)
        file.write(b"".join((MAGIC, _VERSION, _HEAD.pack(checksum, len(key.header)), key.header)))

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) >= PIECE_BYTES:
            self._put(_GOES_ON, bytes(self._waiting[:PIECE_BYTES]))
            del self._waiting[:PIECE_BYTES]
        return len(data)

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        """Writes what is waiting as the last piece, even if that is nothing."""
        self._put(_ENDS, bytes(self._waiting))
        self._waiting.clear()

    def _put(self, kind: bytes, piece: bytes) -> None:
        sealed = self._key.seal(piece, of=kind.decode(), number=self._number)
        self._file.write(_PIECE.pack(kind, len(sealed)) + sealed)
        self._number += 1


class _SealedReader(io.RawIOBase):
    def __init__(self, stream: BinaryIO, key: FileKey) -> None:
        self._stream = stream
        self._key = key
        self._number = 0
        self._at_hand = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._at_hand and not self._ended:
            self._at_hand = memoryview(self._next_piece())
        part, self._at_hand = self._at_hand[: len(view)], self._at_hand[len(view) :]
        view[: len(part)] = part
        return len(part)

    def _next_piece(self) -> bytes:
        kind, length = _PIECE.unpack(_exactly(self._stream, _PIECE.size))
        if kind not in (_GOES_ON, _ENDS) or length > PIECE_BYTES + OVERHEAD:
            raise DamagedSeal(f"piece {self._number} is none")
        sealed = _exactly(self._stream, length)
        try:
            piece = self._key.open(sealed, of=kind.decode(), number=self._number)
        except SealBroken:
            raise DamagedSeal(f"the seal of piece {self._number} is broken") from None
        if kind == _ENDS and self._stream.read(1):
            raise DamagedSeal("something stands behind its end")
        self._number, self._ended = self._number + 1, kind == _ENDS
        return piece


def unsealed(stream: BinaryIO, keys: FileKeys) -> BinaryIO:
    """The bytes of the plain archive, checked piece by piece as they are read: DamagedSeal where they are not what
    was written. KeyMissing, and nothing is read, if its key is not known.
    """
    try:
        key = keys.read(SEALED_FOR, _header(stream))
    except SealBroken as error:
        raise DamagedSeal(str(error)) from None
    return cast("BinaryIO", io.BufferedReader(_SealedReader(stream, key), PIECE_BYTES))


def sealed_by(stream: BinaryIO) -> str | None:
    """The id of the KEK that a sealed archive needs; None for a plain one."""
    if stream.read(len(MAGIC)) != MAGIC:
        return None
    stream.seek(0)
    try:
        return parse_header(_header(stream))[1].kek_id
    except SealBroken as error:
        raise DamagedSeal(str(error)) from None


def _header(stream: BinaryIO) -> bytes:
    start = _exactly(stream, len(MAGIC) + len(_VERSION))
    if not start.startswith(MAGIC):
        raise DamagedSeal("it does not begin like a sealed archive")
    if not start.endswith(_VERSION):
        raise DamagedSeal("it is of a version that cannot be read here")
    checksum, length = _HEAD.unpack(_exactly(stream, _HEAD.size))
    header = _exactly(stream, length)
    if google_crc32c.value(_LENGTH.pack(length) + header) != checksum:
        raise DamagedSeal("its header is damaged")
    return header


def _exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    while len(data) < length and (more := stream.read(length - len(data))):  # a pipe may give less
        data += more
    if len(data) < length:
        raise DamagedSeal("it is cut off")
    return data
