"""Messages of others on Service Bus, in every type of AMQP: read whatever they hold, and sent again as they came.

Proton writes them and looks at what comes out; the SDK's own decoder and encoder are between.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus._pyamqp._encode import encode_payload
from azure.servicebus._transport._pyamqp_transport import PyamqpTransport
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from proton import (
    Described,
    byte,
    char,
    decimal32,
    decimal64,
    decimal128,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)

from redrive.control import REDRIVE_ID
from redrive.errors import PublishRefused
from redrive.headers import encode_headers
from redrive.message import Message
from redrive.servicebus_origin import MAGIC, origin_of
from redrive.transports.servicebus import content, origin, wire_types
from redrive.transports.servicebus.note import Note
from support.servicebus import sections

QUEUE = "orders"
APPLICATION, ANNOTATIONS, PROPERTIES, HEADER = (
    sections.APPLICATION,
    sections.ANNOTATIONS,
    sections.PROPERTIES,
    sections.HEADER,
)
DATA, SEQUENCE, VALUE = sections.DATA, 0x76, 0x77
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=9)
SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    TEXT,
    st.binary(max_size=9),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(float32),
    st.integers(0, 2**8 - 1).map(ubyte),
    st.integers(-(2**7), 2**7 - 1).map(byte),
    st.integers(0, 2**16 - 1).map(ushort),
    st.integers(-(2**15), 2**15 - 1).map(short),
    st.integers(0, 2**32 - 1).map(uint),
    st.integers(-(2**31), 2**31 - 1).map(int32),
    st.integers(0, 2**64 - 1).map(ulong),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**50), 2**50).map(timestamp),
    st.uuids(),
    st.text("abc-:", min_size=1, max_size=9).map(symbol),
)
ANY = st.recursive(SIMPLE, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXT, inside, max_size=3))


@pytest.fixture(autouse=True, scope="module")
def _types_are_told() -> None:
    assert wire_types.install()


def received(*parts: tuple[int, Any]) -> ServiceBusReceivedMessage:
    return ServiceBusReceivedMessage.from_bytes(b"".join(sections.section(code, value) for code, value in parts))


def read(*parts: tuple[int, Any]) -> Message:
    message, note = content.unpack(received(*parts), QUEUE)
    assert note is None
    assert encode_headers(message.headers) is not None
    return message


def sent(message: Message, **how: Any) -> dict[int, bytes]:
    """What comes out, section by section, as proton would have written it."""
    annotated = content.pack(message, None, **how).annotated
    encoded = bytearray()
    encode_payload(encoded, PyamqpTransport.to_outgoing_amqp_message(annotated))
    return {code: sections.section(code, sections.value_of(raw)) for code, raw in sections.split(bytes(encoded))}


@given(SIMPLE)
@settings(max_examples=60)
def test_an_application_property_of_any_type_is_read_and_sent_again_as_it_came(value: Any) -> None:
    properties = {"theirs": value, "plain": "text"}
    message = read((APPLICATION, properties), (DATA, b"{}"))
    assert dict(message.headers).keys() == properties.keys()
    assert sent(message)[APPLICATION] == sections.section(APPLICATION, properties)


@given(ANY)
@settings(max_examples=30)
def test_a_body_that_is_a_value_of_any_type_is_read_and_sent_again_as_it_came(value: Any) -> None:
    if value is not None:
        assert sent(read((VALUE, value)))[VALUE] == sections.section(VALUE, value)


@given(st.lists(ANY, min_size=1, max_size=3))
@settings(max_examples=10)
def test_a_body_that_is_a_sequence_is_sent_again_as_it_came(values: list[Any]) -> None:
    assert sent(read((SEQUENCE, values)))[SEQUENCE] == sections.section(SEQUENCE, values)


def test_a_guid_is_text_to_people_and_handlers() -> None:
    tenant = uuid.UUID(int=7)
    assert dict(read((APPLICATION, {"TenantId": tenant}), (DATA, b"")).headers) == {"TenantId": str(tenant)}


def test_a_timestamp_is_a_moment() -> None:
    message = read((APPLICATION, {"when": timestamp(1_700_000_000_123)}), (DATA, b""))
    assert dict(message.headers) == {"when": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)}


def test_a_value_that_is_text_is_the_body_as_it_is_so_that_a_handler_can_read_its_json() -> None:
    assert read((VALUE, '{"order": 1}')).body == b'{"order": 1}'


def test_a_property_that_somebody_has_edited_has_the_type_of_what_it_is_now() -> None:
    message = read((APPLICATION, {"tries": 3, "tenant": uuid.UUID(int=7)}), (DATA, b""))
    edited = sent(message.with_headers((("tries", "none"), ("tenant", 5))))
    assert edited[APPLICATION] == sections.section(APPLICATION, {"tries": "none", "tenant": int32(5)})


def test_a_decimal_of_net_is_read_and_sent_again() -> None:
    """The SDK's own decoder fails on it, and with it the link of everybody who receives the message."""
    one_and_a_half = decimal128((0x303E << 112 | 15).to_bytes(16))
    message = read((APPLICATION, {"price": one_and_a_half}), (DATA, b""))
    assert dict(message.headers) == {"price": "1.5"}
    assert sent(message)[APPLICATION] == sections.section(APPLICATION, {"price": one_and_a_half})


