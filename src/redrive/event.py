"""What a message says about itself, for lists and S1's table: derived, never needed to send it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import re2

from redrive.message import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.message import Headers, Message

BUDGET = 200
"""Characters of each fact; what is longer is no name of anything."""

_LARGEST_READ = 64 * 1024
_worth_reading = re2.compile(rb'"((event_)?type|eventType|(source|correlation)(_id|Id))"').search
_TYPE_HEADERS = ("event_type", "eventType", "ce_type", "ce-type", "cloudEvents:type", "type")
_CORRELATION_HEADERS = (
    "correlation_id",
    "correlationId",
    "correlation-id",
    "x-correlation-id",
    "X-Correlation-ID",
)
_NAMES = frozenset(_TYPE_HEADERS + _CORRELATION_HEADERS)


class Event(msgspec.Struct, frozen=True):
    event_type: str
    """Of the payload's `event_type`, `eventType` or `type`, or a header of that name; else the queue's name."""
    source_id: str | None
    """Of the payload's `source_id` or `sourceId`; else the message's key, if it is text."""
    correlation_id: str | None
    """Of the metadata's, the payload's or a header's `correlation_id`, in either spelling."""


class _Told(msgspec.Struct):
    """The few fields that are looked for; everything else is skipped without being built."""

    type: msgspec.Raw = msgspec.Raw(b"")
    event_type: msgspec.Raw = msgspec.Raw(b"")
    eventType: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815  the field's own name
    source_id: msgspec.Raw = msgspec.Raw(b"")
    sourceId: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815  as above
    correlation_id: msgspec.Raw = msgspec.Raw(b"")
    correlationId: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815  as above


_NOTHING = _Told()
_decoder = msgspec.json.Decoder(_Told)


def describe(message: Message, queue: str) -> Event:
    """Total: whatever the bytes are, there is an answer."""
    told = _read(message.payload)
    metadata = _NOTHING if message.envelope is None else _read(bytes(message.envelope.metadata))
    headers = dict(_texts(message.headers))
    return Event(
        event_type=_first(told.event_type, told.eventType, told.type) or _named(headers, _TYPE_HEADERS) or queue,
        source_id=_first(told.source_id, told.sourceId) or _text_of(message.key),
        correlation_id=_first(metadata.correlation_id, metadata.correlationId)
        or _first(told.correlation_id, told.correlationId)
        or _named(headers, _CORRELATION_HEADERS),
    )


def _texts(headers: Headers) -> Iterator[tuple[str, str]]:
    """The last first. Kafka knows bytes alone: those that are text count as text."""
    for name, value in reversed(headers):
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, bytes) and name in _NAMES and (found := _text_of(value)):
            yield name, found


def _read(raw: bytes | None) -> _Told:
    if not raw or len(raw) > _LARGEST_READ or not raw.startswith(b"{") or not _worth_reading(raw):
        return _NOTHING
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _NOTHING


def _first(*candidates: msgspec.Raw) -> str | None:
    for raw in candidates:
        if raw and (found := _scalar(bytes(raw))):
            return cut(found, BUDGET)
    return None


def _scalar(raw: bytes) -> str | None:
    try:
        value: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _named(headers: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((cut(headers[name], BUDGET) for name in names if headers.get(name)), None)


def _text_of(key: bytes | None) -> str | None:
    if not key:
        return None
    try:
        found = key.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return found if len(found) <= BUDGET and found.isprintable() else None
