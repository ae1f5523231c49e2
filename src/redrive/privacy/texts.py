"""Bodies and texts with their masks.

What is longer than LONGEST is hidden as a whole, unread, so that no message can make a page slow; so are bytes
that are no text. A mask says what was there, never how long it was.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from redrive.privacy.json_masks import is_json, masks_in_json
from redrive.privacy.masks import Mask, applied, masks_in_text

if TYPE_CHECKING:
    from redrive.privacy.field_names import FieldNames
    from redrive.privacy.rules import Places

LONGEST = 1024 * 1024
"""Bytes of one text that are looked through."""

TOO_LONG = "[masked: longer than 1 MiB]"
NOT_TEXT = "[masked: not text]"
NOT_JSON = "[masked: not JSON, and places in it are hidden in this queue]"

_MARKS = frozenset(each.encode() for each in (TOO_LONG, NOT_TEXT, NOT_JSON))
_BOM = b"\xef\xbb\xbf"
_STARTS_JSON = (b"{", b"[", b'"')
_SPACE = b" \t\r\n"
_LOOKED_AT_FOR_A_START = 256
_lenient = json.JSONDecoder(parse_int=str, parse_float=str)


class Texts:
    """`hides`: paths are hidden, so that what they cannot be followed in has to be hidden as a whole."""

    def __init__(self, names: FieldNames, *, hides: bool) -> None:
        self._names = names
        self._hides = hides

    def body(self, body: bytes, places: Places = ()) -> bytes:
        if len(body) > LONGEST:
            return json.dumps(TOO_LONG).encode() if _starts_json(body) else TOO_LONG.encode()
        if not _is_text(body):
            return NOT_TEXT.encode()
        if _is_any_json(body):
            return applied(body, masks_in_json(body, self._names, places))
        if places and self._hides and body.strip(_SPACE) and body not in _MARKS:
            return NOT_JSON.encode()
        return self._broken(body) if _starts_json(body) else applied(body, masks_in_text(body))

    def _broken(self, body: bytes) -> bytes:
        """By its names as far as it can be made out, then as text."""
        shown = applied(body, masks_in_json(body, self._names))
        return applied(shown, masks_in_text(shown))

    def masks(self, body: bytes, places: Places = ()) -> list[Mask]:
        """What `body` masks, but for what it hides as a whole."""
        if not can_be_looked_through(body):
            return []
        return masks_in_json(body, self._names, places) if _is_any_json(body) else masks_in_text(body)

    def text(self, text: str) -> str:
        if len(text) > LONGEST:
            return TOO_LONG
        raw = text.encode("utf-8", "surrogatepass")
        holds_json = raw[:1] in _STARTS_JSON and is_json(raw)
        masks = masks_in_json(raw, self._names) if holds_json else masks_in_text(raw)
        return applied(raw, masks).decode("utf-8", "surrogatepass") if masks else text


def can_be_looked_through(body: bytes) -> bool:
    """What cannot is hidden as a whole."""
    return len(body) <= LONGEST and _is_text(body)


def _is_text(body: bytes) -> bool:
    """Bytes with a NUL among them are something else, such as UTF-16."""
    if b"\0" in body:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _starts_json(body: bytes) -> bool:
    return body[:_LOOKED_AT_FOR_A_START].removeprefix(_BOM).lstrip(_SPACE)[:1] in _STARTS_JSON


def _is_any_json(body: bytes) -> bool:
    """Also what only some readers take: NaN, lone surrogates, a byte order mark."""
    if is_json(body):
        return True
    try:
        _lenient.decode(body.removeprefix(_BOM).decode())
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
