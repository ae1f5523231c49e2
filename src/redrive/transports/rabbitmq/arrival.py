"""A message as it comes from AMQP. Total: whatever arrives is a message (R28).

What our own driver has put there it recognises by its note, and gives back as it was. Everything else is somebody
else's: its properties are kept as they came.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from msgspec.structs import replace

from redrive.epoch import EPOCH, moment
from redrive.headers import decode_headers
from redrive.message import Message
from redrive.telemetry.error_facts import error_facts
from redrive.transports.rabbitmq import note as notes
from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq import table as tables
from redrive.transports.rabbitmq.content import (
    COUNTS,
    DEATHS,
    MAGIC,
    is_foreign,
    origin_of,
    split,
    text_of,
)
from redrive.transports.rabbitmq.envelope import restore_control

if TYPE_CHECKING:
    from redrive.message import Headers
    from redrive.transports.rabbitmq.note import Note

log = structlog.get_logger("redrive.rabbitmq")

_COUNT = b"-count"
_NO_HEADERS = tables.joined([])
_IN_MILLISECONDS = 10**11


class Arrived(NamedTuple):
    """What a consumer was given."""

    queue: str
    origin: bytes
    """Exchange and routing key, as short strings."""
    properties: bytes
    body: bytes
    now: datetime


class Unpacked(NamedTuple):
    message: Message
    note: Note | None
    """Ours, if the driver has put it where it lies."""
    named: bool = True
    """Its id came with it; else it was made of its bytes."""


def unpack(arrived: Arrived) -> Unpacked:
    try:
        return _unpack(arrived)
    except Exception as error:  # noqa: BLE001  whatever somebody wrote into a header, consumption goes on
        log.warning("headers that cannot be read, the message is taken as bare", **error_facts(error))
        nothing = props.Glance(None, None, None, None)
        return Unpacked(_as_it_came(arrived, nothing), None, named=False)


def _unpack(arrived: Arrived) -> Unpacked:
    seen = _seen(arrived.properties)
    if seen.table is not None and _COUNT in seen.table:
        arrived = arrived._replace(properties=_uncounted(arrived.properties))
        seen = _seen(arrived.properties)
    if seen.table is None or not notes.carries(seen.table):
        return _foreign(arrived, seen, None)
    entries = _entries(seen.table)
    note = next((notes.decode(entry) for entry in entries if entry.name == notes.NAME), None)
    if note is None or note.mark != notes.mark_of(arrived.body):
        return _foreign(arrived, seen, None)
    if note.came_as is not None:
        return Unpacked(_read_returned(arrived, note), note)
    if note.sent_at is None:  # somebody else's, with no more than a word of ours
        return _foreign(arrived, seen, note)
    return Unpacked(_read_own(arrived, note, entries, seen), note)


def _seen(raw: bytes) -> props.Glance:
    try:
        return props.glance(raw)
    except ValueError:
        return props.Glance(None, None, None, None)


def _uncounted(raw: bytes) -> bytes:
    """Without what a quorum queue adds to each delivery but the first: it is no part of the message."""
    try:
        found = props.fields(raw)
        left = [entry for entry in tables.entries(found[props.HEADERS]) if entry.name not in COUNTS]
    except ValueError:
        return raw
    if left:
        return props.join(found | {props.HEADERS: tables.joined(left)})
    del found[props.HEADERS]
    return props.join(found)


def _foreign(arrived: Arrived, seen: props.Glance, note: Note | None) -> Unpacked:
    message = _read_foreign(arrived, seen)
    told = None if seen.message_id else message.envelope
    return Unpacked(message, note, bool(seen.message_id or (told is not None and told.message_id)))


def _read_foreign(arrived: Arrived, seen: props.Glance) -> Message:
    message = _as_it_came(arrived, seen)
    if seen.message_id or message.envelope is None:
        return message
    told = message.envelope  # whoever writes S3's layout names the message there
    return replace(message, id=told.message_id or message.id, source=message.source or told.source or None)


def _as_it_came(arrived: Arrived, seen: props.Glance) -> Message:
    _, origin, raw, body, now = arrived
    return Message(
        id=text_of(seen.message_id) if seen.message_id else _made_of(raw, body, seen),
        queue=arrived.queue,
        body=body,
        sent_at=_sent_at(seen.timestamp, now),
        headers=() if seen.table is None else _headers(_entries(seen.table)),
        source=None if seen.app_id is None else text_of(seen.app_id),
        properties=MAGIC + origin + raw,
    )


def _made_of(raw: bytes, body: bytes, seen: props.Glance) -> str:
    """An id for a message that has none. A quorum queue that delivers again has sorted the headers, and added some
    where there were none, so neither counts.
    """
    if seen.table is None:
        return hashlib.sha256(raw + _NO_HEADERS + body).hexdigest()[:32]
    try:
        found = props.fields(raw)
        headers = tables.entries(found.pop(props.HEADERS, _NO_HEADERS))
    except ValueError:
        return hashlib.sha256(raw + body).hexdigest()[:32]
    in_order = tables.joined(sorted(headers, key=lambda entry: entry.name))
    return hashlib.sha256(props.join(found) + in_order + body).hexdigest()[:32]


def _read_returned(arrived: Arrived, note: Note) -> Message:
    """A message of somebody else's that we have put where it lies: as it came, with what was laid over it."""
    origin, raw = split(note.came_as or b"")
    body = restore_control(arrived.body, note.control)
    came = Arrived(_own_queue(note, arrived.queue), origin, raw, body, arrived.now)
    message = _read_foreign(came, _seen(raw))
    return message if note.overlay is None else replace(message, overlay=note.overlay)


