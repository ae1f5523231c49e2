"""New `data` in an envelope of ours, every other byte left as it was (G2).

Decoding and encoding again would rewrite what nobody touched: spacing, key order, `1.10`, escapes. So the
place of `data` is found in the text, and only that stretch is exchanged.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from redrive.errors import Refused

if TYPE_CHECKING:
    from redrive.message import Message

# Numbers are only stepped over: as text they have no limit of digits and lose nothing.
_stepping = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_SPACE = " \t\n\r"


def with_payload(message: Message, payload: bytes) -> Message:
    """The message with new bytes for its handler: the envelope's `data`, or a foreign message's whole body."""
    if message.envelope is None:
        return msgspec.structs.replace(message, body=payload)
    return with_data(message, payload)


def with_data(message: Message, data: bytes) -> Message:
    """The enveloped message with `data` (valid JSON) in place of its own. Refused if its place cannot be told."""
    body = message.body or b""
    try:
        start, end = _place_of_data(body.decode())
    except (ValueError, RecursionError):
        raise _no_place() from None
    text = body.decode()
    changed = text[:start].encode() + data + text[end:].encode()
    result = msgspec.structs.replace(message, body=changed)
    if not _differ_in_data_only(message, result, data):
        raise _no_place()
    return result


def _no_place() -> Refused:
    return Refused(
        "cannot tell where the envelope's data begins and ends",
        remedy="edit the whole body instead: redrive edit --body",
    )


def _place_of_data(text: str) -> tuple[int, int]:
    place: tuple[int, int] | None = None
    at = _skip(text, _skip(text, 0) + 1)  # behind the opening brace
    while text[at : at + 1] == '"':
        key, at = _stepping.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)  # behind the colon
        _, end = _stepping.raw_decode(text, start)
        if key == "data":
            place = start, end  # a key that comes twice: the last one counts, as in the reader
        at = _skip(text, _skip(text, end) + 1)  # behind the comma
    if place is None:
        raise ValueError("no data")
    return place


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _SPACE and at < len(text):
        at += 1
    return at


def _differ_in_data_only(before: Message, after: Message, data: bytes) -> bool:
    old, new = before.envelope, after.envelope
    if old is None or new is None or bytes(new.data) != data:
        return False
    return _rest(old) == _rest(new)


def _rest(envelope: msgspec.Struct) -> list[object]:
    values = msgspec.structs.asdict(envelope)
    return [
        bytes(value) if isinstance(value, msgspec.Raw) else value
        for name, value in values.items()
        if name != "data"
    ]
