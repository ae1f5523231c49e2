from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.clock import new_id
from redrive.message import ERROR_TEXT_BUDGET, ERROR_TRACE_BUDGET, Message, read_json

SENT_AT = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)

S3_FRESH = """{
    "message_id": "79a50895-f251-455f-9a5c-a3abbf83d707",
    "timestamp": "2026-02-28T22:53:42+00:00",
    "version": "1.0",
    "source": "checkout-service",
    "queue": "orders",
    "data": {
        "order_id": 123,
        "customer_id": 456,
        "total": 299.9
    },
    "metadata": {
        "priority": "high",
        "correlation_id": "abc-123"
    },
    "error": null,
    "retry_count": 0
}"""
"""S3's own print of a message just made."""

S3_FAILED = S3_FRESH.replace(
    '"error": null,\n    "retry_count": 0',
    '"error": {\n        "message": "Connection refused",\n        "code": "500",\n'
    '        "trace": "PDOException: SQLSTATE[HY000] [2002]..."\n    },\n    "retry_count": 1',
)
"""S3's own print of the same message after its first failure."""

FIELDS = ["message_id", "timestamp", "version", "source", "queue", "data", "metadata", "error", "retry_count"]


def ours(**changes: Any) -> Message:
    told: dict[str, Any] = {
        "id": "79a50895-f251-455f-9a5c-a3abbf83d707",
        "sent_at": SENT_AT,
        "queue": "orders",
        "source": "checkout-service",
        "data": {"order_id": 123, "customer_id": 456, "total": 299.90},
        "metadata": {"priority": "high", "correlation_id": "abc-123"},
    }
    return Message.create(**(told | changes))


def foreign(body: bytes | None) -> Message:
    return Message(id="their-id", queue="orders", body=body, sent_at=SENT_AT)


def shown(message: Message) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(message.to_json())
    return value


def test_s3_a_new_message_has_s3s_fields_in_s3s_order() -> None:
    assert list(shown(ours())) == FIELDS == list(json.loads(S3_FRESH))


def test_s3_a_new_message_holds_what_s3_prints() -> None:
    expected, got = json.loads(S3_FRESH), shown(ours())
    assert datetime.fromisoformat(got.pop("timestamp")) == datetime.fromisoformat(expected.pop("timestamp"))
    assert got == expected


def test_s3_a_message_that_failed_once_holds_what_s3_prints() -> None:
    failed = (
        ours()
        .with_incremented_retry()
        .with_error("Connection refused", "500", "PDOException: SQLSTATE[HY000] [2002]...")
    )
    expected, got = json.loads(S3_FAILED), shown(failed)
    assert list(got["error"]) == ["message", "code", "trace"]
    assert {**got, "timestamp": ""} == {**expected, "timestamp": ""}


@pytest.mark.parametrize("printed", [S3_FRESH, S3_FAILED], ids=["fresh", "failed"])
def test_s3_its_own_print_is_read_as_an_envelope_and_shown_byte_for_byte(printed: str) -> None:
    message = foreign(printed.encode())
    assert message.envelope is not None
    assert message.data == {"order_id": 123, "customer_id": 456, "total": 299.9}
    assert message.correlation_id == "abc-123"
    assert message.version == "1.0"
    assert message.to_json() == printed.encode()


def test_s3_a_failed_message_read_from_its_print_counts_on() -> None:
    again = foreign(S3_FAILED.encode()).with_incremented_retry()
    assert again.retry_count == 2
    assert again.error is not None
    assert again.error.code == "500"


def test_a_new_id_is_a_uuid_of_version_7_and_ids_sort_by_time() -> None:
    ids = [new_id() for _ in range(1000)]
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_a_message_cannot_be_changed() -> None:
    message = ours()
    for field in message.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(message, field, None)


def test_id_and_bytes_never_change_in_a_lifetime() -> None:
    first = message = ours(headers=(("a", 1),), key=b"k")
    for attempt in range(5):
        message = message.with_incremented_retry().with_error(f"try {attempt}", "E", "trace")
        message = message.with_headers((*message.headers, ("x", attempt)))
        assert (message.id, message.body, message.key) == (first.id, first.body, first.key)
    assert message.retry_count == 5
    assert message.with_reset().body is first.body


