"""A message as AMQP's properties and body; `arrival` is the way back.

Ours: headers natively where AMQP can say them, so that every client reads them; what it cannot say in the note.
Somebody else's: `Message.properties` holds exchange, routing key and the raw properties as they came; sent again,
its fields are copied byte for byte, but for what must not travel twice (`_LEFT_OUT`, `_DROPPED`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from redrive.epoch import microseconds
from redrive.errors import PublishRefused, TrailTooLong
from redrive.headers import encode_headers
from redrive.message import Message, Overlay
from redrive.transports.rabbitmq import note as notes
from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq import table as tables
from redrive.transports.rabbitmq.envelope import write_control
from redrive.transports.rabbitmq.note import Note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redrive.message import Headers

HEADER_BUDGET = 64 * 1024
"""Properties stay below it, however much there is to tell: RabbitMQ adds to them when it dead-letters (R14)."""
FRAME_RESERVE = 8 * 1024
"""Left free in the frame that holds them, whatever the user's own headers take."""
_COPIED_TWICE = 24 * 1024
"""Foreign properties and headers larger than this travel in the note only: natively and in the note they would not
fit.
"""
MAGIC = b"amqp\x00"
_JSON = b"\x10application/json"
_MAX_PRIORITY = 255

_DROPPED = (props.EXPIRATION, props.CLUSTER_ID)
"""Fields that would end it too early, or that nobody may write."""
COUNTS = frozenset({b"x-delivery-count", b"x-acquired-count"})
_LEFT_OUT = frozenset({b"CC", b"BCC", b"x-death", notes.NAME}) | COUNTS
"""Headers that would copy it elsewhere, or make the broker take it for going in circles and drop it."""
DEATHS = (b"x-first-death-", b"x-last-death-")
_NO_NOTE = Note()


class Packed(NamedTuple):
    properties: bytes
    body: bytes


class Sending(NamedTuple):
    """What a publication is told beside the message."""

    user: str
    envelope: bool
    """Write error and retry count into an enveloped body, as others expect them there."""
    persistent: bool = True
    keep: bool = False
    """It comes back to us, or lies as evidence: everything it came with has to be there."""


def pack(message: Message, note: Note, how: Sending) -> Packed:
    """TrailTooLong if the note's trail is what does not fit; PublishRefused for a header that cannot travel."""
    try:
        found = _pack(message, note, how)
        if len(found.properties) > HEADER_BUDGET and note.trail:
            raise TrailTooLong(max(HEADER_BUDGET - (len(found.properties) - len(note.trail)), 0))
        if len(found.properties) > HEADER_BUDGET and note.overlay is not None and note.overlay.error is not None:
            found = _pack(message, _without_error(note), how)  # ours goes first, the user's never
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise PublishRefused(str(error), permanent=True, remedy="change the header") from None
    return found


def _pack(message: Message, note: Note, how: Sending) -> Packed:
    body = message.body or b""
    afresh = not how.keep and message.overlay == Overlay(None, 0)
    if (how.envelope or afresh) and message.envelope is not None:  # S3's consumers count in there (trap 18)
        body, control = write_control(message)
        # One that starts afresh has this body for good.
        note = replace(note, control=control if how.keep else None)
    if is_foreign(message):
        return Packed(_foreign(message, body, note, how), body)
    return Packed(_own(message, body, note, how), body)


def _own(message: Message, body: bytes, note: Note, how: Sending) -> bytes:
    native, blob = _native(message.headers)
    text, source = _bytes(message.id), None if message.source is None else _bytes(message.source)
    found: dict[int, bytes] = {
        props.DELIVERY_MODE: props.PERSISTENT if how.persistent else b"\x01",
        props.TIMESTAMP: props.moment(max(int(message.sent_at.timestamp()), 0)),
    }
    _put_short(found, props.MESSAGE_ID, text)
    if source is not None:
        _put_short(found, props.APP_ID, source)
    if message.envelope is not None:
        found[props.CONTENT_TYPE] = _JSON
        _describe(found, message)
    note = replace(
        note,
        id=None if props.MESSAGE_ID in found else text,
        source=None if source is None or props.APP_ID in found else source,
        sourceless=source is None,
        sent_at=microseconds(message.sent_at),
        key=message.key,
        bodiless=message.body is None,
        headers=blob,
        overlay=message.overlay if note.overlay is None else note.overlay,
        mark=notes.mark_of(body),
    )
    found[props.HEADERS] = tables.joined([*native, notes.encode(note)])
    return props.join(found)


def _describe(found: dict[int, bytes], message: Message) -> None:
    metadata = message.metadata
    correlation, priority = metadata.get("correlation_id"), metadata.get("priority")
    if isinstance(correlation, str):
        _put_short(found, props.CORRELATION_ID, _bytes(correlation))
    if type(priority) is int and 0 <= priority <= _MAX_PRIORITY:
        found[props.PRIORITY] = bytes((priority,))