@pytest.mark.parametrize("value", [char("x"), decimal32(5), decimal64(5)])
def test_what_the_sdk_cannot_encode_is_read_and_refused_when_it_shall_be_sent(value: Any) -> None:
    message = read((APPLICATION, {"odd": value}), (DATA, b"body"))
    assert message.body == b"body"
    with pytest.raises(PublishRefused) as refused:
        content.pack(message, None)
    assert refused.value.permanent
    assert "odd" in str(refused.value)


def test_a_span_of_net_stays_a_described_long() -> None:
    span = Described(symbol("com.microsoft:timespan"), 600_000_000)
    message = read((APPLICATION, {"span": span}), (DATA, b""))
    assert dict(message.headers) == {"span": 600_000_000}
    assert sent(message)[APPLICATION] == sections.section(APPLICATION, {"span": span})


def test_its_own_properties_annotations_and_priority_come_out_as_they_went_in() -> None:
    own = [
        *(uuid.UUID(int=5), b"me", "to", "subject", "back", b"\xff\xfe\x01", symbol("application/json")),
        *(symbol("gzip"), None, timestamp(1_700_000_000_000), "session", uint(3), "their session"),
    ]
    mine = {symbol("x-custom"): "hello", symbol("x-opt-partition-key"): "session"}
    brokers = {symbol("x-opt-sequence-number"): 17, symbol("x-opt-enqueued-time"): timestamp(5)}
    header = [None, ubyte(9), None, None, uint(4)]
    message = read((HEADER, header), (ANNOTATIONS, mine | brokers), (PROPERTIES, own), (DATA, b""))
    assert (message.id, message.key) == (str(uuid.UUID(int=5)), b"session")
    again = sent(message)
    assert again[PROPERTIES] == sections.section(PROPERTIES, own)
    assert sections.value_of(again[ANNOTATIONS]) == mine
    assert sections.value_of(again[HEADER])[1] == 9


def test_sections_of_data_stay_apart_unless_the_body_has_changed() -> None:
    message = read((DATA, b"one"), (DATA, b"three"))
    assert message.body == b"onethree"
    annotated = content.pack(message, None).annotated
    assert list(annotated.body) == [b"one", b"three"]
    assert list(content.pack(replace(message, body=b"other"), None).annotated.body) == [b"other"]


def test_a_redriven_message_knows_the_id_that_it_first_had_whatever_type_it_is() -> None:
    first = uuid.UUID(int=5)
    own = [first, *[None] * 12]
    message = read((PROPERTIES, own), (DATA, b"")).with_headers(((REDRIVE_ID, "rid"),))
    once = sent(message, redrive_id="rid")
    assert sections.value_of(once[PROPERTIES])[0] == "rid"
    back = read(*((code, sections.value_of(raw)) for code, raw in once.items()))
    assert back.id == str(first)
    assert sections.value_of(sent(back)[PROPERTIES])[0] == first


def test_a_message_that_nothing_can_be_made_of_is_one_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(origin, "read", fails)
    message = read((APPLICATION, {"tenant": "acme"}), (DATA, b"body"))
    assert b"acme" in (message.body or b"")
    assert b"body" in (message.body or b"")
    with pytest.raises(PublishRefused):
        content.pack(message, None)


def test_a_letter_that_was_stored_before_types_were_kept_is_still_read_and_sent() -> None:
    old = (
        b"\x84\xa6entity\xa6orders\xa8sequence\x07\xaamessage_id\xa6theirs"
        b"\xa5texts\x82\xa7subject\xa6placed\xaasession_id\xa1s"
    )
    moment = datetime(2030, 1, 2, tzinfo=UTC)
    message = Message(id="theirs", queue=QUEUE, body=b"{}", sent_at=moment, key=b"s", properties=MAGIC + old)
    assert origin_of(message) is not None
    properties = sections.value_of(sent(message)[PROPERTIES])
    assert (properties[0], properties[3], properties[10]) == ("theirs", "placed", "s")


@pytest.mark.parametrize("body", [(DATA, b"one"), (VALUE, {"a": uuid.UUID(int=7)}), (SEQUENCE, [1, "two"])])
def test_a_copy_of_ours_with_any_kind_of_body_is_known_by_its_note(body: tuple[int, Any]) -> None:
    message = read((APPLICATION, {"tenant": uuid.UUID(int=7)}), body)
    annotated = content.pack(message, Note(place=QUEUE, trail=b"trail")).annotated
    encoded = bytearray()
    encode_payload(encoded, PyamqpTransport.to_outgoing_amqp_message(annotated))
    copy, note = content.unpack(ServiceBusReceivedMessage.from_bytes(bytes(encoded)), QUEUE)
    assert note is not None
    assert (copy, note.trail) == (message, b"trail")
