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

Where a record is damaged, reading goes on at the next opening (magic, version, mark). The mark is what makes that
safe: a producer can put a whole record into a message, but cannot know the mark of the segment it will be in.
A record of another version has no opening that we know, so it is kept as damage and never guessed at.
"""

from __future__ import annotations

import struct
from datetime import datetime
from typing import NamedTuple

import google_crc32c
import msgspec

from redrive.dead_letter import Entry
from redrive.headers import decode_headers, encode_headers

_MAGIC = b"\xd7RSP"
_VERSION = b"\x01"
_CHECKSUM = struct.Struct(">I")
_LENGTHS = struct.Struct(">II")
MARK_BYTES = 16
OPENING_BYTES = len(_MAGIC) + len(_VERSION) + MARK_BYTES
_HEADERS = "headers"


class Scan(NamedTuple):
    """What a segment holds."""

    entries: list[Entry]
    damage: list[bytes]
    """Every stretch that is no good record, as it was found."""


def opening(mark: bytes) -> bytes:
    """What every record of the segment with that mark begins with."""
    return _MAGIC + _VERSION + mark


def encode_record(entry: Entry) -> bytes:
    """The record without its opening, which only the segment knows."""
    identity = entry.identity.encode("utf-8", "surrogatepass")
    body = _encode_entry(entry)
    content = b"".join((_LENGTHS.pack(len(identity), len(body)), identity, body))
    return _CHECKSUM.pack(google_crc32c.value(content)) + content


def scan(data: bytes, mark: bytes) -> Scan:
    """Total: whatever the bytes are, each is in a good record or in the damage."""
    start, found, at = opening(mark), Scan([], []), 0
    while at < len(data):
        record = _read(data, at, start)
        if record is None:
            following = data.find(start, at + 1)
            end = len(data) if following < 0 else following
            found.damage.append(data[at:end])
        else:
            entry, end = record
            found.entries.append(entry)
        at = end
    return found


def _read(data: bytes, at: int, start: bytes) -> tuple[Entry, int] | None:
    """The entry of the record at that place and where the record ends, or None if there is no good one."""
    content = at + len(start) + _CHECKSUM.size
    identity = content + _LENGTHS.size
    if not data.startswith(start, at) or identity > len(data):
        return None
    identity_bytes, body_bytes = _LENGTHS.unpack_from(data, content)
    body = identity + identity_bytes
    end = body + body_bytes
    (expected,) = _CHECKSUM.unpack_from(data, content - _CHECKSUM.size)
    if end > len(data) or google_crc32c.value(data[content:end]) != expected:
        return None
    try:
        return _decode_entry(data[body:end]), end
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError):
        return None  # whole, but not ours to understand: kept, like any other damage


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
