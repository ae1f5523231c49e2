"""A message as columns of the embedded broker, and back, exact to the byte."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from redrive.epoch import microseconds, moment
from redrive.headers import decode_headers, encode_headers
from redrive.message import Message, Overlay

_encoder = msgspec.msgpack.Encoder()
_overlay_decoder = msgspec.msgpack.Decoder(Overlay)


class Row(NamedTuple):
    """What a lease reads, in the order of `COLUMNS`."""

    id: int
    state: int
    due_at: int
    attempt: int
    first_attempt_at: int | None
    home: str | bytes
    message_id: str | bytes
    source: str | bytes | None
    sent_at: int
    key: bytes | None
    headers: bytes
    overlay: bytes | None
    trail: bytes | None
    properties: bytes | None
    body: bytes | None


COLUMNS = ", ".join(Row._fields)


def encode_message(message: Message) -> tuple[Any, ...]:
    """The message's own columns. TypeError: a header that no broker could carry."""
    source = message.source
    return (
        exact(message.queue),
        exact(message.id),
        None if source is None else exact(source),
        microseconds(message.sent_at),
        message.key,
        encode_headers(message.headers),
        encode_overlay(message.overlay),
        message.properties,
        message.body,
    )


def encode_overlay(overlay: Overlay | None) -> bytes | None:
    return None if overlay is None else _encoder.encode(overlay)


def decode_message(row: Row) -> Message:
    return Message(
        id=_text(row.message_id),
        queue=_text(row.home),
        body=row.body,
        sent_at=moment(row.sent_at),
        headers=decode_headers(row.headers),
        key=row.key,
        source=None if row.source is None else _text(row.source),
        overlay=None if row.overlay is None else _overlay_decoder.decode(row.overlay),
        properties=row.properties,
    )


def exact(text: str) -> str | bytes:
    """Text for a column. SQLite takes no lone surrogates as TEXT, so such a text is stored as bytes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")
