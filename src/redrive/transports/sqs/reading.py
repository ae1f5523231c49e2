"""What SQS gives, as a message. Total: whatever arrives is a message (R28)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from redrive.control import GENERATION
from redrive.epoch import EPOCH, moment
from redrive.headers import decode_headers
from redrive.message import Message
from redrive.sqs_origin import Origin, properties_of
from redrive.transports.sqs import attributes as attributed
from redrive.transports.sqs import body as bodies
from redrive.transports.sqs import note as notes
from redrive.transports.sqs.fifo import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redrive.message import Headers
    from redrive.transports.sqs.note import Note

_DIGITS = 10
_SOURCE = "DeadLetterQueueSourceArn"


class Arrived(msgspec.Struct, frozen=True):
    """What was received, and from which queue."""

    queue: str
    arn: str
    id: str
    body: str
    attributes: dict[str, Any]
    system: dict[str, str]
    came_at: datetime

    @property
    def receptions(self) -> int:
        """This one included."""
        return _number(self.system.get("ApproximateReceiveCount")) or 1

    @property
    def sent_at(self) -> datetime:
        """By SQS, or when it came if that is not told."""
        told = _number(self.system.get("SentTimestamp"))
        return self.came_at if told is None else noted_moment(told * 1000)

    @property
    def group(self) -> str:
        """Messages of one group of a FIFO queue come in their order."""
        return self.system.get("MessageGroupId", "")

    @property
    def identity(self) -> str:
        return f"sqs:{self.arn}/{self.id}"


def arrived(raw: Mapping[str, Any], *, queue: str, arn: str, came_at: datetime) -> Arrived:
    return Arrived(
        queue=queue,
        arn=arn,
        id=raw.get("MessageId", ""),
        body=raw.get("Body", ""),
        attributes=dict(raw.get("MessageAttributes") or {}),
        system=dict(raw.get("Attributes") or {}),
        came_at=came_at,
    )


def note_of(came: Arrived) -> Note | None:
    """The driver's own, wherever it was written for."""
    return notes.decode(came.attributes.get(notes.NAME, {}).get("BinaryValue"))


def unpack(came: Arrived, note: Note | None) -> Message:
    return _foreign(came) if note is None else _noted(came, note)


def noted_moment(since: int) -> datetime:
    """A time that somebody else wrote."""
    try:
        return moment(since)
    except OverflowError:
        return EPOCH


def _noted(came: Arrived, note: Note) -> Message:
    moved = note.came_as is None and came.queue != note.place and _SOURCE in came.system
    return Message(
        id=_text(note.id),
        queue=note.place if note.queue is None else _text(note.queue),
        body=_body(came),
        sent_at=noted_moment(note.sent_at or 0),
        headers=_headers(came, note),
        key=note.key,
        source=None if note.source is None else _text(note.source),
        overlay=note.overlay,
        properties=properties_of(_origin(came, ours=True)) if moved else note.came_as,
    )


def _foreign(came: Arrived) -> Message:
    group = came.system.get("MessageGroupId")
    message = Message(
        id=came.id,
        queue=came.queue,
        body=_body(came),
        sent_at=came.sent_at,
        headers=_with_control(attributed.read(_theirs(came))),
        key=None if group is None else key_of(group),
        properties=properties_of(_origin(came)),
    )
    return _named(message)


def _origin(came: Arrived, *, ours: bool = False) -> Origin:
    sent_at = _number(came.system.get("SentTimestamp"))
    return Origin(came.queue, came.id, sent_at, attributed.types_of(_theirs(came)), came.system, ours)


def _named(message: Message) -> Message:
    """Whoever writes S3's layout names the message there."""
    told = message.envelope
    if told is None or not told.message_id:
        return message
    named = replace(message, id=told.message_id, source=told.source or None)
    named.__dict__.update(message.__dict__)  # its body, and so its envelope, is the same
    return named


def _body(came: Arrived) -> bytes | None:
    return bodies.read(came.body, came.attributes.get(bodies.NAME, {}).get("StringValue", ""))


def _headers(came: Arrived, note: Note) -> Headers:
    if note.headers is not None:
        try:
            told = decode_headers(note.headers)
        except ValueError:
            told = ()
        if all(isinstance(name, str) for name, _ in told):
            return told
    return _with_control(attributed.read(_theirs(came)))


def _theirs(came: Arrived) -> dict[str, Any]:
    return {name: each for name, each in came.attributes.items() if name not in {notes.NAME, bodies.NAME}}


def _with_control(headers: Headers) -> Headers:
    """Of our own four, one is a number."""
    return tuple((name, _generation(value) if name == GENERATION else value) for name, value in headers)


def _generation(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _is_number(value) else value


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and _is_number(text, 2 * _DIGITS) else None


def _is_number(text: str, digits: int = _DIGITS) -> bool:
    return text.isascii() and text.isdigit() and len(text) < digits


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "backslashreplace")
