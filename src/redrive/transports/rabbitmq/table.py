"""AMQP field tables: read into Python values, written from them, and cut apart without changing a byte.

Reading is a view: several wire types become one Python type, and text that is not UTF-8 becomes bytes. What has to
stay exact (G2) is never read and written again; it is cut out and copied (`entries`).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from struct import Struct
from struct import error as _STRUCT_ERROR  # noqa: N812  as a constant: it is only caught
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_NAME = 255
_MAX_DEPTH = 64
_U8, _I8, _U16, _I16 = Struct(">B"), Struct(">b"), Struct(">H"), Struct(">h")
_U32, _I32, _U64, _I64 = Struct(">I"), Struct(">i"), Struct(">Q"), Struct(">q")
_F32, _F64, _DECIMAL = Struct(">f"), Struct(">d"), Struct(">BI")


class Inexact(ValueError):
    """AMQP has no way to say this value so that it reads back as itself."""


class Entry(NamedTuple):
    """One field of a table as it stands there."""

    name: bytes
    value: bytes
    """With its type octet."""

    @property
    def raw(self) -> bytes:
        return _U8.pack(len(self.name)) + self.name + self.value


def entries(table: bytes) -> list[Entry]:
    """The fields of a table (with its length in front), in their order, repeats included. ValueError: no table."""
    try:
        at, end = 4, 4 + _U32.unpack_from(table)[0]
        found = []
        while at < end:
            name, at = _name(table, at)
            stop = _skip(table, at, 0)
            found.append(Entry(name, table[at:stop]))
            at = stop
    except (_STRUCT_ERROR, IndexError) as error:
        raise ValueError(f"a field table breaks off: {error}") from None
    if at != end or end != len(table):
        raise ValueError("a field table does not end where it says")
    return found


def joined(fields: Iterable[Entry]) -> bytes:
    """A table of these fields, with its length in front."""
    inner = b"".join([field.raw for field in fields])
    return _U32.pack(len(inner)) + inner


def value_of(raw: bytes) -> Any:
    """The Python value of one field's bytes. ValueError if they are none."""
    try:
        value, end = _read(raw, 0, 0)
    except (_STRUCT_ERROR, IndexError) as error:
        raise ValueError(f"a field breaks off: {error}") from None
    if end != len(raw):
        raise ValueError("a field is longer than its value")
    return value


def text_of(raw: bytes) -> str:
    """A name as text, whatever its bytes; `name_of` gives the same bytes again."""
    return raw.decode("utf-8", "surrogateescape")


@lru_cache(maxsize=1024)
def name_of(text: str) -> bytes:
    """A name's bytes. Inexact if it has no place in a table."""
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Inexact(f"{text!r} is no name for a header") from None
    if len(raw) > MAX_NAME or text_of(raw) != text:
        raise Inexact(f"{text[:MAX_NAME]!r} is too long for the name of a header")
    return raw


def write(value: Any) -> bytes:
    """A value with its type octet, so that `value_of` gives it back. Inexact if AMQP cannot say it; TypeError if
    no broker could.
    """
    return b"S" + _long(_utf8(value)) if type(value) is str else _write(value, 0)  # as most are


def _write(value: Any, depth: int) -> bytes:  # noqa: C901  a line for each type
    if depth > _MAX_DEPTH:
        raise TypeError(f"a header nests deeper than {_MAX_DEPTH} levels")
    if value is None:
        return b"V"
    if isinstance(value, bool):
        return b"t\x01" if value else b"t\x00"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, str):
        return b"S" + _long(_utf8(value))
    if isinstance(value, bytes):
        return b"x" + _long(value)
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, list | tuple):
        return b"A" + _long(b"".join(_write(item, depth + 1) for item in value))
    if isinstance(value, dict):
        return b"F" + joined(Entry(_key(name), _write(item, depth + 1)) for name, item in value.items())
    raise TypeError(
        f"a header holds a {type(value).__name__}: use text, bytes, a number, a boolean, a date, None, or lists "
        "and dicts of those"
    )


