from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import google_crc32c
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from redrive.control import RedriveTicket
from redrive.dead_letter import Entry, Fingerprint
from redrive.failure import Failure, FailureKind, Frame, Host, Raised
from redrive.headers import encode_headers
from redrive.message import ErrorNote, Message, Overlay
from redrive.upkeep.spool_record import encode_record, opening, scan
from support.spooled import an_entry

texts = st.text(st.characters(), max_size=20) | st.text(st.characters(categories=["Cs", "Cc"]), max_size=5)
integers = st.integers() | st.integers(min_value=2**63, max_value=2**200)
moments = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  its zone is given apart
values = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False) | texts | st.binary(max_size=20) | moments,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
messages = st.builds(
    Message,
    id=texts,
    queue=texts,
    body=st.none() | st.binary(max_size=200),
    sent_at=moments,
    headers=st.lists(st.tuples(texts, values), max_size=4).map(tuple),
    key=st.none() | st.binary(max_size=20),
    source=st.none() | texts,
    overlay=st.none()
    | st.builds(Overlay, error=st.none() | st.builds(ErrorNote, texts, texts, texts), retry_count=integers),
    properties=st.none() | st.binary(max_size=20),
)
frames = st.builds(Frame, texts, st.integers(0, 2**31), texts, texts, st.booleans())
chains = st.builds(Raised, texts, texts, st.lists(frames, max_size=3).map(tuple), texts)
failures = st.builds(
    Failure,
    attempt=st.integers(0, 100),
    at=moments,
    kind=st.sampled_from(FailureKind),
    handler=texts,
    chain=st.lists(chains, min_size=1, max_size=3).map(tuple),
    host=st.builds(Host, texts, st.integers(0, 2**31), texts, texts, texts),
)
entries_of_all_kinds = st.builds(
    Entry,
    identity=texts,
    message=messages,
    queue=texts,
    handler=texts,
    failures=st.lists(failures, min_size=1, max_size=3).map(tuple),
    fingerprint=st.builds(Fingerprint, texts, texts),
    at=moments,
    first_attempt_at=moments,
    ticket=st.none() | st.builds(RedriveTicket, texts, texts, st.integers(0, 9), texts),
    quarantine=st.none() | texts,
)


@given(st.lists(entries_of_all_kinds, max_size=3), st.binary(min_size=16, max_size=16))
def test_whatever_an_entry_holds_it_is_read_as_it_was_written(entries: list[Entry], mark: bytes) -> None:
    data = b"".join(opening(mark) + encode_record(entry) for entry in entries)
    found = scan(data, mark)

    assert found.damage == []
    assert found.entries == entries
    assert [types_of(entry.message.headers) for entry in found.entries] == [
        types_of(entry.message.headers) for entry in entries
    ]


def types_of(value: Any) -> Any:
    """True equals 1 and 1.0: the types tell them apart."""
    if isinstance(value, list | tuple):
        return [types_of(item) for item in value]
    if isinstance(value, dict):
        return {key: types_of(item) for key, item in value.items()}
    return type(value)


@given(st.binary(max_size=400), st.binary(min_size=16, max_size=16))
def test_whatever_the_bytes_are_reading_them_loses_none_and_never_raises(data: bytes, mark: bytes) -> None:
    found = scan(data, mark)
    assert found.entries == []
    assert b"".join(found.damage) == data


def test_a_whole_record_that_is_not_an_entry_is_damage() -> None:
    mark = bytes(16)
    good = encode_record(an_entry("good"))
    for strange in (b"", b"\xc1", msgspec.msgpack.encode([["identity", 1]]), msgspec.msgpack.encode([[[], {}]])):
        record = _record_with_body(strange)
        found = scan(opening(mark) + record + opening(mark) + good, mark)
        assert [entry.identity for entry in found.entries] == ["good"]
        assert found.damage == [opening(mark) + record]


def test_a_record_of_before_there_were_properties_is_read() -> None:
    mark, entry = bytes(16), an_entry("former", body=b"\xff", headers=(("a", b"\x00"),), key=b"")
    fields = msgspec.to_builtins(entry, builtin_types=(bytes, datetime))
    for name in ("properties", "headers"):
        del fields["message"][name]
    body = encode_headers((*fields.items(), ("headers", encode_headers(entry.message.headers))))

    assert scan(opening(mark) + _record_with_body(body), mark).entries == [entry]


def _record_with_body(body: bytes) -> bytes:
    content = (1).to_bytes(4) + len(body).to_bytes(4) + b"i" + body
    return int(google_crc32c.value(content)).to_bytes(4) + content
