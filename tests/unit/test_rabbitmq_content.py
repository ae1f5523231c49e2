"""Messages as AMQP's properties and body, and back: ours and everybody else's, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from redrive.errors import PublishRefused, TrailTooLong
from redrive.message import Message
from redrive.testing.transport_corpus import BODIES, HEADERS, OVERLAY, TEXTS
from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq import table as tables
from redrive.transports.rabbitmq.arrival import Arrived, Unpacked, published_as, rejections, unpack
from redrive.transports.rabbitmq.content import HEADER_BUDGET, MAGIC, Packed, Sending, origin_of, pack
from redrive.transports.rabbitmq.note import Note
from support import amqp_values

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
HOW = Sending(user="guest", envelope=False)
KEPT = HOW._replace(keep=True)
ORIGIN = b"\x06events\x07created"
RETRY = Note(identity="i-1", attempt=2, trail=b"story", put_at=1, due_at=2)


def message(**given_fields: Any) -> Message:
    usual: dict[str, Any] = {"id": "m-1", "queue": "orders", "body": b"{}", "sent_at": NOW, "source": "shop"}
    return Message(**(usual | given_fields))


def arrived(packed: Packed, *, queue: str = "orders", origin: bytes = b"\x00\x06orders") -> Unpacked:
    return unpack(Arrived(queue, origin, packed.properties, packed.body, NOW))


def foreign(raw: bytes, body: bytes = b"{}") -> Message:
    return unpack(Arrived("orders", ORIGIN, raw, body, NOW)).message


def headers_of(packed: Packed) -> dict[bytes, bytes]:
    table = props.fields(packed.properties).get(props.HEADERS)
    return {} if table is None else {entry.name: entry.value for entry in tables.entries(table)}


# Ours


@pytest.mark.parametrize(
    "given_message",
    [
        *(message(body=body) for body in BODIES.values()),
        *(message(headers=headers) for headers in HEADERS.values()),
        *(message(id=text, source=text) for text in TEXTS.values()),
        *(message(key=key) for key in (None, b"", b"\x00\xff")),
        *(message(source=source) for source in (None, "")),
        message(overlay=OVERLAY),
        message(headers=(("x-redrive", 1), ("CC", ["a"]), ("x-death", "mine"))),
        Message.create(id="m-1", sent_at=NOW, queue="orders", data={"a": 1}, metadata={"priority": 3}),
    ],
)
@pytest.mark.parametrize("envelope", [False, True])
def test_ours_come_back_as_they_were(given_message: Message, *, envelope: bool) -> None:
    packed = pack(given_message, Note(), HOW._replace(envelope=envelope))
    found = arrived(packed)
    assert found.message == given_message
    assert found.note is not None


@given(
    st.lists(
        st.tuples(
            st.text(max_size=5),
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
        ),
        max_size=4,
    )
)
def test_ours_with_any_headers_come_back_as_they_were(headers: list[tuple[str, Any]]) -> None:
    given_message = message(headers=tuple(headers))
    found = arrived(pack(given_message, Note(), HOW)).message
    assert found == given_message
    assert repr(found.headers) == repr(given_message.headers)


def test_every_client_reads_what_amqp_has_a_place_for() -> None:
    given_message = Message.create(
        id="m-1", sent_at=NOW, queue="orders", data={}, source="shop",
        metadata={"correlation_id": "c-1", "priority": 3}, headers=(("n", 1), ("t", "é")),
    )  # fmt: skip
    packed = pack(given_message, Note(), HOW)
    found = props.fields(packed.properties)
    assert found[props.MESSAGE_ID] == b"\x03m-1"
    assert found[props.APP_ID] == b"\x04shop"
    assert found[props.CONTENT_TYPE] == b"\x10application/json"
    assert (found[props.CORRELATION_ID], found[props.PRIORITY]) == (b"\x03c-1", b"\x03")
    assert found[props.DELIVERY_MODE] == b"\x02"
    assert int.from_bytes(found[props.TIMESTAMP]) == int(NOW.timestamp())
    assert headers_of(packed)[b"n"] == b"I\x00\x00\x00\x01"
    assert headers_of(packed)[b"t"] == b"S\x00\x00\x00\x02\xc3\xa9"
    assert packed.body == given_message.body


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j])
def test_a_header_that_cannot_travel_is_refused_for_good(value: Any) -> None:
    with pytest.raises(PublishRefused) as refused:
        pack(message(headers=(("a", value),)), Note(), HOW)
    assert refused.value.permanent


# Everybody else's


@given(amqp_values.properties(), st.binary(max_size=50))
def test_somebody_elses_comes_back_from_its_retry_byte_for_byte(raw: bytes, body: bytes) -> None:
    came = foreign(raw, body)
    packed = pack(came, RETRY, KEPT)
    found = arrived(packed)
    assert (found.message.properties, found.message.body) == (MAGIC + ORIGIN + came_without_counts(raw), body)
    assert repr(astuple(found.message)) == repr(astuple(came))  # as text: NaN equals nothing
    assert found.note is not None
    assert (found.note.attempt, found.note.trail, found.note.identity) == (2, b"story", "i-1")


def came_without_counts(raw: bytes) -> bytes:
    """What a quorum queue counts is no part of the message."""
    return foreign(raw).properties.removeprefix(MAGIC + ORIGIN)  # type: ignore[union-attr]  # it is foreign


@given(amqp_values.properties())
def test_what_is_sent_again_has_the_same_fields_byte_for_byte_but_for_what_must_not_travel(raw: bytes) -> None:
    before, after = props.fields(raw), props.fields(pack(foreign(raw), Note(), HOW).properties)
    changed = {props.EXPIRATION, props.CLUSTER_ID, props.USER_ID, props.DELIVERY_MODE, props.HEADERS}
    assert {flag: field for flag, field in after.items() if flag not in changed} == {
        flag: field for flag, field in before.items() if flag not in changed
    }
    assert after[props.DELIVERY_MODE] == props.PERSISTENT
    assert not {props.EXPIRATION, props.CLUSTER_ID} & after.keys()
    kept = [entry for entry in tables.entries(before.get(props.HEADERS, b"\x00" * 4)) if travels(entry.name)]
    assert tables.entries(after.get(props.HEADERS, b"\x00" * 4)) == kept


def travels(name: bytes) -> bool:
    stays = {b"CC", b"BCC", b"x-death", b"x-redrive", b"x-delivery-count", b"x-acquired-count"}
    return name not in stays and not name.startswith((b"x-first-death-", b"x-last-death-"))


@pytest.mark.parametrize("note", [Note(), RETRY], ids=["redrive", "retry"])
def test_what_would_kill_or_copy_it_is_not_sent_along_natively(note: Note) -> None:
    family = [b"x-death", b"x-first-death-queue", b"x-first-death-reason", b"x-first-death-exchange",
              b"x-last-death-queue", b"x-last-death-reason", b"x-last-death-exchange", b"CC", b"BCC"]  # fmt: skip
    table = tables.joined(tables.Entry(name, tables.write("v")) for name in [*family, b"own"])
    raw = props.join({props.HEADERS: table, props.EXPIRATION: b"\x0260", props.USER_ID: b"\x03bob"})
    packed = pack(foreign(raw), note, HOW._replace(keep=note is RETRY))
    assert set(headers_of(packed)) - {b"x-redrive"} == {b"own"}
    assert not {props.EXPIRATION, props.USER_ID} & props.fields(packed.properties).keys()
    if note is RETRY:
        assert {name for name, _ in arrived(packed).message.headers} >= {name.decode() for name in family}


def test_our_own_user_may_sign() -> None:
    raw = props.join({props.USER_ID: b"\x05guest"})
    assert props.fields(pack(foreign(raw), Note(), HOW).properties)[props.USER_ID] == b"\x05guest"


def test_an_absent_header_table_is_not_an_empty_one() -> None:
    for raw in (props.join({}), props.join({props.HEADERS: b"\x00" * 4})):
        again = props.fields(pack(foreign(raw), Note(), HOW).properties)
        assert again.get(props.HEADERS) == props.fields(raw).get(props.HEADERS)


def test_headers_added_since_travel_too_and_the_rest_keeps_its_types() -> None:
    table = tables.joined([tables.Entry(b"short", b"s\x00\x01"), tables.Entry(b"float", b"f\x3f\x80\x00\x00")])
    came = foreign(props.join({props.HEADERS: table}))
    ticket = came.with_headers((*came.headers, ("x-redrive-id", "r-1")))
    assert headers_of(pack(ticket, Note(), HOW)) == {
        b"short": b"s\x00\x01",
        b"float": b"f\x3f\x80\x00\x00",
        b"x-redrive-id": tables.write("r-1"),
    }


def test_a_repeated_name_keeps_both_values_in_their_order() -> None:
    table = tables.joined([tables.Entry(b"a", b"B\x01"), tables.Entry(b"a", b"u\x00\x01")])
    packed = pack(foreign(props.join({props.HEADERS: table})), Note(), HOW)
    assert props.fields(packed.properties)[props.HEADERS] == table


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_whatever_arrives_is_a_message(raw: bytes, body: bytes) -> None:
    found = unpack(Arrived("orders", ORIGIN, raw, body, NOW)).message
    assert (found.body, found.queue) == (body, "orders")


@given(st.binary(max_size=80))
def test_a_note_that_is_none_of_ours_makes_it_no_less_a_message(inner: bytes) -> None:
    entry = tables.Entry(b"x-redrive", b"x" + len(inner).to_bytes(4) + inner)
    raw = props.join({props.HEADERS: tables.joined([entry]), props.MESSAGE_ID: b"\x03m-1"})
    assert unpack(Arrived("orders", ORIGIN, raw, b"body", NOW)).message.body == b"body"


def test_what_a_quorum_queue_counts_is_no_part_of_the_message() -> None:
    table = tables.joined([tables.Entry(b"x-delivery-count", b"l" + bytes(8)), tables.Entry(b"own", b"V")])
    plain = tables.joined([tables.Entry(b"own", b"V")])
    assert foreign(props.join({props.HEADERS: table})) == foreign(props.join({props.HEADERS: plain}))


# Budgets


def test_r14_a_trail_that_does_not_fit_says_how_much_would() -> None:
    for given_message in (message(headers=(("own", "x" * 30_000),)), foreign(props.join({}))):
        how = KEPT if given_message.properties else HOW
        with pytest.raises(TrailTooLong) as too_long:
            pack(given_message, replace(RETRY, trail=b"t" * 100_000), how)
        room = too_long.value.room
        assert 20_000 < room < HEADER_BUDGET
        packed = pack(given_message, replace(RETRY, trail=b"t" * room), how)
        assert HEADER_BUDGET - 16 <= len(packed.properties) <= HEADER_BUDGET


def test_r14_when_nothing_fits_the_room_is_zero_and_without_a_trail_the_users_headers_still_go() -> None:
    large = message(headers=(("own", "x" * 100_000),), overlay=OVERLAY)
    with pytest.raises(TrailTooLong) as too_long:
        pack(large, RETRY, HOW)
    assert too_long.value.room == 0
    packed = pack(large, replace(RETRY, trail=b"", overlay=OVERLAY), HOW)
    assert headers_of(packed)[b"own"] == tables.write("x" * 100_000)
    overlay = arrived(packed).message.overlay
    assert overlay is not None
    assert (overlay.error, overlay.retry_count) == (None, OVERLAY.retry_count)  # ours goes first


def test_r14_large_headers_of_others_are_not_carried_twice() -> None:
    table = tables.joined([tables.Entry(b"own", tables.write("x" * 50_000))])
    came = foreign(props.join({props.HEADERS: table}))
    packed = pack(came, RETRY, KEPT)
    assert len(packed.properties) < HEADER_BUDGET
    assert arrived(packed).message == came


# What the broker and the envelope tell


def death(**fields: Any) -> bytes:
    return tables.write([{"queue": "orders", "reason": "rejected", "count": 3, **fields}])


def test_rejections_are_counted_of_this_queue_and_reason_only() -> None:
    def counted(value: bytes) -> int:
        table = tables.joined([tables.Entry(b"x-death", value)])
        return rejections(props.join({props.HEADERS: table}), "orders")

    assert counted(death()) == 3
    assert counted(death(queue="mails")) == counted(death(reason="expired")) == 0
    for nonsense in (tables.write("mine"), tables.write([1, "a"]), tables.write({}), b"A\x00\x00\x00\x01!",
                     death(count="many"), death(count=-1), death(count=2**40)):  # fmt: skip
        assert counted(nonsense) == 0
    assert rejections(b"", "orders") == 0


def test_the_origin_of_a_dead_lettered_message_is_in_its_oldest_death() -> None:
    deaths = tables.write(
        [
            {"queue": "orders.wait", "exchange": "dead", "routing-keys": ["again"]},
            {"queue": "orders", "exchange": "events", "routing-keys": ["order.created"]},
        ]
    )
    came = foreign(props.join({props.HEADERS: tables.joined([tables.Entry(b"x-death", deaths)])}))
    assert published_as(came) == (b"events", b"order.created")
    assert origin_of(came) == (b"events", b"created")  # by which it came
    assert published_as(foreign(props.join({}))) == (b"events", b"created")
    assert published_as(message()) is None


def test_s3s_envelope_names_the_message_if_the_property_does_not() -> None:
    body = Message.create(id="e-1", sent_at=NOW, queue="orders", data={}, source="checkout").body or b""
    found = unpack(Arrived("orders", ORIGIN, props.join({}), body, NOW))
    assert (found.message.id, found.message.source, found.named) == ("e-1", "checkout", True)
    named = unpack(Arrived("orders", ORIGIN, props.join({props.MESSAGE_ID: b"\x03p-1"}), body, NOW))
    assert (named.message.id, named.named) == ("p-1", True)
    assert not unpack(Arrived("orders", ORIGIN, props.join({}), b"{}", NOW)).named


@pytest.mark.parametrize(("timestamp", "year"), [(1_700_000_000, 2023), (1_700_000_000_000, 2023), (2**63, 2026)])
def test_timestamps_in_seconds_and_in_milliseconds_and_nonsense(timestamp: int, year: int) -> None:
    assert foreign(props.join({props.TIMESTAMP: props.moment(timestamp)})).sent_at.year == year
