from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.errors import Refused
from redrive.message import Message
from redrive.splice import with_data

WHEN = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)


def enveloped(body: bytes) -> Message:
    return Message(id="m-1", queue="orders", body=body, sent_at=WHEN)


SPACED = b"""{ "retry_count": 0, "message_id": "m-1",
   "note": {"data": "not this one"}, "timestamp": "2026-02-28T22:53:42+00:00",
   "version":"1.0","source":"\\"data\\": {}", "queue":"orders",
   "data" : {"total": 1.10, "id": 12345678901234567890123}  , "metadata": {"data": {"total": 1.10}},
   "error" : null }"""


def test_only_the_bytes_of_data_change() -> None:
    changed = with_data(enveloped(SPACED), b'{"total":2}')

    before = b'{"total": 1.10, "id": 12345678901234567890123}'
    assert changed.body == SPACED.replace(before, b'{"total":2}')
    assert changed.data == {"total": 2}


def test_characters_outside_ascii_before_the_data_do_not_shift_its_place() -> None:
    body = Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": 1}, source="café 😀").body
    assert body is not None

    changed = with_data(enveloped(body), '{"a":"é"}'.encode())

    assert changed.body == body.replace(b'{"a":1}', '{"a":"é"}'.encode())


def test_of_two_data_keys_the_one_that_readers_see_is_exchanged() -> None:
    body = SPACED.replace(b'"error"', b'"data": [1], "error"')
    assert enveloped(body).data == [1]

    changed = with_data(enveloped(body), b"[2]")

    assert changed.body == body.replace(b"[1]", b"[2]")


def test_data_whose_end_cannot_be_told_is_refused_with_the_way_out() -> None:
    deep = Message.create(id="m-1", sent_at=WHEN, queue="orders", data=1)
    assert deep.body is not None
    body = deep.body.replace(b'"data":1', b'"data":' + b"[" * 100_000 + b"]" * 100_000)

    with pytest.raises(Refused) as refused:
        with_data(enveloped(body), b"2")

    assert "--body" in refused.value.remedy


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(values, values, st.dictionaries(st.sampled_from(["data", "x", '"']), values, max_size=2))
def test_everything_but_data_reads_as_before(before: object, after: object, metadata: dict[str, object]) -> None:
    message = Message.create(id="m-1", sent_at=WHEN, queue="orders", data=before, source="data", metadata=metadata)
    wanted = Message.create(id="m-1", sent_at=WHEN, queue="orders", data=after, source="data", metadata=metadata)
    assert wanted.payload is not None

    changed = with_data(message, wanted.payload)

    assert changed.body == wanted.body
