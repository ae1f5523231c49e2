"""A message as one of Service Bus, and back. `unpack` is total: whatever the SDK hands out is a message (R28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from msgspec.structs import replace

from redrive.clock import new_id
from redrive.control import REDRIVE_ID
from redrive.epoch import EPOCH, microseconds, moment
from redrive.errors import PublishRefused, TrailTooLong
from redrive.headers import decode_headers, encode_headers
from redrive.message import Message
from redrive.servicebus_origin import Origin, decode, origin_of, properties_of
from redrive.servicebus_paths import parse
from redrive.transports.servicebus import note as notes
from redrive.transports.servicebus import origin as origins
from redrive.transports.servicebus.amqp_values import guessed, kept, readable, sendable
from redrive.transports.servicebus.outgoing import Outgoing
from redrive.transports.servicebus.times import enqueued
from redrive.transports.servicebus.topics import ONLY

if TYPE_CHECKING:
    from datetime import datetime

    from azure.servicebus import ServiceBusReceivedMessage

    from redrive.message import Headers
    from redrive.servicebus_paths import EntityPath
    from redrive.transports.servicebus.note import Note

log = structlog.get_logger("redrive.servicebus")

DEAD_LETTER_PROPERTIES = frozenset({"DeadLetterReason", "DeadLetterErrorDescription"})
"""Kept on what is sent again, they would make its next reader take it for dead (ServiceBusExplorer#344)."""
FIRST_ID = "x-redrive-first-id"
"""A redriven message's own: it goes under the redrive's, or duplicate detection would throw it away."""
_DRIVERS_OWN = frozenset({notes.NAME, FIRST_ID, ONLY})
_LONGEST_ID = 128
_LONGEST_PROPERTY = 32_767
_ALL_PROPERTIES = 60_000
"""Service Bus takes 64 KiB, its own included; beyond it dead-letters a message itself (HeaderSizeExceeded)."""
_NESTED = frozenset({"LIST", "ARRAY", "MAP"})
"""No types of an application property."""


def pack(
    message: Message, note: Note | None, *, only: str | None = None, redrive_id: str | None = None
) -> Outgoing:
    """PublishRefused for what cannot travel, TrailTooLong if it is the note's trail. Without a note: as its
    producer sent it, but for the marks of a redrive, and of the one subscription that shall have it.
    """
    try:
        headers = tuple(pair for pair in message.headers if pair[0] not in _DRIVERS_OWN)
        properties = _simple(headers, origin_of(message), all_of_them=note is None)
        blob = encode_headers(headers)  # TypeError for what no broker could carry
        packed = _bare(message)
    except (TypeError, ValueError) as error:
        raise PublishRefused(str(error), permanent=True, remedy="change the header") from None
    _put_in_session(packed, message.key)
    if note is not None:
        told = notes.encode(_told(message, note, blob))
        _check_room(properties, told, note)
        properties[notes.NAME] = bytearray(told)
        # Never the first one's: duplicate detection would throw a copy away.
        packed.message_id = redrive_id or new_id()
    elif redrive_id is not None:
        properties[FIRST_ID] = _first_id(message)
        packed.message_id = redrive_id
    if only is not None:
        properties[ONLY] = only
    packed.properties = properties
    return packed


def unpack(received: ServiceBusReceivedMessage, entity: str) -> tuple[Message, Note | None]:
    try:
        return _unpacked(received, entity)
    except Exception as error:  # noqa: BLE001  one message must not keep all behind it from being read
        log.warning("a message that cannot be read is taken as text", queue=entity, error=type(error).__name__)
        origin, body = origins.unreadable(received, entity)
        return _foreign(received, origin, body, ()), None


def _unpacked(received: ServiceBusReceivedMessage, entity: str) -> tuple[Message, Note | None]:
    where = parse(entity)
    told, body = received.application_properties or {}, origins.body_of(received)
    note = notes.decode(told.get(notes.NAME.encode()), place=where.name, body=body)
    if note is not None:
        return _noted(note, received, where, body), note
    origin = origins.read(received, entity)
    properties = {str(readable(kept(name))): value for name, value in told.items()}
    for own in _DRIVERS_OWN - {FIRST_ID}:
        properties.pop(own, None)
    first_id = properties.pop(FIRST_ID, None)
    if first_id is not None and REDRIVE_ID in properties:
        origin = origins.renamed(origin, kept(first_id))
    headers = tuple((name, readable(kept(value))) for name, value in properties.items())
    encode_headers(headers)  # what no store could keep is no message of anybody's
    return _foreign(received, origin, body, headers), None


def _foreign(received: ServiceBusReceivedMessage, origin: Origin, body: bytes, headers: Headers) -> Message:
    session = origin.texts.get("session_id")
    return Message(
        id=origin.message_id or f"{origin.entity}-{origin.sequence}",
        queue=origin.entity,
        body=body,
        sent_at=enqueued(received) or EPOCH,
        headers=headers,
        key=None if session is None else _bytes(session),
        properties=properties_of(origin),
    )


def _put_in_session(packed: Outgoing, key: bytes | None) -> None:
    """The key is the session, where it can be one."""
    session = session_of(key)
    if session is None or session == packed.session:
        return
    packed.session = session
    if packed.partition_key is not None:
        packed.partition_key = session  # Service Bus wants them alike


def _check_room(properties: dict[str | bytes, Any], told: bytes, note: Note) -> None:
    others = sum(len(_bytes(str(name))) + _size(value) for name, value in properties.items())
    over = max(len(told) - _LONGEST_PROPERTY, others + len(told) - _ALL_PROPERTIES)
    if over <= 0:
        return
    trail = len(note.trail or b"")
    if trail:
        raise TrailTooLong(max(trail - over, 0))
    raise PublishRefused(
        "the message's properties are more than Service Bus takes beside what must travel with it",
        permanent=True,
        remedy="it takes 32 KiB in one and 64 KiB in all: make the headers smaller",
    )


def _size(value: Any) -> int:
    """About, in bytes on the wire."""
    told = value["VALUE"] if isinstance(value, dict) else value
    return len(_bytes(told)) if isinstance(told, str) else len(told) if isinstance(told, bytes | bytearray) else 17


def _first_id(message: Message) -> Any:
    origin = origin_of(message)
    typed = None if origin is None else origin.typed.get("message_id")
    return message.id.encode("utf-8", "backslashreplace").decode() if typed is None else sendable(typed)


def session_of(key: bytes | None) -> str | None:
    try:
        session = (key or b"").decode()
    except UnicodeDecodeError:
        return None
    return session if 0 < len(session) <= _LONGEST_ID else None


def _bare(message: Message) -> Outgoing:
    origin = origin_of(message)
    if origin is not None and not origin.ours:
        return origins.write(origin, message.body or b"")
    packed = Outgoing.of_bytes(message.body or b"")
    if len(message.id) <= _LONGEST_ID and message.id.isascii() and message.id.isprintable():
        packed.message_id = message.id
    return packed


def _told(message: Message, note: Note, blob: bytes) -> Note:
    return replace(
        note,
        mark=notes.mark_of(message.body),
        id=_bytes(message.id),
        source=None if message.source is None else _bytes(message.source),
        sent_at=microseconds(message.sent_at),
        key=message.key,
        bodiless=message.body is None,
        headers=blob,
        came_as=message.properties if is_foreign(message) or _came_by_topic(origin_of(message)) else None,
    )


def is_foreign(message: Message) -> bool:
    """Somebody else made it, or another broker brought it."""
    origin = origin_of(message)
    return message.properties is not None and (origin is None or not origin.ours)


def _noted(note: Note, received: ServiceBusReceivedMessage, where: EntityPath, body: bytes) -> Message:
    """Its place is the entity's, in a subqueue too: what the broker dead-letters keeps the note it came with."""
    path = f"{where.parent}/{where.subqueue}" if where.subqueue else where.parent
    moved = bool(where.subscription) or origins.dead_of(received, path) is not None
    return Message(
        id=_text(note.id or b""),
        queue=where.parent if note.queue is None else _text(note.queue),
        body=None if note.bodiless else body,
        sent_at=_moment(note.sent_at or 0),
        headers=_headers(note.headers),
        key=note.key,
        source=None if note.source is None else _text(note.source),
        overlay=note.overlay,
        properties=_moved(note, origins.read(received, path)) if moved else note.came_as,
    )


def _came_by_topic(origin: Origin | None) -> bool:
    """Then it is worth knowing where it came from, ours or not: it may be sent to the topic again."""
    return origin is not None and bool(parse(origin.entity).subscription)


def _moved(note: Note, origin: Origin) -> bytes:
    """What the broker says of a message of ours, beside what is known of the one that it was made of."""
    if note.came_as is None:
        return properties_of(replace(origin, ours=True))
    first = decode(note.came_as)
    return note.came_as if first is None else properties_of(replace(first, dead=origin.dead))


def _simple(headers: Headers, origin: Origin | None, *, all_of_them: bool) -> dict[str | bytes, Any]:
    """What others can read of them; a note has all. Without one, ValueError for what would be left behind."""
    properties: dict[str | bytes, Any] = {}
    for name, value in headers:
        if name in DEAD_LETTER_PROPERTIES:
            continue
        try:
            properties[_sendable_name(name)] = _sendable_property(name, value, origin)
        except ValueError as error:
            properties.pop(name, None)
            if all_of_them:
                raise ValueError(f"the application property {name!r} cannot be sent: {error}") from None
    return properties


def _sendable_property(name: str, value: Any, origin: Origin | None) -> Any:
    """With the type that it came with, unless somebody has changed it since."""
    came = None if origin is None else origin.application.get(name)
    same = came is not None and encode_headers(((name, readable(came)),)) == encode_headers(((name, value),))
    stored = came if same else guessed(value)
    if isinstance(stored, list) and stored[0] in _NESTED:
        raise ValueError("Service Bus takes no lists and maps there")
    return sendable(stored)


def _sendable_name(name: str) -> str:
    if not name:
        raise ValueError("it has no name")
    name.encode()  # UnicodeEncodeError is a ValueError
    return name


def _headers(stored: bytes) -> Headers:
    try:
        return decode_headers(stored)
    except ValueError:
        return ()


def _text(value: bytes | str) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "backslashreplace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _moment(since: int) -> datetime:
    try:
        return moment(since)
    except OverflowError:
        return EPOCH
