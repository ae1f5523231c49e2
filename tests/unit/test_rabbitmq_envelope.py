"""S3's `error` and `retry_count` exchanged where they stand, and put back: all other bytes are left alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.message import Message
from redrive.transports.rabbitmq.envelope import restore_control, write_control

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FIELDS: dict[str, Any] = {
    "message_id": "m-1",
    "timestamp": "2026-02-28T22:53:42+00:00",
    "version": "1.0",
    "source": "checkout-service",
    "queue": "orders",
    "data": {"order_id": 123},
    "metadata": {},
    "error": None,
    "retry_count": 0,
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
layouts = st.sampled_from(
    [{}, {"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)
errors = st.none() | st.fixed_dictionaries({"message": texts, "code": texts, "trace": texts})


def message(body: bytes) -> Message:
    return Message(id="m-1", queue="orders", body=body, sent_at=NOW)


def failed(given_message: Message) -> Message:
    return given_message.with_error('quotes " and \\ and é', "E", "line\nline").with_incremented_retry()


@given(jsons, errors, st.integers(0, 5), layouts, st.permutations([*FIELDS, "extra"]))
def test_exchanged_and_put_back_it_is_the_same_bytes(
    data: Any, error: Any, retries: int, layout: dict[str, Any], order: list[str]
) -> None:
    fields = FIELDS | {"data": data, "error": error, "retry_count": retries, "extra": [{"error": 1}]}
    written = {name: fields[name] for name in order}
    body = json.dumps(written, **layout).encode()
    before = failed(message(body))
    if before.envelope is None:  # somebody else's layout is left alone
        return
    body_sent, control = write_control(before)
    told = json.loads(body_sent)
    assert (told["retry_count"], told["error"]["message"]) == (retries + 1, 'quotes " and \\ and é')
    assert {name: told[name] for name in told if name not in {"error", "retry_count"}} == {
        name: json.loads(body)[name] for name in told if name not in {"error", "retry_count"}
    }
    assert list(told) == list(json.loads(body))
    assert control is not None
    assert restore_control(body_sent, control) == body


def test_what_stands_there_already_is_not_touched() -> None:
    body = json.dumps(FIELDS, indent=1).encode()
    assert write_control(message(body)) == (body, None)
    assert restore_control(body, None) == body


def test_only_the_outermost_names_count() -> None:
    nested = FIELDS | {"data": {"error": "keep", "retry_count": 7, "text": '"error": null, "retry_count": 0'}}
    body = json.dumps(nested).encode()
    sent, control = write_control(failed(message(body)))
    assert json.loads(sent)["data"] == nested["data"]
    assert restore_control(sent, control) == body


def test_numbers_keep_the_digits_they_were_written_with() -> None:
    digits = b'{"price": 1.10, "huge": 12345678901234567890123, "e": 1E+2}'
    body = json.dumps(FIELDS).encode().replace(b'{"order_id": 123}', digits)
    sent, _ = write_control(failed(message(body)))
    assert digits in sent


def test_of_a_name_that_comes_twice_the_last_counts_as_for_every_reader() -> None:
    body = json.dumps(FIELDS).encode()[:-1] + b', "retry_count": 3, "error": null}'
    given_message = message(body)
    if given_message.envelope is not None:
        sent, control = write_control(failed(given_message))
        assert json.loads(sent)["retry_count"] == given_message.retry_count + 1
        assert restore_control(sent, control) == body


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"error": null}', b"\xff", b"null", b"{" * 100_000])
def test_a_body_without_a_place_for_them_is_left_as_it_is(body: bytes) -> None:
    assert restore_control(body, (b"null", b"0")) == body
    assert write_control(message(body).with_incremented_retry()) == (body, None)
