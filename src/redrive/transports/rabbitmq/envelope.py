"""S3's `error` and `retry_count` inside an enveloped body, exchanged where they stand, all other bytes left alone.

Other consumers of a retry queue expect them there. The texts that stood there travel in the note, so that the
message received again has the body it was sent with (G2).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from redrive.message import Message

Control = tuple[bytes, bytes]

_stepping = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_SPACE = " \t\n\r"
_encoder = msgspec.json.Encoder()


def write_control(message: Message) -> tuple[bytes, Control | None]:
    """The body with the message's current error and retry count, and the texts they replace; None if they stand
    there already, or if their place cannot be told.
    """
    body = message.body or b""
    wanted = _encoder.encode(message.error), _encoder.encode(message.retry_count)
    return _exchange(body, wanted)


def restore_control(body: bytes, control: Control | None) -> bytes:
    return body if control is None else _exchange(body, control)[0]


def _exchange(body: bytes, wanted: Control) -> tuple[bytes, Control | None]:
    try:
        text, texts = body.decode(), [new.decode() for new in wanted]
        places = _places(text)
        error, retries = places["error"], places["retry_count"]
    except (ValueError, KeyError, RecursionError):
        return body, None
    old = text[slice(*error)].encode(), text[slice(*retries)].encode()
    if old == wanted:
        return body, None
    for (start, end), new in sorted(zip((error, retries), texts, strict=True), reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode(), old


def _places(text: str) -> dict[str, tuple[int, int]]:
    """Where the value of each name of the outermost object stands; of a name that comes twice, the last counts."""
    found: dict[str, tuple[int, int]] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at : at + 1] == '"':
        name, at = _stepping.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _stepping.raw_decode(text, start)
        found[name] = start, end
        at = _skip(text, _skip(text, end) + 1)
    return found


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _SPACE and at < len(text):
        at += 1
    return at
