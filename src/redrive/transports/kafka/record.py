"""A message as a record of Kafka, and back. Total: whatever arrives is a message (R28).

Ours: headers as bytes that every client reads, and what they were in the note. Somebody else's: key, value and
headers as they came, in their order; where they came from is in `Message.properties`.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from redrive.control import GENERATION, OURS
from redrive.epoch import EPOCH, microseconds, moment
from redrive.errors import PublishRefused, TrailTooLong
from redrive.headers import decode_headers, encode_headers
from redrive.kafka_origin import MAGIC, Origin, origin_of, properties_of
from redrive.message import ENVELOPED, Message
from redrive.transports.kafka import note as notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.message import Headers
    from redrive.transports.kafka.note import Note

    WireHeader = tuple[str, bytes | None]
    WireHeaders = Sequence[WireHeader]

_RECORD, _HEADER = 128, 12
"""What a record, and a header, takes beside its bytes, at most: lengths, offsets, the head of its batch."""
_LONGEST_INTEGER = 4000


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @property
    def size(self) -> int:
        """At most, in the log."""
        within = sum(len(name.encode()) + len(value or b"") + _HEADER for name, value in self.headers)
        return _RECORD + len(self.key or b"") + len(self.value or b"") + within


# To the wire.


def pack(message: Message, note: Note | None, *, fits: int) -> Record:
    """Within `fits` bytes: TrailTooLong if the note's trail is what does not fit. PublishRefused for a message
    that is too large without it, or has a header that cannot travel. Without a note: as its producer does.
    """
    try:
        record = _pack(message, note)
        if record.size > fits and note is not None:
            record = _smaller(message, note, record, fits)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise PublishRefused(str(error), permanent=True, remedy="change the header") from None
    if record.size > fits:
        raise PublishRefused(
            f"a record of about {record.size} bytes is more than the topic takes",
            permanent=True,
            remedy=f"its max.message.bytes is {fits}: raise it",
        )
    return record


def _smaller(message: Message, note: Note, record: Record, fits: int) -> Record:
    if note.trail:
        raise TrailTooLong(max(fits - (record.size - len(note.trail)), 0))
    if note.overlay is None or note.overlay.error is None:
        return record
    return _pack(message, replace(note, overlay=replace(note.overlay, error=None)))  # ours goes, theirs never


def _pack(message: Message, note: Note | None) -> Record:
    headers = [(name, value) for name, value in message.headers if name != notes.NAME]
    native, shape, blob = _native(headers)
    if note is not None:
        native.append((notes.NAME, notes.encode(_told(message, note, shape, blob))))
    return Record(message.key, message.body, native)


def _told(message: Message, note: Note, shape: str, blob: bytes | None) -> Note:
    if message.properties is not None:
        return replace(note, shape=shape, headers=blob, came_as=message.properties)
    return replace(
        note,
        shape=shape,
        headers=blob,
        id=_bytes(message.id),
        source=None if message.source is None else _bytes(message.source),
        sent_at=microseconds(message.sent_at),
    )


def _native(headers: list[tuple[str, Any]]) -> tuple[list[WireHeader], str, bytes | None]:
    """Headers as others read them, the kinds of their values, and all in one value if that is not exact."""
    native: list[WireHeader] = []
    shape, exact = [], True
    for name, value in headers:
        kind, told = _wire(value)
        shape.append(kind)
        exact = exact and kind != "?"
        try:
            name.encode()
        except UnicodeEncodeError:
            exact = False
        else:
            native.append((name, told))
    blob = None if exact else encode_headers(tuple(headers))
    return native, "" if blob is not None or set(shape) <= {"b"} else "".join(shape), blob


def _wire(value: Any) -> tuple[str, bytes | None]:
    kind = type(value)
    if value is None or kind is bytes:
        return "b", value
    if kind is str:
        try:
            return "t", value.encode()
        except UnicodeEncodeError:
            return "?", _bytes(value)
    if kind is int and value.bit_length() < _LONGEST_INTEGER:
        return "i", str(value).encode()
    encode_headers((("", value),))  # TypeError for what no broker could carry
    return "?", str(value).encode("utf-8", "replace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# From the wire.


class Arrived(msgspec.Struct, frozen=True):
    """What a consumer was given."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Milliseconds."""
    sent_at: datetime
    """By its timestamp, or when it came if it has none."""
    key: bytes | None
    value: bytes | None
    headers: Any
    """`WireHeaders`, in their order."""
    partitions: int
    group: str = ""


