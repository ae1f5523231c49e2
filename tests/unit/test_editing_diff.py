from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from redrive.edit_diff import MAX_DIFFERENCES, MAX_TEXT, diff
from redrive.message import Message

WHEN = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)


def foreign(body: bytes | None, *headers: tuple[str, Any]) -> Message:
    return Message(id="m-1", queue="orders", body=body, sent_at=WHEN, headers=headers)


def lines(before: bytes | None, after: bytes | None) -> list[str]:
    return [each.line() for each in diff(foreign(before), foreign(after))]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (b'{"a":{"id":17}}', b'{"a":{"id":18}}', ["~ a.id: 17 -> 18"]),
        (b'{"a":1}', b'{"a":1,"b":{"c":[]}}', ['+ b: {"c":[]}']),
        (b'{"a":1,"b":null}', b'{"a":1}', ["- b: null"]),
        (b'{"a":1.10}', b'{"a":1.1}', ["~ a: 1.10 -> 1.1"]),
        (b'{"a":1}', b'{"a":true}', ["~ a: 1 -> true"]),
        (b'{"a":1}', b'{"a":"1"}', ['~ a: 1 -> "1"']),
        (b'{"a":{}}', b'{"a":[]}', ["~ a: {} -> []"]),
        (b'{"mail":1}', b'{"email":1}', ["- mail: 1", "+ email: 1"]),
        (b'{"a":[1,2,3]}', b'{"a":[1,9,2,3]}', ["+ a.1: 9"]),
        (b'{"a":[1,2,3]}', b'{"a":[1,3]}', ["- a.1: 2"]),
        (b'{"a":[1,1]}', b'{"a":[1]}', ["- a.1: 1"]),
        (b'{"a":[1,{"x":1},3]}', b'{"a":[1,{"x":2},3]}', ["~ a.1.x: 1 -> 2"]),
        (b'{"unit.price":1}', b'{"unit.price":2}', ['~ "unit.price": 1 -> 2']),
        (b"1", b"2", ["~ the whole payload: 1 -> 2"]),
        (b'{"a":NaN,"b":1}', b'{"a":NaN,"b":2}', ["~ b: 1 -> 2"]),
        (b'{"a":"\\ud800"}', b'{"a":2}', ['~ a: "\\ud800" -> 2']),
        (b'{"a":1}', b'{ "a": 1 }', ["~ the whole payload: 7 bytes -> 10 bytes"]),
        (b"text", b'{"a":1}', ["~ the whole payload: 4 bytes -> 7 bytes"]),
        (None, b"\xff", ["~ the whole payload: no body -> 1 bytes"]),
        (b'{"a":1}', b'{"a":1}', []),
    ],
)
def test_payloads(before: bytes | None, after: bytes | None, told: list[str]) -> None:
    assert lines(before, after) == told


def test_only_the_data_of_an_envelope_is_told_by_its_places() -> None:
    one, other = (
        Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": value}, metadata={"m": 1})
        for value in (1, 2)
    )
    assert [each.line() for each in diff(one, other)] == ["~ a: 1 -> 2"]


def test_headers() -> None:
    before = foreign(b"", ("tenant", "acme"), ("n", 1), ("twice", 1), ("twice", 2), ("same", b"\xff"))
    after = foreign(b"", ("tenant", "other"), ("n", True), ("twice", 2), ("same", b"\xff"), ("new", b"\x00"))

    assert [each.line() for each in diff(before, after)] == [
        '~ header tenant: "acme" -> "other"',
        "~ header n: 1 -> true",
        "~ header twice: [1,2] -> 2",
        '+ header new: {"base64":"AA=="}',
    ]


def test_long_values_and_long_lists_of_differences_are_cut() -> None:
    long = b'"' + b"x" * 10_000 + b'"'
    (told,) = diff(foreign(b'{"a":1}'), foreign(b'{"a":' + long + b"}"))
    assert told.after is not None
    assert len(told.after) < MAX_TEXT + 40

    many = b"{" + b",".join(b'"k%d":1' % each for each in range(1000)) + b"}"
    assert len(diff(foreign(b"{}"), foreign(many, ("a", 1)))) == MAX_DIFFERENCES


def test_bodies_too_deep_to_be_compared_are_told_by_their_sizes() -> None:
    deep = b"[" * 700 + b"]" * 700
    assert len(lines(deep, deep.replace(b"[]", b"[1]"))) == 1
    assert lines(b"1", b"[" * 100_000) == ["~ the whole payload: 1 bytes -> 100,000 bytes"]