@pytest.mark.parametrize(
    "message",
    [ours(), foreign(S3_FRESH.encode()), foreign(b'{"order": 1}'), foreign(b"\xff\x00"), foreign(None)],
    ids=["ours", "s3's print", "foreign JSON", "bytes", "nothing"],
)
def test_reset_after_failures_shows_the_message_as_it_was(message: Message) -> None:
    failed = message.with_incremented_retry().with_error("x", "y", "z").with_incremented_retry()
    assert failed.to_json() != message.to_json()
    assert failed.with_reset().to_json() == message.to_json()


def test_reset_clears_an_error_that_the_envelope_itself_brought() -> None:
    reset = foreign(S3_FAILED.encode()).with_reset()
    assert (reset.error, reset.retry_count) == (None, 0)
    assert json.loads(reset.to_json()) == json.loads(S3_FRESH)


def test_sd11_a_trace_does_not_grow_the_message() -> None:
    message = ours()
    for _ in range(50):
        message = message.with_incremented_retry().with_error("e" * 10**6, "c" * 10**6, "t" * 10**6)
    assert len(message.body or b"") == len(ours().body or b"")
    assert len(message.to_json()) < len(ours().to_json()) + ERROR_TEXT_BUDGET + ERROR_TRACE_BUDGET + 1000


def test_sd11_a_long_trace_keeps_its_end_where_the_exception_is() -> None:
    error = ours().with_error("m" * 5000, "E", "Traceback\n" + "  frame\n" * 5000 + "ValueError: no").error
    assert error is not None
    assert error.trace.endswith("ValueError: no")
    assert "characters cut" in error.trace
    assert error.message.endswith(f"[{5000 - ERROR_TEXT_BUDGET} characters cut]")


def test_data_and_metadata_keep_their_bytes_when_the_error_changes() -> None:
    body = S3_FRESH.replace("299.9", "1e2").replace('"high"', '"h\\u0069gh"').encode()
    later = json.dumps("1e2").encode()  # what a reader and writer of numbers would have lost
    text = foreign(body).with_error("a", "b", "c").to_json()
    assert b"1e2" in text
    assert later not in text
    assert b'"h\\u0069gh"' in text


def test_big_integers_are_exact() -> None:
    big = 2**64 + 1
    assert ours(data={"n": big, "m": -(10**40)}).data == {"n": big, "m": -(10**40)}
    assert foreign(b'{"n":123456789012345678901234567890}').data == {"n": 123456789012345678901234567890}
    assert b"123456789012345678901234567890" in foreign(b'{"n":123456789012345678901234567890}').to_json()


@pytest.mark.parametrize(
    "data",
    [object(), {"a": object()}, {"a": "\ud800"}, {(1, 2): 3}, 10**5000],
    ids=["object", "object inside", "surrogate", "tuple as key", "huge"],
)
def test_data_that_cannot_be_sent_is_a_type_error(data: Any) -> None:
    with pytest.raises(TypeError, match="the data cannot be written as JSON"):
        ours(data=data)


def test_data_that_contains_itself_is_a_type_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="the metadata cannot be written as JSON"):
        ours(metadata={"loop": loop})


DEEP = b"[" * 20_000 + b"]" * 20_000
HOSTILE = {
    "nothing": None,
    "empty": b"",
    "invalid UTF-8": b"\xff\xfe{",
    "NUL": b"a\x00b",
    "deep": DEEP,
    "deep in an envelope": S3_FRESH.replace("123", DEEP.decode()).encode(),
    "deep and unclosed": b'{"data":' * 20_000,
    "huge integer": b"9" * 5000,
    "duplicate keys": b'{"a":1,"a":2}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "lone surrogate": b'{"a":"\\ud800"}',
    "not a number": b"NaN",
    "too large a float": b"1e999",
    "an envelope with a list as source": S3_FRESH.replace('"checkout-service"', "[]").encode(),
    "an envelope with half an error": S3_FRESH.replace('"error": null', '"error": {"message": "x"}').encode(),
    "an envelope cut off": S3_FRESH.encode()[:-5],
    "two envelopes": S3_FRESH.encode() * 2,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=list(HOSTILE))