def note_of(topic: str, headers: WireHeaders) -> Note | None:
    """The driver's own, if it has put this record where it lies. The last: what is before it came with it."""
    for name, value in reversed(headers):
        if name == notes.NAME:
            return notes.decode(value, topic)
    return None


def unpack(arrived: Arrived, note: Note | None) -> Message:
    if note is None:
        return _foreign(arrived)
    if note.came_as is None and note.sent_at is not None:
        return _own(arrived, note)
    message = _foreign(arrived)
    queue = arrived.topic if note.queue is None else _text(note.queue)
    came = replace(message, queue=queue, headers=_headers(note, arrived.headers), overlay=note.overlay)
    if note.came_as is None or not note.came_as.startswith(MAGIC):
        return came if note.came_as is None else replace(came, properties=note.came_as)
    return _as_it_came(replace(came, properties=note.came_as), arrived)


def _as_it_came(message: Message, arrived: Arrived) -> Message:
    origin = origin_of(message)
    if origin is None:
        return message
    sent_at = arrived.sent_at if origin.timestamp is None else noted_moment(origin.timestamp * 1000)
    return _named(replace(message, id=_placed(origin), sent_at=sent_at))


def _foreign(arrived: Arrived) -> Message:
    origin = Origin(
        arrived.topic,
        arrived.partition,
        arrived.offset,
        arrived.partitions,
        arrived.timestamp,
        arrived.group,
    )
    message = Message(
        id=_placed(origin),
        queue=arrived.topic,
        body=arrived.value,
        sent_at=arrived.sent_at,
        headers=_foreign_headers(arrived.headers) if arrived.headers else (),
        key=arrived.key,
        properties=properties_of(origin),
    )
    return _named(message) if arrived.value is not None and ENVELOPED in arrived.value else message


def _placed(origin: Origin) -> str:
    return f"{origin.topic}-{origin.partition}-{origin.offset}"


def _named(message: Message) -> Message:
    """Whoever writes S3's layout names the message there."""
    told = message.envelope
    if told is None or not told.message_id:
        return message
    named = replace(message, id=told.message_id, source=told.source or None)
    named.__dict__.update(message.__dict__)  # its body, and so its envelope, is the same
    return named


def _foreign_headers(native: WireHeaders) -> Headers:
    return tuple((name, _read_control(name, value)) for name, value in native if name != notes.NAME)


def _own(arrived: Arrived, note: Note) -> Message:
    return Message(
        id=_text(note.id or b""),
        queue=arrived.topic if note.queue is None else _text(note.queue),
        body=arrived.value,
        sent_at=noted_moment(note.sent_at or 0),
        headers=_headers(note, arrived.headers),
        key=arrived.key,
        source=None if note.source is None else _text(note.source),
        overlay=note.overlay,
    )


def _headers(note: Note, native: WireHeaders) -> Headers:
    if note.headers is not None:
        try:
            told = decode_headers(note.headers)
        except ValueError:
            told = ()
        if told and all(isinstance(name, str) for name, _ in told):
            return told
    kept = [(name, value) for name, value in native if name != notes.NAME]
    if len(note.shape) != len(kept):
        return tuple(kept)
    return tuple((name, _shaped(kind, value)) for kind, (name, value) in zip(note.shape, kept, strict=True))


def _shaped(kind: str, value: bytes | None) -> Any:
    if value is None or kind == "b":
        return value
    if kind == "i":
        try:
            return int(value)
        except ValueError:
            return value
    return _text(value)


def _read_control(name: str, value: bytes | None) -> Any:
    """Our own four are text, and one a number, wherever they come from."""
    if name not in OURS or value is None:
        return value
    text = _text(value)
    return int(text) if name == GENERATION and text.isascii() and text.isdigit() and len(text) < 10 else text  # noqa: PLR2004


@lru_cache(maxsize=1024)  # records of one batch have few different ones, and arithmetic with dates is dear
def noted_moment(since: int) -> datetime:
    """A time out of a note: whoever wrote it."""
    try:
        return moment(since)
    except OverflowError:
        return EPOCH


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "backslashreplace")
