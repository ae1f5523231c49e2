"""One record of a spool segment, byte by byte. Numbers are big-endian.

| bytes | what |
|---|---|
| 4 | magic |
| 1 | format version |
| 16 | the segment's mark: the UUID in its name |
| 4 | CRC-32C of everything after it |
| 4 | length of the identity |
| 4 | length of the body |
| | identity, UTF-8 |
| | body: the entry's fields by name, its headers last |

A sealed record has version 2 and the same form: in the place of the identity stands the header with the segment's
data key, wrapped, and in the place of the body the sealed value of what follows the mark of a plain record. Every
record carries the header, so that damage to one record never hides another, and the checksum is over what lies on
the disk, so that damage is found without any key.

Where a record is damaged, reading goes on at the next opening (magic, version, mark). The mark is what makes that
safe: a producer can put a whole record into a message, but cannot know the mark of the segment it will be in.
A record of another version has no opening that we know, so it is kept as damage and never guessed at.
"""

from __future__ import annotations

import struct
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import msgspec

from redrive.dead_letter import Entry
from redrive.errors import SealBroken
from redrive.headers import decode_headers, encode_headers
from redrive.privacy.encryption.file_keys import NO_KEYS

if TYPE_CHECKING:
    from redrive.privacy.encryption.file_keys import FileKey, FileKeys

_MAGIC = b"\xd7RSP"
_PLAIN, _SEALED = b"\x01", b"\x02"
_CHECKSUM = struct.Struct(">I")
_LENGTHS = struct.Struct(">II")
MARK_BYTES = 16
OPENING_BYTES = len(_MAGIC) + len(_PLAIN) + MARK_BYTES
SEALED_FOR = "spool"
"""What the data keys of segments are for."""
_HEADERS = "headers"


class Scan(NamedTuple):
    """What a segment holds."""

    entries: list[Entry]
    damage: list[bytes]
    """Every stretch that is no good record, as it was found."""


def opening(mark: bytes, *, sealed: bool = False) -> bytes:
    """What every record of the segment with that mark begins with."""
    return _MAGIC + (_SEALED if sealed else _PLAIN) + mark


def encode_record(entry: Entry) -> bytes:
    """The record without its opening, which only the segment knows."""
    return _framed(entry.identity.encode("utf-8", "surrogatepass"), _encode_entry(entry))


def seal_record(record: bytes, key: FileKey, mark: bytes) -> bytes:
    """What `encode_record` gave, sealed for the segment with that mark. It has no opening either."""
    return _framed(key.header, key.seal(record, of=mark.hex()))


def scan(data: bytes, mark: bytes, keys: FileKeys = NO_KEYS) -> Scan:
    """Whatever the bytes are, each is in a good record or in the damage. KeyMissing if a whole record is sealed
    with a key that is not known: nothing can be said about the segment then.
    """
    found, at = Scan([], []), 0
    while at < len(data):
        record = _read(data, at, mark, keys)
        if record is None:
            end = _next_opening(data, at + 1, mark)
            found.damage.append(data[at:end])
        else:
            entry, end = record
            found.entries.append(entry)
        at = end
    return found


def _next_opening(data: bytes, at: int, mark: bytes) -> int:
    places = (data.find(opening(mark, sealed=sealed), at) for sealed in (False, True))
    return min((place for place in places if place >= 0), default=len(data))


def _read(data: bytes, at: int, mark: bytes, keys: FileKeys) -> tuple[Entry, int] | None:
    """The entry of the record at that place and where the record ends, or None if there is no good one."""
    sealed = data.startswith(opening(mark, sealed=True), at)
    if not sealed and not data.startswith(opening(mark), at):
        return None
    frame = _unframed(data, at + OPENING_BYTES)
    if frame is None:
        return None
    try:
        body = _unsealed(frame, mark, keys) if sealed else frame.second
        return _decode_entry(body), frame.end
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError, SealBroken):
        return None  # whole, but not ours to understand: kept, like any other damage


class _Frame(NamedTuple):
    first: bytes
    second: bytes
    end: int


def _framed(first: bytes, second: bytes) -> bytes:
    content = b"".join((_LENGTHS.pack(len(first), len(second)), first, second))
    return _CHECKSUM.pack(google_crc32c.value(content)) + content


def _unframed(data: bytes, at: int) -> _Frame | None:
    content = at + _CHECKSUM.size
    first = content + _LENGTHS.size
    if first > len(data):
        return None
    first_bytes, second_bytes = _LENGTHS.unpack_from(data, content)
    second = first + first_bytes
    end = second + second_bytes
    (expected,) = _CHECKSUM.unpack_from(data, at)
    if end > len(data) or google_crc32c.value(data[content:end]) != expected:
        return None
    return _Frame(data[first:second], data[second:end], end)


def _unsealed(frame: _Frame, mark: bytes, keys: FileKeys) -> bytes:
    """The body of the plain record that was sealed."""
    record = keys.read(SEALED_FOR, frame.first).open(frame.second, of=mark.hex())
    inner = _unframed(record, 0)
    if inner is None:
        raise ValueError("what was sealed is no record")
    return inner.second


def _encode_entry(entry: Entry) -> bytes:
    # Names with values are what `encode_headers` keeps exactly, text that is not Unicode and integers of any
    # size included. The message's own headers are encoded apart, for their depth is limited.
    bare = msgspec.structs.replace(entry, message=entry.message.with_headers(()))
    fields = msgspec.to_builtins(bare, builtin_types=(bytes, datetime))
    return encode_headers((*fields.items(), (_HEADERS, encode_headers(entry.message.headers))))


def _decode_entry(body: bytes) -> Entry:
    fields = dict(decode_headers(body))
    headers = decode_headers(fields.pop(_HEADERS))
    bare = msgspec.convert(fields, Entry)
    return msgspec.structs.replace(bare, message=bare.message.with_headers(headers))
