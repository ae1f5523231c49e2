"""What a message needs to go into a FIFO queue: its group, and an id by which SQS knows a repetition of it."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from redrive.clock import new_id
from redrive.control import REDRIVE_ID
from redrive.headers import header
from redrive.sqs_origin import origin_of

if TYPE_CHECKING:
    from redrive.message import Message

ENDING = ".fifo"
"""Of a FIFO queue's name, and of no other."""
NO_KEY = "redrive:no-key"
"""The one group of all messages without a key: whoever has a FIFO queue wants an order."""
_OURS = "redrive:"
_HASHED = f"{_OURS}sha256:"
_WRITABLE = re.compile(r"[!-~]{1,128}")
"""As SQS has it: letters, digits and punctuation."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_fifo(queue: str) -> bool:
    return queue.endswith(ENDING)


def group_of(message: Message) -> str:
    """The same for the same key, and for no other. Of somebody else's message the one that it came with."""
    origin = origin_of(message)
    first = None if origin is None or origin.ours else origin.system.get("MessageGroupId")
    if first is not None and key_of(first) == message.key:
        return first
    if message.key is None:
        return NO_KEY
    text = message.key.decode("ascii", "replace")
    if _WRITABLE.fullmatch(text) and not text.startswith(_OURS):
        return text
    return _HASHED + hashlib.sha256(message.key).hexdigest()


def key_of(group: str) -> bytes | None:
    """What the group of a message without a note tells of its key."""
    return None if group == NO_KEY else group.encode()


def deduplication_of(message: Message) -> str:
    """The same for each repetition of one redrive, which SQS takes once in five minutes; else one of its own. What
    it is of is in it too: whoever copies our headers to another message must not lose that one.
    """
    redrive_id = header(message.headers, REDRIVE_ID)
    if not isinstance(redrive_id, str) or not _ID.fullmatch(redrive_id):
        return new_id()
    told = hashlib.sha256()
    for part in (message.id.encode("utf-8", "surrogatepass"), message.key or b"", message.body or b""):
        told.update(len(part).to_bytes(8) + part)
    return f"{redrive_id}.{told.hexdigest()[:32]}"