def _read_own(arrived: Arrived, note: Note, entries: list[tables.Entry], seen: props.Glance) -> Message:
    body = arrived.body
    source = note.source if note.source is not None else seen.app_id
    if source is None and not note.sourceless:
        source = b""
    return Message(
        id=text_of(note.id if note.id is not None else seen.message_id or b""),
        queue=_own_queue(note, arrived.queue),
        body=None if note.bodiless and not body else restore_control(body, note.control),
        sent_at=noted_moment(note.sent_at or 0),
        headers=_own_headers(note, entries),
        key=note.key,
        source=None if source is None else text_of(source),
        overlay=note.overlay,
    )


def _own_headers(note: Note, entries: list[tables.Entry]) -> Headers:
    if note.headers is not None:
        try:
            told = decode_headers(note.headers)
        except ValueError:
            told = ()
        if told and all(isinstance(name, str) for name, _ in told):
            return told
    if note.due_at is not None:  # it has waited in a queue of ours, whose broker wrote of it
        entries = [entry for entry in entries if entry.name != b"x-death" and not entry.name.startswith(DEATHS)]
    return _headers(entries)


def noted_moment(since: int) -> datetime:
    """A time out of a note: whoever wrote it."""
    try:
        return moment(since)
    except OverflowError:
        return EPOCH


def first_death(message: Message) -> str:
    """When it was first dead-lettered, as far as its headers tell: the same message may die again later (G3)."""
    told = _deaths(message.headers)
    return str(told[-1].get("time", "")) if told else ""


def published_as(message: Message) -> tuple[bytes, bytes] | None:
    """Exchange and routing key that its producer used, if they are known: of its oldest death, else as it came.
    Read off its properties: its headers are a view, and may have been edited.
    """
    if not is_foreign(message):
        return None
    table = _seen(split(message.properties or b"")[1]).table
    told = [] if table is None else _deaths(_headers(_entries(table)))
    exchange, keys = (told[-1].get("exchange"), told[-1].get("routing-keys")) if told else (None, None)
    if not (isinstance(exchange, str) and isinstance(keys, list) and keys and isinstance(keys[0], str)):
        return origin_of(message)
    found = exchange.encode(), keys[0].encode()
    return found if all(props.short(each) is not None for each in found) else None


def rejections(properties: bytes, queue: str) -> int:
    """How often the broker took it out of this queue as rejected since it was last published. Read off what has
    arrived: the message we make of it may be the one from before.
    """
    table = _seen(properties).table
    told = () if table is None else _headers(_entries(table))
    counts = [
        death.get("count") for death in _deaths(told)
        if death.get("queue") == queue and death.get("reason") == "rejected"
    ]  # fmt: skip
    return max((count for count in counts if isinstance(count, int) and 0 < count < 2**31 - 1), default=0)


def _deaths(headers: Headers) -> list[dict[str, Any]]:
    """Newest first. What a client wrote in its place is nothing (R28)."""
    for name, value in headers:
        if name == "x-death" and isinstance(value, list):
            return [death for death in value if isinstance(death, dict)]
    return []


def _entries(table: bytes) -> list[tables.Entry]:
    try:
        return tables.entries(table)
    except ValueError:
        return []


def _headers(entries: list[tables.Entry]) -> Headers:
    return tuple((text_of(entry.name), _value(entry)) for entry in entries if entry.name != notes.NAME)


def _value(entry: tables.Entry) -> Any:
    try:
        return tables.value_of(entry.value)
    except ValueError:
        return entry.value


def _sent_at(timestamp: int | None, now: datetime) -> datetime:
    if timestamp is None:
        return now
    seconds = timestamp / 1000 if timestamp > _IN_MILLISECONDS else timestamp
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return now


def _own_queue(note: Note, queue: str) -> str:
    return queue if note.queue is None else text_of(note.queue)
