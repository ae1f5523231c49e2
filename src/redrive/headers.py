"""Headers as bytes: order, repeats and types kept (G2).

MessagePack tells text from bytes, integers from floats, and nothing from empty. What it cannot say (integers
beyond 64 bits, text that is not valid Unicode) goes into extension types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from redrive.message import Headers

_TEXT, _BIG_INTEGER = 1, 2
_PLAIN = (type(None), bool, int, float, str, bytes)
_MAX_DEPTH = 64


def encode_headers(headers: Headers) -> bytes:
    """The headers in one value. TypeError names a header whose value no broker could carry."""
    if not headers:
        return b""
    try:
        return msgspec.msgpack.encode([[name, _checked(name, value)] for name, value in headers])
    except (UnicodeEncodeError, OverflowError):
        return msgspec.msgpack.encode([[_wrap(name), _wrap(value)] for name, value in headers])


def decode_headers(stored: bytes) -> Headers:
    if not stored:
        return ()
    pairs = msgspec.msgpack.decode(stored, ext_hook=_unwrap)
    return tuple((name, value) for name, value in pairs)


def header(headers: Headers, name: str) -> Any:
    """The last value under that name, or None."""
    for known, value in reversed(headers):
        if known == name:
            return value
    return None


def _checked(name: str, value: Any, depth: int = 0) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if depth >= _MAX_DEPTH:
        raise TypeError(f"header {name!r} nests deeper than {_MAX_DEPTH} levels")
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, list | tuple):
        return [_checked(name, item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _checked(name, item, depth + 1) for key, item in value.items()}
    raise TypeError(
        f"header {name!r} holds a {type(value).__name__}: use text, bytes, a number, a boolean, a date, "
        "None, or lists and dicts of those"
    )


def _wrap(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return msgspec.msgpack.Ext(_TEXT, value.encode("utf-8", "surrogatepass"))
        return value
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(_BIG_INTEGER, str(value).encode())
    if isinstance(value, list | tuple):
        return [_wrap(item) for item in value]
    if isinstance(value, dict):
        return {_wrap(key): _wrap(item) for key, item in value.items()}
    return value


def _unwrap(code: int, data: memoryview) -> Any:
    if code == _TEXT:
        return bytes(data).decode("utf-8", "surrogatepass")
    if code == _BIG_INTEGER:
        return int(bytes(data))
    raise ValueError(f"unknown header type {code}")
