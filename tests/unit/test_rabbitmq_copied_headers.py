"""Other programs copy headers from the messages they read to those they write, ours among them."""

from __future__ import annotations

from datetime import UTC, datetime

from redrive.message import Message
from redrive.transports.rabbitmq.arrival import Arrived, unpack
from redrive.transports.rabbitmq.content import Sending, pack
from redrive.transports.rabbitmq.note import Note, encode, mark_of
from redrive.transports.rabbitmq.properties import HEADERS, fields, join
from redrive.transports.rabbitmq.table import entries, joined
from redrive.transports.rabbitmq.transport import _at

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ORDER = Message(id="17", queue="orders", body=b"an order", sent_at=NOW, headers=(("a", 1),))
HOW = Sending(user="guest", envelope=False, keep=True)


def arrived(properties: bytes, body: bytes) -> Arrived:
    return Arrived("orders", b"\x00\x06orders", properties, body, NOW)


def test_a_message_of_ours_is_recognised_by_its_note() -> None:
    packed = pack(ORDER, Note(identity="it", attempt=3), HOW)
    message, note, _ = unpack(arrived(packed.properties, packed.body))
    assert (message, note is not None and note.attempt) == (ORDER, 3)


def test_our_note_on_another_body_is_not_believed() -> None:
    packed = pack(ORDER, Note(identity="it", attempt=3), HOW)
    message, note, _ = unpack(arrived(packed.properties, b"an invoice made of it"))
    assert note is None
    assert (message.body, message.properties is not None) == (b"an invoice made of it", True)


def test_a_note_that_somebody_made_up_does_not_end_consumption() -> None:
    envelope = b'{"message_id":"1","timestamp":"t","version":"1","source":"s","queue":"q","data":{},"metadata":{},'
    body = envelope + b'"error":null,"retry_count":0}'
    made_up = Note(sent_at=1, mark=mark_of(body), control=(b"\xff", b"\xff"))
    table = joined([encode(made_up)])
    message, _, _ = unpack(arrived(b"\x20\x00" + table, body))
    assert message.body == body


def test_headers_keep_an_order_that_a_quorum_queue_would_not() -> None:
    message = Message(id="1", queue="orders", body=b"", sent_at=NOW, headers=(("zeta", 1), ("alpha", 2)))
    packed = pack(message, Note(identity="it"), HOW)
    found = fields(packed.properties)
    found[HEADERS] = joined(sorted(entries(found[HEADERS])))  # as it does when it delivers again
    assert unpack(arrived(join(found), packed.body)).message == message


def test_a_copy_in_another_queue_is_another_message_and_a_retry_is_not() -> None:
    assert _at("it", "orders") != _at("it", "audit")
    assert _at(_at("it", "orders"), "orders") == _at("it", "orders")
