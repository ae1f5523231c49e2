"""S3's `error` and `retry_count` inside an enveloped body, exchanged where they stand, all other bytes left alone.

Other consumers of a retry queue expect them there. The texts that stood there travel in the note, so that the
message received again has the body it was sent with (G2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.json_places import places

if TYPE_CHECKING:
    from redrive.message import Message

Control = tuple[bytes, bytes]

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
        found = places(text)
        error, retries = found["error"], found["retry_count"]
    except (ValueError, KeyError, RecursionError):
        return body, None
    old = text[slice(*error)].encode(), text[slice(*retries)].encode()
    if old == wanted:
        return body, None
    for (start, end), new in sorted(zip((error, retries), texts, strict=True), reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode(), old
