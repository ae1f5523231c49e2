"""What is masked in a text: where, as what, and what stood there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive.privacy.detectors import KINDS, MASKED, find, may_hold
from redrive.privacy.escapes import has_percent_signs, without_json_escapes, without_percent_signs

if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN = f"[{MASKED}]".encode()
_WRITTEN = tuple(f"[{kind}]" for kind in KINDS)
_ESCAPED_ASCII = b"\\u00"
_MOST_ESCAPED = 3
"""Times that one text is escaped: JSON in a string of JSON, quoted in an error's text."""
_UUID = 36
_HYPHENS = slice(8, 24, 5)


class Mask(NamedTuple):
    start: int
    end: int
    written: bytes
    """What stands there instead."""
    kind: str
    value: bytes
    """What was there, without escapes."""


def holds_mask(text: str) -> bool:
    """Whether something in it is masked, or reads as if it was: then it is not what stood there."""
    return "[" in text and any(each in text for each in _WRITTEN)


def applied(text: bytes, masks: Sequence[Mask]) -> bytes:
    """Every other byte as it was."""
    parts, at = list[bytes](), 0
    for mask in masks:
        parts += (text[at : mask.start], mask.written)
        at = mask.end
    return b"".join((*parts, text[at:])) if parts else text


def masks_in_text(text: bytes) -> list[Mask]:
    """From left to right. What hides so much that the rest reads as something else is hidden as a whole."""
    if not may_hold(text):
        return []
    masks = _found(text, escaped=_ESCAPED_ASCII in text)
    return _whole_if_doubtful(text, masks, escaped=_ESCAPED_ASCII in text) if masks else masks


def masks_in_json_string(raw: bytes) -> list[Mask]:
    """Of the text between its quotes, as it is written."""
    if len(raw) == _UUID and _is_uuid(raw):
        return []
    masks = _found(raw, escaped=b"\\" in raw)
    return _whole_if_doubtful(raw, masks, escaped=b"\\" in raw) if masks else masks


def _is_uuid(raw: bytes) -> bool:
    """They are in most messages, full of digits, and nobody's."""
    return raw[_HYPHENS] == b"----" and not raw.translate(None, b"0123456789abcdefABCDEF-")


def _found(raw: bytes, *, escaped: bool) -> list[Mask]:
    readers = []
    text = raw
    for _ in range(_MOST_ESCAPED if escaped else 0):
        readers.append(without_json_escapes(text))
        text = readers[-1].text
        if _ESCAPED_ASCII not in text:
            break
    if has_percent_signs(text):
        readers.append(without_percent_signs(text))
        text = readers[-1].text
    masks = []
    for start, end, kind in find(text):
        first, last = start, end
        for reader in reversed(readers):
            first, last = reader.span(first, last)
        masks.append(Mask(first, last, f"[{kind}]".encode(), kind, text[start:end]))
    return masks


def _whole_if_doubtful(raw: bytes, masks: list[Mask], *, escaped: bool) -> list[Mask]:
    """So that masking twice is masking once."""
    left = applied(raw, masks)
    if may_hold(left) and _found(left, escaped=escaped):
        return [Mask(0, len(raw), HIDDEN, MASKED, raw)]
    return masks