def _foreign(message: Message, body: bytes, note: Note, how: Sending) -> bytes:
    raw = _raw_of(message)
    found = props.fields(raw)
    table = found.pop(props.HEADERS, None)
    if found.get(props.USER_ID) != props.short(how.user.encode()):
        found.pop(props.USER_ID, None)  # the broker takes it from its own user only
    for flag in _DROPPED:
        found.pop(flag, None)
    found[props.DELIVERY_MODE] = props.PERSISTENT
    kept = list(_kept(message.headers, table)) if message.headers or table is not None else []
    if how.keep or note != _NO_NOTE:
        came_as = message.properties if how.keep else note.came_as
        if len(raw) > _COPIED_TWICE and how.keep:
            kept = []
        kept.append(notes.encode(replace(note, came_as=came_as, mark=notes.mark_of(body))))
    if kept or table is not None:
        found[props.HEADERS] = tables.joined(kept)
    return props.join(found)


def _kept(headers: Headers, table: bytes | None) -> Iterable[tables.Entry]:
    """The headers' own bytes where they came with the message, new ones for those added since."""
    came: defaultdict[str, list[tables.Entry]] = defaultdict(list)
    for entry in () if table is None else tables.entries(table):
        came[text_of(entry.name)].append(entry)
    for name, value in headers:
        raw = _bytes(name)
        if raw in _LEFT_OUT or raw.startswith(DEATHS):
            continue
        same = came[name]
        place = next((at for at, entry in enumerate(same) if _says(entry, value)), None)
        if place is not None:
            yield same.pop(place)
        else:
            yield tables.Entry(tables.name_of(name), _approximate(value))


def _says(entry: tables.Entry, value: Any) -> bool:
    try:
        return repr(tables.value_of(entry.value)) == repr(value)  # repr: 1 is not 1.0, and nan is nan
    except ValueError:
        return isinstance(value, bytes) and value == entry.value


def _approximate(value: Any) -> bytes:
    try:
        return tables.write(value)
    except tables.Inexact:
        return tables.write(str(value).encode("utf-8", "backslashreplace").decode())


def _native(headers: Headers) -> tuple[list[tables.Entry], bytes | None]:
    """The headers that AMQP can say, and all of them as one value if it cannot say them all, or not in this order:
    a quorum queue sorts them when it delivers again.
    """
    native: dict[bytes, tables.Entry] = {}
    exact, last = True, b""
    for name, value in headers:
        try:
            entry = tables.Entry(tables.name_of(name), tables.write(value))
        except tables.Inexact:
            exact = False
            continue
        taken = entry.name in _LEFT_OUT or entry.name.startswith(DEATHS)
        exact = exact and not taken and entry.name > last
        last = entry.name
        if not taken:
            native[entry.name] = entry
    if exact:
        return list(native.values()), None
    blob = encode_headers(headers)
    return [] if len(blob) > _COPIED_TWICE else list(native.values()), blob


def largest_header(frame_max: int) -> int:
    """Bytes of properties that are sent at most, so that the broker has room to add to them."""
    return max(frame_max - FRAME_RESERVE, frame_max // 2)


def is_foreign(message: Message) -> bool:
    return message.properties is not None and message.properties.startswith(MAGIC)


def origin_of(message: Message) -> tuple[bytes, bytes] | None:
    """Exchange and routing key that it came by, if they are known."""
    if not is_foreign(message):
        return None
    origin, _ = split(message.properties or b"")
    exchange = origin[1 : 1 + origin[0]]
    return exchange, origin[2 + len(exchange) :]


def _raw_of(message: Message) -> bytes:
    return split(message.properties or b"")[1]


def split(came_as: bytes) -> tuple[bytes, bytes]:
    """Exchange and routing key as they came, and the raw properties."""
    rest = came_as.removeprefix(MAGIC)
    try:
        exchange = 1 + rest[0]
        end = exchange + 1 + rest[exchange]
    except IndexError:
        return b"\x00\x00", props.NOTHING
    return rest[:end], rest[end:] or props.NOTHING


def _put_short(found: dict[int, bytes], flag: int, text: bytes) -> None:
    if (field := props.short(text)) is not None:
        found[flag] = field


def text_of(raw: bytes) -> str:
    """Text of any bytes: what is not UTF-8 stays recognisable."""
    for lenient in ("strict", "surrogatepass"):
        try:
            return raw.decode("utf-8", lenient)
        except UnicodeDecodeError:
            continue
    return raw.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _without_error(note: Note) -> Note:
    return replace(note, overlay=None if note.overlay is None else Overlay(None, note.overlay.retry_count))
