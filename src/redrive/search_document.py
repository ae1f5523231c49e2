"""What of a letter is searched: its message's data as JSON values, its body and its error as words, its headers as
text. Stores index exactly this, so that every database finds the same letters.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from redrive.words import words

if TYPE_CHECKING:
    from collections.abc import Collection

    from redrive.message import Message

MAX_SEARCHED = 1024 * 1024
"""Bytes of a body. Free text is looked for in so much of it; data of more bytes is not looked into."""

MAX_DEPTH = 100
"""Arrays and objects inside each other."""

_LONGEST_NUMBER = 1000
_LARGEST_EXPONENT = 999
_FIRST_UNWRITTEN = 10**_LONGEST_NUMBER
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPES_UNSTORABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_ESCAPE = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_ONE_UNIT = len("u00e7")
_STARTS_JSON = ("{", "[", '"')


def document(message: Message) -> Any:
    """The values that `data.PATH` looks into: of the envelope's `data`, or of a foreign message's body. UNSET if
    that is no JSON, too long, or nests deeper than MAX_DEPTH. Numbers are exact (int or Decimal), and text can be
    stored anywhere: NUL and halves of surrogate pairs are U+FFFD. A number too long or too large for databases is
    its text.
    """
    payload = message.payload
    if payload is None or len(payload) > MAX_SEARCHED:
        return UNSET
    try:
        text = payload.decode("utf-8")
        found = _reader.decode(text)
    except (ValueError, RecursionError):
        return UNSET
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(found):
        return UNSET
    return _storable(found) if _ESCAPES_UNSTORABLE.search(text) else found


def body_words(body: bytes | None) -> list[str]:
    """The words of a body, as far as it is text. What JSON escapes is read as what it stands for."""
    text = (body or b"")[:MAX_SEARCHED].decode("utf-8", "replace")
    if "\\" in text and text.lstrip().startswith(_STARTS_JSON):
        text = _ESCAPE.sub(_unescaped, text)
    return words(text)


def error_words(type_: str, text: str) -> list[str]:
    """The words of what was raised, the type's and then the text's."""
    return words(type_) + words(text)


def header_text(value: Any) -> str | None:
    """A header's value as the text that a filter compares; None for what has none: nothing, bytes that are not
    UTF-8, lists and tables.
    """
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int) and abs(value) >= _FIRST_UNWRITTEN:
        return None  # Python writes no number of any length in decimal
    return str(value) if isinstance(value, str | int | float) else None


def _number(text: str) -> Decimal | int | str:
    if len(text) > _LONGEST_NUMBER:
        return text
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return text
    return number if abs(number.adjusted()) <= _LARGEST_EXPONENT else text


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_reader = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_refuse)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for parent in level for each in _children(parent)]
    return bool(level)


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(each) for key, each in value.items()}
    return value


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if not escape.startswith("u") or len(escape) == 1:  # `\u` without its digits is no JSON
        return _ESCAPED.get(escape, found[0])
    if len(escape) == _ONE_UNIT:
        return chr(int(escape[1:], 16))
    return bytes.fromhex(escape.replace("\\u", "")[1:]).decode("utf-16-be")
