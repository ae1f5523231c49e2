"""Other programs copy headers from the messages they read to those they write, ours among them."""

from __future__ import annotations

from datetime import UTC, datetime

from redrive.message import Message
from redrive.transports.rabbitmq.arrival import Arrived, unpack
from redrive.transports.rabbitmq.content import Sending, pack
from redrive.transports.rabbitmq.note import Note
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


def test_a_copy_in_another_queue_is_another_message_and_a_retry_is_not() -> None:
    assert _at("it", "orders") != _at("it", "audit")
    assert _at(_at("it", "orders"), "orders") == _at("it", "orders")
