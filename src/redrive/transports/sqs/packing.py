"""A message as SQS takes it: a body of text, and at most ten attributes, of which up to two are ours.

Ours gets smaller before theirs does: the story of the failures first, the last error next. A body of ours is
packed only if it does not fit as it is, because nobody else would look into it; one of somebody else's never is:
its consumer would not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from redrive.aws_notice import without_notice
from redrive.control import OURS
from redrive.epoch import microseconds
from redrive.errors import PublishRefused, TrailTooLong
from redrive.headers import encode_headers
from redrive.sqs_origin import origin_of
from redrive.transports.sqs import attributes as attributed
from redrive.transports.sqs import body as bodies
from redrive.transports.sqs import note as notes
from redrive.transports.sqs.queue_facts import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.message import Headers, Message
    from redrive.transports.sqs.note import Note

    Written = Callable[[bytes | None], tuple[str, str]]

_DRIVERS_OWN = frozenset({notes.NAME, bodies.NAME})


class Packed(msgspec.Struct, frozen=True):
    body: str
    attributes: dict[str, Any]

    @property
    def size(self) -> int:
        """As SQS counts it."""
        return len(self.body.encode()) + attributed.size(self.attributes)


def as_sent(message: Message, target: str) -> Message:
    """Without what a service of AWS wrote on it when it gave it up, if it does not go back to where that was read:
    there it was no dead letter, and its handler may look for it. SQS itself writes nothing on what it moves.
    """
    origin = origin_of(message)
    if origin is None or origin.is_moved or origin.queue == target:
        return message
    headers = without_notice(message.headers)
    return message if headers == message.headers else message.with_headers(headers)


def pack(message: Message, note: Note, *, fits: int, as_it_came: bool = False) -> Packed:
    """Within `fits` bytes: TrailTooLong if the note's trail is what does not fit. PublishRefused for a message
    that is too large without it, or has a header that cannot travel. `as_it_came`: its body as it is, without the
    note, if attributes say everything; else no attribute of its producer's may be missing.
    """
    try:
        return _fitting(message, note, fits, as_it_came=as_it_came)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise PublishRefused(str(error), permanent=True, remedy="change the header") from None


def _fitting(message: Message, note: Note, fits: int, *, as_it_came: bool) -> Packed:
    packed = _packed(message, note, bodies.written, as_it_came=as_it_came)
    if packed.size <= fits:
        return packed
    trail = len(note.trail or b"")
    if trail and packed.size - trail <= fits:
        raise TrailTooLong(fits - (packed.size - trail))
    written = bodies.written if as_it_came else bodies.written_smaller
    packed = _packed(message, note, written, as_it_came=as_it_came)
    if packed.size > fits and trail:
        raise TrailTooLong(max(fits - (packed.size - trail), 0))
    if packed.size > fits and note.overlay is not None and note.overlay.error is not None:
        shorter = replace(note, overlay=replace(note.overlay, error=None))
        packed = _packed(message, shorter, written, as_it_came=as_it_came)
    if packed.size > fits:
        raise _too_large(packed.size, fits)
    return packed


def _too_large(size: int, fits: int) -> PublishRefused:
    grow = "" if fits >= LARGEST else f"raise its MaximumMessageSize ({fits}; SQS allows {LARGEST}), or "
    return PublishRefused(
        f"a message of {size} bytes, attributes included, is more than the queue takes ({fits})",
        permanent=True,
        remedy=f"{grow}make the message smaller by an edit",
    )


def _packed(message: Message, note: Note, written: Written, *, as_it_came: bool) -> Packed:
    headers = tuple((name, value) for name, value in message.headers if name not in _DRIVERS_OWN)
    origin = origin_of(message)
    native = attributed.native(headers, {} if origin is None else origin.types)
    body, how = written(message.body)
    marks = {bodies.NAME: attributed.text(how)} if how else {}
    if as_it_came and native.exact and len(native.attributes) + len(marks) <= attributed.MOST:
        return Packed(body, native.attributes | marks)
    room = attributed.MOST - len(marks) - 1
    if as_it_came:
        _check_room(headers, room)
    told = {name: native.attributes[name] for name in _theirs_first(native.attributes)[:room]}
    exact = native.exact and len(told) == len(native.attributes) and not (origin and origin.types)
    blob = None if exact else encode_headers(headers)
    marks[notes.NAME] = attributed.binary(notes.encode(_told(message, note, blob)))
    return Packed(body, told | marks)


def _check_room(headers: Headers, room: int) -> None:
    """Other consumers of the queue look for attributes: none may be missing there, and ours must not either."""
    if sum(name not in OURS for name, _ in headers) > room:
        raise PublishRefused(
            f"the message has so many attributes that SQS, which takes {attributed.MOST}, has no place for ours",
            permanent=True,
            remedy="take one away by an edit, or put several into one",
        )


def _theirs_first(names: dict[str, Any]) -> list[str]:
    return sorted(names, key=lambda name: name in OURS)


def _told(message: Message, note: Note, blob: bytes | None) -> Note:
    return replace(
        note,
        headers=blob,
        key=message.key,
        id=_bytes(message.id),
        source=None if message.source is None else _bytes(message.source),
        sent_at=microseconds(message.sent_at),
        came_as=message.properties,
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
