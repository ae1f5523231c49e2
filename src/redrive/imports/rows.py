"""Rows of a stream: objects on lines of their own, objects of one JSON array, or CSV with a header.

Memory holds one row, of at most LONGEST_ROW bytes. A row that cannot be read is told, and the rest goes on where
its beginning can be found: always for lines, never inside an array.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from redrive.imports.found import Bad, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.imports.opening import Opened

LONGEST_ROW = 64 * 1024 * 1024
_READ_AT_ONCE = 1024 * 1024
_DAMAGED = (OSError, EOFError, zlib.error)
_WHITE = re.compile(r"[ \t\r\n]*")


class Row(NamedTuple):
    line: int
    values: dict[str, Any]
    raw: bytes
    """As it stands in the file, as far as that can be told."""


class _Cut(Exception):
    """Nothing more can be read."""


def rows_of(source: Opened) -> Iterator[Row | Bad]:
    if b"\x00" in source.head.partition(b"\n")[0]:
        return iter([Bad(1, "it is neither JSON nor CSV")])
    if source.head.startswith(b"["):
        return _of_array(source.stream)
    return _of_lines(source.stream) if source.head.startswith(b"{") else _of_csv(source.stream)


def _of_lines(stream: BinaryIO) -> Iterator[Row | Bad]:
    for number, line in _lines(stream):
        if isinstance(line, Bad):
            yield line
        elif line.strip():
            yield _object(number, line)


def _object(number: int, line: bytes) -> Row | Bad:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Bad(number, f"it is not JSON: {_why(error)}")
    if not isinstance(found, dict):
        return Bad(number, f"an object is wanted, not {_kind(found)}")
    return Row(number, found, line.strip())


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | Bad]]:
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(LONGEST_ROW + 1)
            too_long = len(line) > LONGEST_ROW
            while len(line) > LONGEST_ROW:
                line = stream.readline(LONGEST_ROW + 1)  # to its end, unread
        except _DAMAGED as error:
            yield number, refusal(number, ValueError(f"the file is damaged or cut off: {error}"))
            return
        if too_long:
            yield number, Bad(number, f"the line is longer than {LONGEST_ROW} bytes")
        elif line:
            yield number, line
        else:
            return


def _of_csv(stream: BinaryIO) -> Iterator[Row | Bad]:
    csv.field_size_limit(LONGEST_ROW)
    ends: list[Bad] = []

    def texts() -> Iterator[str]:
        for _, line in _lines(stream):
            if isinstance(line, Bad):
                ends.append(line)
                return
            # Bytes that are no UTF-8 come back as they were when the text is encoded again.
            yield line.decode("utf-8", "surrogateescape")

    table = csv.reader(texts(), strict=True)
    header: list[str] | None = None
    while True:
        try:
            cells = next(table, None)
        except csv.Error as error:
            yield Bad(table.line_num, f"it is not CSV: {error}")
            continue
        if cells is None:
            break
        if header is None:
            header = [cell.strip() for cell in cells]
        elif cells:
            yield _record(table.line_num, header, cells)
    yield from ends


def _record(number: int, header: list[str], cells: list[str]) -> Row | Bad:
    if len(cells) != len(header):
        return Bad(number, f"it has {len(cells)} cells, and the header {len(header)}")
    values = dict(zip(header, cells, strict=True))
    return Row(number, values, "\x1f".join(cells).encode("utf-8", "surrogateescape"))


def _of_array(stream: BinaryIO) -> Iterator[Row | Bad]:
    text = _Text(stream)
    try:
        text.skip("[")
        while not text.at("]"):
            line = text.line
            found, raw = text.value()
            known = isinstance(found, dict)
            yield Row(line, found, raw) if known else Bad(line, f"an object is wanted, not {_kind(found)}")
            if not text.at("]"):
                text.skip(",")
    except _Cut as cut_off:
        yield Bad(text.line, str(cut_off))


class _Text:
    """The text of a stream, of which so much is in memory as the next value needs."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._reader = json.JSONDecoder()
        self._text = ""
        self._position = 0
        self.line = 1

    def at(self, sign: str) -> bool:
        """Whether the next sign that is not white space is this one."""
        while True:
            found = _WHITE.match(self._text, self._position)
            self._go(self._position if found is None else found.end())
            if self._position < len(self._text) or not self._more(_READ_AT_ONCE):
                return self._text.startswith(sign, self._position)

    def skip(self, sign: str) -> None:
        if not self.at(sign):
            ended = self._position == len(self._text)
            raise _Cut("the array is cut off here" if ended else f"{sign!r} is missing here")
        self._go(self._position + 1)

    def value(self) -> tuple[Any, bytes]:
        """The value that comes next, and how it is written."""
        if self._position > _READ_AT_ONCE:
            self._text, self._position = self._text[self._position :], 0
        wanted = _READ_AT_ONCE
        while True:
            try:
                found, end = self._reader.raw_decode(self._text, self._position)
            except (ValueError, RecursionError) as error:
                hopeless = isinstance(error, RecursionError) or len(self._text) > 2 * LONGEST_ROW
                if hopeless or not self._more(wanted):
                    ended = self._position == len(self._text)
                    why = "the array is cut off here" if ended else f"it is not JSON: {_why(error)}"
                    raise _Cut(f"{why}; nothing behind it was read") from None
                wanted *= 2
                continue
            raw = self._text[self._position : end].encode("utf-8", "surrogatepass")
            self._go(end)
            return found, raw

    def _go(self, position: int) -> None:
        self.line += self._text.count("\n", self._position, position)
        self._position = position

    def _more(self, size: int) -> bool:
        try:
            part = self._stream.read(size)
            self._text += self._decoder.decode(part, final=not part)
        except (*_DAMAGED, UnicodeDecodeError) as error:
            raise _Cut(f"the file is damaged or cut off: {_why(error)}") from None
        return bool(part)


def _why(error: Exception) -> str:
    """Why, without a word of the file: it may hold what nobody should read."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8: {error.reason}"
    if isinstance(error, RecursionError):
        return "it nests too deep"
    return "a number is too long" if isinstance(error, ValueError) else str(error)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
