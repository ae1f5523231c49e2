"""The properties of an AMQP message, as the bytes that stand in its content header.

They are kept as they came (G2). `fields` cuts them apart, `join` puts them together again; whoever republishes a
message changes single fields and copies the rest.
"""

from __future__ import annotations

from struct import Struct
from struct import error as _STRUCT_ERROR  # noqa: N812  as a constant: it is only caught
from typing import NamedTuple

CONTENT_TYPE, CONTENT_ENCODING, HEADERS, DELIVERY_MODE = 0x8000, 0x4000, 0x2000, 0x1000
PRIORITY, CORRELATION_ID, REPLY_TO, EXPIRATION = 0x0800, 0x0400, 0x0200, 0x0100
MESSAGE_ID, TIMESTAMP, TYPE, USER_ID, APP_ID, CLUSTER_ID = 0x0080, 0x0040, 0x0020, 0x0010, 0x0008, 0x0004
PERSISTENT = b"\x02"
NOTHING = b"\x00\x00"
"""The properties of a message that has none."""
_ORDER = (
    CONTENT_TYPE, CONTENT_ENCODING, HEADERS, DELIVERY_MODE, PRIORITY, CORRELATION_ID, REPLY_TO, EXPIRATION,
    MESSAGE_ID, TIMESTAMP, TYPE, USER_ID, APP_ID, CLUSTER_ID,
)  # fmt: skip
_SIZES = {DELIVERY_MODE: 1, PRIORITY: 1, TIMESTAMP: 8}
_KNOWN = sum(_ORDER)
_U16, _U32, _U64 = Struct(">H"), Struct(">I"), Struct(">Q")
_MAX_SHORT = 255


class Glance(NamedTuple):
    """The few fields that every delivery is asked for; the rest is stepped over."""

    message_id: bytes | None
    timestamp: int | None
    app_id: bytes | None
    table: bytes | None
    """The headers, with their length in front."""


def glance(raw: bytes) -> Glance:
    """ValueError if these are no properties."""
    try:
        return _glance(raw)
    except (IndexError, _STRUCT_ERROR) as error:
        raise ValueError(f"the properties break off: {error}") from None


def _glance(raw: bytes) -> Glance:  # noqa: C901, PLR0912  one pass over fourteen fields, for every delivery
    flags = raw[0] << 8 | raw[1]
    at = 2
    message_id = timestamp = app_id = table = None
    if flags & CONTENT_TYPE:
        at += 1 + raw[at]
    if flags & CONTENT_ENCODING:
        at += 1 + raw[at]
    if flags & HEADERS:
        stop = at + 4 + _U32.unpack_from(raw, at)[0]
        table, at = raw[at:stop], stop
    if flags & DELIVERY_MODE:
        at += 1
    if flags & PRIORITY:
        at += 1
    if flags & (CORRELATION_ID | REPLY_TO | EXPIRATION):
        for flag in (CORRELATION_ID, REPLY_TO, EXPIRATION):
            if flags & flag:
                at += 1 + raw[at]
    if flags & MESSAGE_ID:
        stop = at + 1 + raw[at]
        message_id, at = raw[at + 1 : stop], stop
    if flags & TIMESTAMP:
        timestamp = _U64.unpack_from(raw, at)[0]
        at += 8
    if flags & (TYPE | USER_ID):
        for flag in (TYPE, USER_ID):
            if flags & flag:
                at += 1 + raw[at]
    if flags & APP_ID:
        stop = at + 1 + raw[at]
        app_id = raw[at + 1 : stop]
    return Glance(message_id, timestamp, app_id, table)


def fields(raw: bytes) -> dict[int, bytes]:
    """Every field that is there, by its flag, with its length in front where it has one. ValueError if these are
    no properties.
    """
    found: dict[int, bytes] = {}
    try:
        flags = _U16.unpack_from(raw)[0]
        if flags & ~_KNOWN:
            raise ValueError("the properties hold fields that AMQP 0-9-1 does not know")
        at = 2
        for flag in _ORDER:
            if flags & flag:
                stop = at + _size(raw, at, flag)
                found[flag], at = raw[at:stop], stop
    except (IndexError, _STRUCT_ERROR) as error:
        raise ValueError(f"the properties break off: {error}") from None
    if at != len(raw):
        raise ValueError("the properties do not end where they say")
    return found


def join(found: dict[int, bytes]) -> bytes:
    """The properties with these fields."""
    parts = [found[flag] for flag in sorted(found, reverse=True)]  # as in _ORDER
    return _U16.pack(sum(found)) + b"".join(parts)


def short(text: bytes) -> bytes | None:
    """A short string's bytes, or None if it is too long to be one."""
    return bytes((len(text),)) + text if len(text) <= _MAX_SHORT else None


def moment(seconds: int) -> bytes:
    return _U64.pack(seconds)


def _size(raw: bytes, at: int, flag: int) -> int:
    if flag == HEADERS:
        return 4 + int(_U32.unpack_from(raw, at)[0])
    return _SIZES.get(flag) or 1 + raw[at]
