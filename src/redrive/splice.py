"""New `data` in an envelope of ours, every other byte left as it was (G2).

The place of `data` is found in the text (`json_places`), and only that stretch is exchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.errors import Refused
from redrive.json_places import places

if TYPE_CHECKING:
    from redrive.message import Message


def with_payload(message: Message, payload: bytes) -> Message:
    """The message with new bytes for its handler: the envelope's `data`, or a foreign message's whole body. What
    is white around `data`, such as the end of a file's last line, is not part of it.
    """
    if message.envelope is None:
        return msgspec.structs.replace(message, body=payload)
    return with_data(message, payload.strip(b" \t\r\n"))


def with_data(message: Message, data: bytes) -> Message:
    """The enveloped message with `data` (valid JSON) in place of its own. Refused if its place cannot be told."""
    body = message.body or b""
    try:
        start, end = places(body.decode())["data"]
    except (ValueError, KeyError, RecursionError):
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