def test_any_bytes_are_a_message(body: bytes | None) -> None:
    message = foreign(body)
    assert message.envelope is None
    assert message.payload == body
    assert message.metadata == {}
    assert message.correlation_id is None
    assert (message.error, message.retry_count, message.version) == (None, 0, None)
    failed = shown(message.with_incremented_retry().with_error("x", "y", "z"))
    assert list(failed) == FIELDS
    assert failed["retry_count"] == 1


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        (None, None),
        (b"", ""),
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b"plain text", "plain text"),
        (b"a\x00b", "a\x00b"),
        (b"\xff\x00", {"base64": "/wA="}),
        (b'"\\ud800"', '"\\ud800"'),
        (DEEP, DEEP.decode()),
    ],
    ids=["nothing", "empty", "JSON", "text", "NUL", "binary", "surrogate", "deep"],
)
def test_a_foreign_body_is_shown_as_its_json_its_text_or_base64(body: bytes | None, seen: object) -> None:
    assert shown(foreign(body))["data"] == seen


def test_nothing_and_empty_stay_two_things() -> None:
    assert foreign(None).payload is None
    assert foreign(b"").payload == b""
    with pytest.raises(ValueError, match="no body"):
        read_json(foreign(None).payload)
    with pytest.raises(ValueError, match="not JSON"):
        read_json(foreign(b"").payload)


def test_json_that_nests_too_deep_is_a_value_error_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="too deep"):
        read_json(DEEP)


def test_an_integer_that_python_will_not_read_stays_in_the_bytes() -> None:
    message = foreign(S3_FRESH.replace('"order_id": 123', '"order_id": ' + "9" * 5000).encode())
    with pytest.raises(ValueError, match="not JSON"):
        read_json(message.payload)
    assert b"9" * 5000 in message.with_incremented_retry().to_json()


def test_a_repr_shows_no_payload() -> None:
    message = ours(data="CANARY", headers=(("token", "CANARY"),), key=b"CANARY").with_error("CANARY", "", "")
    letter = [message, {"of": message}]
    assert "CANARY" not in repr(letter)
    assert "CANARY" not in str(message.__rich_repr__())
    assert message.id in repr(message)


def test_the_error_about_a_payload_does_not_repeat_it() -> None:
    with pytest.raises(ValueError, match="not JSON") as refused:
        read_json(b'{"card": CANARY')
    assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize("count", ["-1", "2147483648", "99999999999999999999999999", "1.5", '"3"', "true"])
def test_an_absurd_retry_count_makes_no_envelope(count: str) -> None:
    hostile = foreign(S3_FRESH.replace('"retry_count": 0', f'"retry_count": {count}').encode())
    assert hostile.envelope is None
    assert hostile.with_incremented_retry().retry_count == 1
    assert msgspec.msgpack.encode(hostile.with_incremented_retry().overlay)


@pytest.mark.parametrize("metadata", ['{"a":"\udcff"}', "[1]", "null", '"text"'])
def test_metadata_that_is_no_readable_object_is_empty(metadata: str) -> None:
    body = S3_FRESH.replace('"metadata": {', f'"metadata": {metadata}, "was": {{')
    message = foreign(body.encode("utf-8", "surrogateescape"))
    assert message.envelope is not None
    assert message.metadata == {}
    assert message.correlation_id is None


def test_a_correlation_id_that_is_no_text_is_none() -> None:
    assert foreign(S3_FRESH.replace('"abc-123"', "17").encode()).correlation_id is None


def test_lone_surrogates_in_what_a_broker_said_can_still_be_shown() -> None:
    message = Message(id="\ud800", queue="\udfff", body=b"x", sent_at=SENT_AT, source="\udc80")
    assert list(shown(message.with_error("\ud800", "\ud800", "\ud800"))) == FIELDS


@given(st.binary(max_size=200) | st.none())
@example(b"{}")
@example(S3_FRESH.encode())
def test_looking_for_the_envelope_never_raises(body: bytes | None) -> None:
    message = foreign(body)
    assert isinstance(message.metadata, dict)
    assert list(shown(message.with_incremented_retry())) == FIELDS
    assert message.body is body


@given(st.integers(min_value=0, max_value=len(S3_FAILED) - 1), st.integers(min_value=0, max_value=255))
def test_one_wrong_byte_in_an_envelope_never_raises(place: int, byte: int) -> None:
    raw = bytearray(S3_FAILED.encode())
    raw[place] = byte
    message = foreign(bytes(raw))
    assert isinstance(message.metadata, dict)
    assert message.with_reset().retry_count == 0
    assert message.with_incremented_retry().to_json()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.dictionaries(st.text(), JSON, max_size=4))
def test_what_is_sent_is_what_is_read(data: Any, metadata: dict[str, Any]) -> None:
    message = ours(data=data, metadata=metadata)
    assert message.data == data
    assert message.metadata == metadata
    assert shown(message)["data"] == data
