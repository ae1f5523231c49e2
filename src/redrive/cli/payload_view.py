"""A payload for a person's eyes: JSON in lines, text as it is, anything else as hexadecimal. Bounded (TH4)."""

from __future__ import annotations

import msgspec

from redrive.cli.escaping import escape_block, escape_json

JSON_BUDGET = 256 * 1024
TEXT_BUDGET = 64 * 1024
HEX_BUDGET = 4 * 1024
MAX_DEPTH = 64
_PER_LINE = 16
_QUOTE, _BACKSLASH = b'"\\'
_OPENING, _CLOSING = b"[{", b"]}"


def payload_view(payload: bytes | None) -> str:
    """Harmless on a terminal. What is too long is cut, and the last line says so."""
    if payload is None:
        return "(no body)"
    if not payload:
        return "(empty)"
    pretty = pretty_json(payload)
    if pretty is not None:
        return escape_json(pretty)
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return _hex_dump(payload)
    return (
        _hex_dump(payload) if "\x00" in text else _cut(escape_block(text[:TEXT_BUDGET]), len(text) - TEXT_BUDGET)
    )


def pretty_json(payload: bytes) -> str | None:
    """JSON in lines, each number and text written as it was; None if it is not JSON, too long or too deep."""
    if len(payload) > JSON_BUDGET or _too_deep(payload):
        return None
    try:
        return msgspec.json.format(payload, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _too_deep(payload: bytes) -> bool:
    """A bomb of brackets would be indented into gigabytes. One pass, whatever the payload is: a pattern for texts
    would begin anew at every quote of one that never ends.
    """
    depth, in_text, rest = 0, False, iter(payload)
    for byte in rest:
        if byte == _QUOTE:
            in_text = not in_text
        elif in_text:
            if byte == _BACKSLASH:
                next(rest, None)
        elif byte in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif byte in _CLOSING:
            depth -= 1
    return False


def _hex_dump(payload: bytes) -> str:
    lines = [_hex_line(payload, at) for at in range(0, min(len(payload), HEX_BUDGET), _PER_LINE)]
    return _cut("\n".join(lines), len(payload) - HEX_BUDGET)


def _hex_line(payload: bytes, at: int) -> str:
    part = payload[at : at + _PER_LINE]
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)  # noqa: PLR2004  printable ASCII
    return f"{at:08x}  {part.hex(' '):<{3 * _PER_LINE}} |{shown}|"


def _cut(text: str, more: int) -> str:
    return f"{text}\n... {more} more: `redrive show ID --payload` writes all of it" if more > 0 else text