def _integer(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"I" + _I32.pack(value)
    if -(2**63) <= value < 2**63:
        return b"l" + _I64.pack(value)
    raise Inexact("an integer beyond 64 bits")


def _double(value: float) -> bytes:
    if not math.isfinite(value):
        raise Inexact("a number that is not finite")  # RabbitMQ closes the whole connection for it
    return b"d" + _F64.pack(value)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Inexact("text that is not Unicode") from None


def _timestamp(moment: datetime) -> bytes:
    if moment.tzinfo is None or moment.microsecond or moment.utcoffset() or moment.year < 1970:  # noqa: PLR2004  1970 is where AMQP begins
        raise Inexact("a moment that is not a whole second of UTC")
    return b"T" + _U64.pack(int(moment.timestamp()))


def _key(name: Any) -> bytes:
    if not isinstance(name, str):
        raise Inexact("a table with a name that is no text")
    return name_of(name)


def _long(raw: bytes) -> bytes:
    return _U32.pack(len(raw)) + raw


def _name(data: bytes, at: int) -> tuple[bytes, int]:
    stop = at + 1 + data[at]
    if stop > len(data):
        raise IndexError("a name")
    return data[at + 1 : stop], stop


_FIXED: dict[int, int] = {
    **dict.fromkeys(b"tbB", 1), **dict.fromkeys(b"sUu", 2), **dict.fromkeys(b"Iif", 4),
    **dict.fromkeys(b"lLdT", 8), **dict.fromkeys(b"V\x00", 0), ord("D"): 5,
}  # fmt: skip
_SIZED = frozenset(b"SxAF")


def _skip(data: bytes, at: int, _depth: int) -> int:
    """Where the value that begins at `at` ends."""
    kind = data[at]
    if kind in _SIZED:
        stop = at + 5 + int(_U32.unpack_from(data, at + 1)[0])
    elif (size := _FIXED.get(kind)) is not None:
        stop = at + 1 + size
    else:
        raise ValueError(f"unknown field type {kind:#04x}")
    if stop > len(data):
        raise IndexError("a value")
    return stop


def _moment(seconds: int) -> Any:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return seconds  # milliseconds, or nonsense: shown as the number it is


def _decimal(places: int, digits: int) -> float:
    return digits / math.pow(10, places)


_NUMBERS: dict[int, Callable[[bytes, int], Any]] = {
    ord("t"): lambda data, at: data[at] != 0,
    ord("b"): lambda data, at: _I8.unpack_from(data, at)[0],
    ord("B"): lambda data, at: data[at],
    ord("s"): lambda data, at: _I16.unpack_from(data, at)[0],
    ord("U"): lambda data, at: _I16.unpack_from(data, at)[0],
    ord("u"): lambda data, at: _U16.unpack_from(data, at)[0],
    ord("I"): lambda data, at: _I32.unpack_from(data, at)[0],
    ord("i"): lambda data, at: _U32.unpack_from(data, at)[0],
    ord("l"): lambda data, at: _I64.unpack_from(data, at)[0],
    ord("L"): lambda data, at: _I64.unpack_from(data, at)[0],
    ord("f"): lambda data, at: _F32.unpack_from(data, at)[0],
    ord("d"): lambda data, at: _F64.unpack_from(data, at)[0],
    ord("D"): lambda data, at: _decimal(*_DECIMAL.unpack_from(data, at)),
    ord("T"): lambda data, at: _moment(_U64.unpack_from(data, at)[0]),
    ord("V"): lambda _data, _at: None,
    0: lambda _data, _at: None,
}


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    stop = _skip(data, at, depth)
    kind = data[at]
    if kind not in _SIZED:
        return _NUMBERS[kind](data, at + 1), stop
    inner = data[at + 5 : stop]
    if kind == ord("S"):
        return _text_or_bytes(inner), stop
    if kind == ord("x"):
        return inner, stop
    if depth >= _MAX_DEPTH:
        return inner, stop  # too deep to be looked at; the bytes are kept all the same
    return (_list(inner, depth) if kind == ord("A") else _dict(inner, depth)), stop


def _text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _list(data: bytes, depth: int) -> list[Any]:
    found, at = [], 0
    while at < len(data):
        value, at = _read(data, at, depth + 1)
        found.append(value)
    return found


def _dict(data: bytes, depth: int) -> dict[str, Any]:
    found, at = {}, 0
    while at < len(data):
        name, at = _name(data, at)
        found[text_of(name)], at = _read(data, at, depth + 1)
    return found
