"""What a message is on SQS, and that it comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.control import RedriveTicket, read_ticket, stamp
from redrive.errors import PublishRefused, TrailTooLong
from redrive.message import Message
from redrive.sqs_origin import origin_of
from redrive.transports.sqs import body as bodies
from redrive.transports.sqs.attributes import MOST
from redrive.transports.sqs.note import NAME, Note
from redrive.transports.sqs.packing import Packed, as_sent, pack
from redrive.transports.sqs.reading import Arrived, arrived, note_of, unpack

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
LARGEST = 2**20


def a_message(**given_: Any) -> Message:
    usual: dict[str, Any] = {"id": "m-1", "queue": "orders", "body": b"{}", "sent_at": NOW, "source": None}
    return Message(**(usual | given_))


def received(packed: Packed, *, queue: str = "orders", **system: str) -> Arrived:
    raw = {
        "MessageId": "sqs-1",
        "Body": packed.body,
        "MessageAttributes": packed.attributes,
        "Attributes": {"SentTimestamp": "1893553445000", **system},
    }
    return arrived(raw, queue=queue, arn="arn:aws:sqs:eu-west-1:123456789012:orders", came_at=NOW)


def a_strangers(**attributes: dict[str, Any]) -> Message:
    """As another program has sent it, and we have received it."""
    came = received(Packed("hello", attributes))
    return unpack(came, note_of(came))


def text(value: str, kind: str = "String") -> dict[str, Any]:
    return {"DataType": kind, "StringValue": value}


def round_trip(message: Message, **options: Any) -> Message:
    came = received(pack(message, Note(place="orders"), fits=LARGEST, **options))
    return unpack(came, note_of(came))


# Bodies


@pytest.mark.parametrize(
    ("body", "how"),
    [
        (b"hello", ""),
        ("Größe \N{GRINNING FACE}\t\r\n".encode(), ""),
        (None, "none"),
        (b"", "empty"),
        (b"\x00", "base64"),
        (b"\xff", "base64"),
        ("\ufffe".encode(), "base64"),
        (b"\x1b", "base64"),
    ],
)
def test_a_body_that_sqs_would_change_or_refuse_says_how_it_is_written(body: bytes | None, how: str) -> None:
    written, told = bodies.written(body)
    assert told == how
    assert bodies.is_text(written)
    assert bodies.read(written, told) == body


@pytest.mark.parametrize("how", ["base64", "zlib+base64", "rot13"])
def test_a_body_that_is_not_written_as_it_says_is_taken_as_it_is(how: str) -> None:
    assert bodies.read("no base64!", how) == b"no base64!"


def test_a_small_body_that_would_be_unpacked_to_a_flood_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, how = bodies.written_smaller(bytes(100_000))
    assert how == "zlib+base64"
    assert bodies.read(packed, how) == bytes(100_000)
    monkeypatch.setattr(bodies, "_MOST", 99_999)
    assert bodies.read(packed, how) == packed.encode()


@given(st.none() | st.binary() | st.text().map(lambda each: each.encode("utf-8", "surrogatepass")))
def test_every_body_comes_back(body: bytes | None) -> None:
    for written, how in (bodies.written(body), bodies.written_smaller(body)):
        assert bodies.is_text(written)
        assert bodies.read(written, how) == body


# Attributes

scalars = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
names = st.sampled_from(["a", "b", "AWS.x", "amazon.y", ".", "a..b", "x" * 300, NAME + "s"]) | st.text()


@given(st.lists(st.tuples(names, scalars | st.lists(scalars, max_size=3)), max_size=20).map(tuple))
def test_every_header_comes_back_in_its_place_and_sqs_is_given_nothing_it_refuses(headers: Any) -> None:
    message = a_message(headers=headers)
    packed = pack(message, Note(place="orders"), fits=LARGEST)
    assert len(packed.attributes) <= MOST
    for name, each in packed.attributes.items():
        assert name.isascii()
        assert not name.lower().startswith(("aws.", "amazon."))
        assert each.get("StringValue") or each.get("BinaryValue")
    came = received(packed)
    assert unpack(came, note_of(came)) == message


def test_others_can_read_what_headers_say() -> None:
    headers = (("tenant", "acme"), ("count", 3), ("raw", b"\xff"))
    packed = pack(a_message(headers=headers), Note(place="orders"), fits=LARGEST)
    assert packed.body == "{}"
    assert packed.attributes["tenant"] == text("acme")
    assert packed.attributes["count"] == text("3", "Number")
    assert packed.attributes["raw"] == {"DataType": "Binary", "BinaryValue": b"\xff"}


def test_a_message_of_somebody_else_goes_out_as_it_came() -> None:
    attributes = {"id": text("7c", "String.uuid"), "n": text("1.50", "Number"), "plain": text("x")}
    message = a_strangers(**attributes)
    assert message.headers == (("id", "7c"), ("n", "1.50"), ("plain", "x"))
    assert pack(message, Note(place="orders"), fits=LARGEST, as_it_came=True) == Packed("hello", attributes)


NOTICE = {name: text("x") for name in ("ErrorCode", "ErrorMessage", "RequestID")}


def read_from(queue: str, **system: str) -> Message:
    """With what Lambda writes on an event that it gives up, and an attribute of its producer's."""
    came = received(Packed("hello", {**NOTICE, "tenant": text("acme")}), queue=queue, **system)
    return unpack(came, note_of(came))


