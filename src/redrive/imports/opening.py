"""The beginning of a stream, looked at without losing it, and the seal and gzip taken off."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from redrive.privacy.encryption.file_keys import NO_KEYS
from redrive.upkeep.archive_sealing import MAGIC, unsealed

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from redrive.privacy.encryption.file_keys import FileKeys

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LOOKED_AT = 64


class Opened(NamedTuple):
    head: bytes
    """Its first bytes that are not white space, without a byte order mark."""
    stream: BinaryIO
    """From the beginning, but without the mark."""


def opened(stream: BinaryIO, keys: FileKeys = NO_KEYS) -> Opened:
    """KeyMissing or DamagedSeal if it is sealed and nothing of it can be read."""
    head = _read_head(stream)
    plain = _rewound(head, stream)
    if head.startswith(MAGIC):
        plain = unsealed(plain, keys)
        head = _read_head(plain)
        plain = _rewound(head, plain)
    if head.startswith(_GZIP):
        # What is damaged in it is found when it is read, by whoever reads.
        plain = cast("BinaryIO", gzip.GzipFile(fileobj=plain, mode="rb"))
        head = _read_head(plain)
        plain = _rewound(head, plain)
    if head.startswith(_BYTE_ORDER_MARK):
        plain.read(len(_BYTE_ORDER_MARK))
        head = head.removeprefix(_BYTE_ORDER_MARK)
    return Opened(head.lstrip(), plain)


def _read_head(stream: BinaryIO) -> bytes:
    try:
        return stream.read(_LOOKED_AT)
    except (OSError, EOFError):  # gzip that is cut off or none
        return b""


class _Rewound(io.RawIOBase):
    def __init__(self, head: bytes, rest: io.BufferedReader) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        part, self._head = self._head[: len(view)], self._head[len(view) :]
        part = part or self._rest.read1(len(view))  # so much as is there: what is cut off later is read so far
        view[: len(part)] = part
        return len(part)


def _rewound(head: bytes, rest: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_Rewound(head, cast("io.BufferedReader", rest)), 64 * 1024)
