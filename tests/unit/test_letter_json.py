"""A letter as JSON and back: nothing lost, nothing altered (G2), and nothing believed that is not right."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.dead_letter import DeadLetter, Status
from redrive.header_json import headers_of, plain, plain_headers, value_of
from redrive.letter_json import letter_of, letter_values
from redrive.message import Message
from redrive.testing.letters import a_message
from support.hostile import Hostile, corpus, exactly
from support.whole_letters import a_whole_letter

HOSTILE = corpus()


def through_text(values: Any) -> Any:
    return json.loads(json.dumps(values))


def facts(message: Message) -> Any:
    return exactly([getattr(message, name) for name in message.__struct_fields__])


def test_a_whole_letter_comes_back_equal() -> None:
    letter = a_whole_letter()

    assert letter_of(through_text(letter_values(letter))) == letter


@pytest.mark.parametrize("hostile", HOSTILE, ids=[each.name for each in HOSTILE])
def test_every_hostile_message_comes_back_byte_for_byte(hostile: Hostile) -> None:
    letter = a_whole_letter(hostile.message)

    back = letter_of(through_text(letter_values(letter)))

    assert facts(back.message) == facts(hostile.message)
    assert facts(back.revisions[1].message) == facts(hostile.message)


@pytest.mark.parametrize("status", Status)
def test_every_status_comes_back(status: Status) -> None:
    letter = a_whole_letter(status=status, how=None)

    assert letter_of(through_text(letter_values(letter))) == letter


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**100), 2**100)
    | st.floats()
    | st.binary(max_size=20)
    | st.text(st.characters(codec=None), max_size=20)
    | st.datetimes(timezones=st.just(UTC)).map(lambda each: each.replace(fold=0)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["base64", "time", "table", "int", "float"]), inner
        )
    ),
    max_leaves=10,
)


@given(values)
def test_any_header_value_comes_back_with_its_types(value: Any) -> None:
    assert exactly(value_of(through_text(plain(value)))) == exactly(value)


def test_a_table_that_looks_like_bytes_is_not_taken_for_them() -> None:
    tables: list[dict[str, Any]] = [{"base64": "AA=="}, {"table": []}, {"time": 1}, {"int": {"float": "nan"}}]
    for value in tables:
        assert value_of(through_text(plain(value))) == value


def test_what_json_knows_stands_as_it_is_for_people_to_read() -> None:
    headers = (("x-death", [{"count": 1, "queue": "orders"}]), ("priority", 5), ("x", b"\x00"))

    told = plain_headers(headers)

    assert told == [["x-death", [{"count": 1, "queue": "orders"}]], ["priority", 5], ["x", {"base64": "AA=="}]]
    assert headers_of(told) == headers


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        "x",
        [["x"]],
        [[1, 2]],
        [["x", {"base64": "%"}]],
        [["x", {"base64": 7}]],
        [["x", {"time": "noon"}]],
        [["x", {"int": "0xg"}]],
        [["x", {"float": "1.5"}]],
        [["x", {"table": 7}]],
        [["x", {"table": [[[], 1]]}]],
    ],
)
def test_headers_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="header"):
        headers_of(wrong)


def test_headers_that_nest_too_deep_are_refused() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="deeper"):
        headers_of([["x", deep]])


WRONG: dict[str, Any] = {
    "id": ["", "x", 7, None, "018F0000-0000-7000-8000-000000000003", "018f0000-0000-7000-8000-000000000003\n"],
    "status": ["OPEN", None, 1],
    "kind": ["worse"],
    "group_id": ["", "x" * 32, "ab" * 17],
    "generation": [-1, 2**31, 1.5, "1"],
    "deliveries": [2**31],
    "attempts": [2**60],
    "created_at": ["noon", "2026-01-01T12:00:00", None, 10**30],
    "message": [None, {}, []],
    "failures": [{}, [{}], [None]],
    "revisions": [[{"number": 0}]],
    "history": [[{"what": "x"}]],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, each) for field, several in WRONG.items() for each in several]
)
def test_a_field_that_is_wrong_is_named(field: str, value: Any) -> None:
    told = through_text(letter_values(a_whole_letter()))

    with pytest.raises(ValueError, match=field):
        letter_of({**told, field: value})


@pytest.mark.parametrize("wrong", [None, 1, "x", [], {}, {"id": 7}, [[[]]]])
def test_what_is_no_letter_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        letter_of(wrong)


def test_a_body_that_is_not_what_it_says_is_refused() -> None:
    told = through_text(letter_values(a_whole_letter(a_message(body=b"\xff"))))
    for body, encoding in (("%%%", "base64"), ("\ud800", "utf-8"), ("x", "latin-1")):
        broken = copy.deepcopy(told)
        broken["message"] |= {"body": body, "body_encoding": encoding}
        with pytest.raises(ValueError, match=r"body|utf-8"):
            letter_of(broken)


def test_properties_are_base64_and_told_apart_from_none() -> None:
    told = [
        letter_values(a_whole_letter(a_message(properties=each)))["message"]["properties"]
        for each in (None, b"", b"{}", b"\xff")
    ]

    assert told == [None, "", "e30=", "/w=="]


def test_properties_that_are_no_base64_are_refused() -> None:
    told = through_text(letter_values(a_whole_letter()))
    several: list[Any] = ["%%%", "\ud800", 7, []]
    for wrong in several:
        with pytest.raises(ValueError, match="properties"):
            letter_of({**told, "message": {**told["message"], "properties": wrong}})


def test_a_letter_of_before_there_were_properties_has_none() -> None:
    letter = a_whole_letter()
    told = through_text(letter_values(letter))
    for message in (told["message"], *(each["message"] for each in told["revisions"])):
        del message["properties"]

    assert letter_of(told) == letter


def test_a_letter_of_a_list_is_read_as_far_as_it_goes() -> None:
    bare = msgspec.structs.replace(a_whole_letter(), failures=(), generations=(), revisions=(), history=())
    told = letter_values(bare)
    for name in ("failures", "revisions", "history"):
        del told[name]

    assert letter_of(through_text(told)) == bare


def test_a_version_differs_when_anything_has_changed() -> None:
    letter = a_whole_letter()
    later = datetime(2030, 1, 1, tzinfo=UTC)
    changes: list[dict[str, Any]] = [{"deliveries": 9}, {"generation": 9}, {"revision": 9}, {"changed_at": later}]

    versions = [letter.version, *(msgspec.structs.replace(letter, **each).version for each in changes)]

    assert len(set(versions)) == 5
    assert isinstance(letter, DeadLetter)