def test_what_a_service_of_aws_wrote_on_a_dead_letter_does_not_go_out_with_it() -> None:
    assert as_sent(read_from("undelivered"), "orders").headers == (("tenant", "acme"),)


@pytest.mark.parametrize(
    ("queue", "system"), [("orders", {}), ("orders_dlq", {"DeadLetterQueueSourceArn": "arn:aws:sqs:r:1:orders"})]
)
def test_what_was_in_a_message_where_it_was_consumed_goes_back_with_it(queue: str, system: dict[str, str]) -> None:
    message = read_from(queue, **system)
    assert as_sent(message, "orders") is message


def test_a_producers_own_attribute_of_such_a_name_is_its_own() -> None:
    message = a_strangers(ErrorCode=text("7"), tenant=text("acme"))
    assert as_sent(message, "refunds") is message


def test_a_retry_of_somebody_elses_message_comes_back_as_it_came() -> None:
    message = a_strangers(**{f"name-{number}": text("x", "String.label") for number in range(MOST)})
    packed = pack(message, Note(place="orders", attempt=2), fits=LARGEST)
    assert len(packed.attributes) == MOST
    came = received(packed)
    again = unpack(came, note_of(came))
    assert again == message
    assert origin_of(again) == origin_of(message)


def test_a_redriven_message_of_somebody_else_has_its_ticket_beside_its_attributes() -> None:
    ticket = RedriveTicket("r-1", "l-1", 2, "orders")
    for count in (1, MOST - 4, MOST - 1):
        attributes = {f"name-{number}": text("x") for number in range(count)}
        message = a_strangers(**attributes)
        stamped = message.with_headers(stamp(message.headers, ticket, b"key"))
        packed = pack(stamped, Note(place="orders"), fits=LARGEST, as_it_came=True)
        assert packed.attributes.items() >= attributes.items()
        came = received(packed)
        assert read_ticket(unpack(came, note_of(came)).headers, "orders", b"key") == ticket


def test_a_redrive_that_would_cost_a_producers_attribute_is_refused() -> None:
    message = a_strangers(**{f"name-{number}": text("x") for number in range(MOST)})
    stamped = message.with_headers(stamp(message.headers, RedriveTicket("r-1", "l-1", 2, "orders"), b"key"))
    with pytest.raises(PublishRefused) as refused:
        pack(stamped, Note(place="orders"), fits=LARGEST, as_it_came=True)
    assert refused.value.permanent


# Size


def test_the_story_of_the_failures_gives_way_first() -> None:
    note = Note(place="orders", trail=bytes(5000))
    with pytest.raises(TrailTooLong) as long:
        pack(a_message(body=b"x" * 9000), note, fits=10_000)
    room = long.value.room
    assert 0 < room < 1000
    fitting = Note(place="orders", trail=bytes(room - 8))
    packed = pack(a_message(body=b"x" * 9000), fitting, fits=10_000)
    assert packed.size <= 10_000
    assert packed.body == "x" * 9000


def test_a_body_is_packed_only_if_it_does_not_fit_as_it_is() -> None:
    message = a_message(body=b"x" * 9000)
    assert pack(message, Note(place="orders"), fits=10_000).body == "x" * 9000
    packed = pack(message, Note(place="orders"), fits=5000)
    assert packed.size <= 5000
    came = received(packed)
    assert unpack(came, note_of(came)) == message


def test_what_does_not_fit_at_all_is_refused_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_MOST", 0)
    with pytest.raises(PublishRefused, match="more than the queue takes") as refused:
        pack(a_message(body=b"x" * 9000), Note(place="orders"), fits=5000)
    assert refused.value.permanent


def test_a_redrive_of_somebody_elses_message_that_has_no_room_for_its_ticket_is_refused_and_never_packed() -> None:
    came = received(Packed("x" * 9000, {}))
    message = unpack(came, note_of(came))
    stamped = message.with_headers(stamp(message.headers, RedriveTicket("r-1", "l-1", 2, "orders"), b"key"))
    with pytest.raises(PublishRefused, match="more than the queue takes") as refused:
        pack(stamped, Note(place="orders"), fits=9100, as_it_came=True)
    assert refused.value.permanent
    assert "raise its MaximumMessageSize" in refused.value.remedy
    assert pack(stamped, Note(place="orders"), fits=9999, as_it_came=True).body == "x" * 9000


# Whatever it holds (R28)


@given(
    st.text(),
    st.dictionaries(
        st.sampled_from([NAME, bodies.NAME, "x-redrive-generation", "other"]), st.text() | st.binary()
    ),
    st.dictionaries(st.sampled_from(["SentTimestamp", "ApproximateReceiveCount", "MessageGroupId"]), st.text()),
)
def test_whatever_arrives_is_a_message(body: str, told: dict[str, Any], system: dict[str, str]) -> None:
    attributes = {
        name: {"DataType": "String", "StringValue": value}
        if isinstance(value, str)
        else {"DataType": "Binary", "BinaryValue": value}
        for name, value in told.items()
    }
    came = received(Packed(body, attributes), **system)
    message = unpack(came, note_of(came))
    assert message.properties is not None
    assert came.receptions >= 0
