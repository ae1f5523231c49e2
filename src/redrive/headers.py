"""Headers as bytes: order, repeats and types kept (G2).

MessagePack tells text from bytes, integers from floats, and nothing from empty. What it cannot say (integers
beyond 64 bits, text that is not valid Unicode) goes into extension types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.message import Headers

_TEXT, _BIG_INTEGER, _TABLE = 1, 2, 3
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_PLAIN_OF: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
)
"""What a value of a subtype (an enum's member, a library's number) is without its subtype."""
_MAX_DEPTH = 64


def encode_headers(headers: Headers) -> bytes:
    """The headers in one value. TypeError names a header whose value no broker could carry."""
    if not headers:
        return b""
    pairs = [[name, _checked(name, value)] for name, value in headers]
    try:
        return msgspec.msgpack.encode(pairs)
    except (UnicodeEncodeError, OverflowError):
        return msgspec.msgpack.encode(_wrap(pairs))


def decode_headers(stored: bytes) -> Headers:
    """What `encode_headers` was given. ValueError for bytes that it did not make."""
    if not stored:
        return ()
    try:
        return tuple(_decoder.decode(stored))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"the stored headers cannot be read: {error}") from error


def header(headers: Headers, name: str) -> Any:
    """The last value under that name, or None."""
    for known, value in reversed(headers):
        if known == name:
            return value
    return None


def _checked(name: str, value: Any, depth: int = 0) -> Any:
    if type(value) in _PLAIN:
        return value
    for plain, of in _PLAIN_OF:
        if isinstance(value, plain):
            return of(value)
    if depth >= _MAX_DEPTH:
        raise TypeError(f"header {name!r} nests deeper than {_MAX_DEPTH} levels")
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, list | tuple):
        return [_checked(name, item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_checked_key(name, key): _checked(name, item, depth + 1) for key, item in value.items()}
    raise TypeError(
        f"header {name!r} holds a {type(value).__name__}: use text, bytes, a number, a boolean, a date, "
        "None, or lists and dicts of those"
    )


def _checked_key(name: str, key: Any) -> Any:
    if isinstance(key, str | int | float | bytes | None):
        return _checked(name, key)
    raise TypeError(f"header {name!r} has a {type(key).__name__} as a key: use text, bytes, a number or None")


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
        # In hexadecimal: Python refuses to read or write more than 4,300 decimal digits.
        return msgspec.msgpack.Ext(_BIG_INTEGER, f"{value:x}".encode())
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    if isinstance(value, dict):
        # As pairs: a key that had to go into an extension type could not be a key.
        pairs = [[_wrap(key), _wrap(item)] for key, item in value.items()]
        return msgspec.msgpack.Ext(_TABLE, msgspec.msgpack.encode(pairs))
    return value


def _unwrap(code: int, data: memoryview) -> Any:
    if code == _TEXT:
        return bytes(data).decode("utf-8", "surrogatepass")
    if code == _BIG_INTEGER:
        return int(bytes(data), 16)
    if code == _TABLE:
        return dict(msgspec.msgpack.decode(bytes(data), ext_hook=_unwrap))
    raise ValueError(f"unknown header type {code}")


_decoder = msgspec.msgpack.Decoder(list[tuple[Any, Any]], ext_hook=_unwrap)
