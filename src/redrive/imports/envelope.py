"""S3's envelope, one per line, as a dump of a dead-letter queue holds it: the line is the message's body, and its
own `error` and `retry_count` say what went wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from redrive.imports.json_lines import raised
from redrive.imports.values import failed_once, moment
from redrive.message import Envelope, Message

if TYPE_CHECKING:
    from redrive.dead_letter import Entry
    from redrive.imports.rows import Row

_FIELDS = set(Envelope.__struct_fields__)


def recognises(row: Row) -> bool:
    return row.values.keys() >= _FIELDS


def letter_of_row(row: Row) -> Entry:
    at = moment("timestamp", row.values.get("timestamp"))
    message = Message(id="", queue="", body=row.raw, sent_at=at)
    told = message.envelope
    if told is None:
        raise ValueError("it is not an envelope with message_id, timestamp, version, source, queue, data, ...")
    known = msgspec.structs.replace(message, id=told.message_id, queue=told.queue, source=told.source or None)
    note = told.error
    chain = (raised("", "", "") if note is None else raised(note.code, note.message, note.trace),)
    identity = "envelope:" + json.dumps([told.queue, told.message_id])
    return failed_once(known, identity, handler="unknown", attempts=max(1, told.retry_count), at=at, chain=chain)
