"""A text as it is meant, and where each byte of it stands in the text as it is written: JSON's escapes and
percent signs. What is found in the one is masked in the other, and every other byte stays.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import re2

if TYPE_CHECKING:
    from collections.abc import Callable

_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}
_HEX = frozenset(b"0123456789abcdefABCDEF")
_UNIT, _PAIR = len(r"\u0040"), len(r"\ud83d\ude00")
_PERCENT = len("%40")
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_NO_CHARACTER = b"?"
_PART_OF_TEXT = frozenset((*range(0x20, 0x7F), *range(0x80, 0x100)))
_percent = re2.compile(rb"%[2-7][0-9A-Fa-f]")

Escape = tuple[int, bytes]
"""How long it is as written, and what it means."""


class Readable(NamedTuple):
    text: bytes
    starts: list[int]
    """Of pieces in `text`: literal ones and escapes by turns, beginning with a literal one."""
    raws: list[int]
    """Where the same pieces start as written."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """As written; whole escapes."""
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        begin = self.raws[first] + (0 if first & 1 else start - self.starts[first])
        return begin, self.raws[last + 1] if last & 1 else self.raws[last] + end - self.starts[last]


def without_json_escapes(raw: bytes) -> Readable:
    """Total: what is no escape means itself."""
    return _read(raw, b"\\", _json_escape)


def without_percent_signs(raw: bytes) -> Readable:
    """Control characters stay as they are written: they are no part of what is looked for."""
    return _read(raw, b"%", _percent_escape)


def has_percent_signs(raw: bytes) -> bool:
    return b"%" in raw and _percent.search(raw) is not None


def _read(raw: bytes, mark: bytes, escape_at: Callable[[bytes, int], Escape | None]) -> Readable:
    parts, starts, raws = list[bytes](), [0], [0]
    size = at = 0
    place = raw.find(mark)
    while place >= 0:
        found = escape_at(raw, place)
        if found is None:
            place = raw.find(mark, place + 1)
            continue
        length, meant = found
        parts += (raw[at:place], meant)
        starts += (size + place - at, size + place - at + len(meant))
        size, at = starts[-1], place + length
        raws += (place, at)
        place = raw.find(mark, at)
    return Readable(b"".join((*parts, raw[at:])), starts, raws)


def _json_escape(raw: bytes, at: int) -> Escape | None:
    sign = raw[at + 1 : at + 2]
    if sign != b"u":
        return (2, _ESCAPED.get(sign, sign)) if sign else None
    unit = _hex(raw[at + 2 : at + _UNIT], 4)
    if unit is None:
        return None
    low = _hex(raw[at + _UNIT + 2 : at + _PAIR], 4) if raw[at + _UNIT : at + _UNIT + 2] == b"\\u" else None
    if unit in _HIGH and low is not None and low in _LOW:
        return _PAIR, chr(0x10000 + ((unit - _HIGH.start) << 10) + low - _LOW.start).encode()
    return _UNIT, _NO_CHARACTER if unit in _HIGH or unit in _LOW else chr(unit).encode()


def _percent_escape(raw: bytes, at: int) -> Escape | None:
    value = _hex(raw[at + 1 : at + _PERCENT], 2)
    return None if value is None or value not in _PART_OF_TEXT else (_PERCENT, bytes((value,)))


def _hex(digits: bytes, length: int) -> int | None:
    return int(digits, 16) if len(digits) == length and _HEX.issuperset(digits) else None
