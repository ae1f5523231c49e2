from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.headers import decode_headers, encode_headers, header
from redrive.message import Headers

NAMES = st.text(st.characters(), max_size=8)  # lone surrogates included
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**80), max_value=2**80)
    | st.floats(allow_nan=False)
    | NAMES
    | st.binary(max_size=12)
    | st.datetimes(timezones=st.just(UTC))
)
KEYS = st.text(st.characters(), max_size=4) | st.integers(min_value=2**64, max_value=2**70)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def told(value: Any) -> Any:
    """The value with the type of everything in it, for 1 == 1.0 == True and 0.0 == -0.0."""
    if isinstance(value, list):
        return [told(item) for item in value]
    if isinstance(value, dict):
        return [(told(key), told(item)) for key, item in value.items()]
    return type(value), str(value) if isinstance(value, float) else value


def returned(headers: Headers) -> Headers:
    return decode_headers(encode_headers(headers))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
@example([("a", "1"), ("b", b"1"), ("a", 1), ("a", 1.0), ("a", True), ("a", None), ("a", ""), ("a", b"")])
@example([("\ud800", {"\udfff": [2**64, datetime(2020, 1, 1, tzinfo=UTC), {"x": "\ud800"}]})])
@example([("big", 10**5000), ("big", -(10**5000))])
@example([("zero", -0.0), ("limit", 2**64 - 1), ("limit", -(2**63)), ("beyond", 2**64), ("beyond", -(2**63) - 1)])
def test_headers_come_back_with_their_order_repeats_and_types(pairs: list[tuple[str, Any]]) -> None:
    back = returned(tuple(pairs))
    assert [(name, told(value)) for name, value in back] == [(name, told(value)) for name, value in pairs]


def test_no_headers_are_no_bytes() -> None:
    assert encode_headers(()) == b""
    assert decode_headers(b"") == ()


def test_not_a_number_and_infinity_survive() -> None:
    ((_, nothing), (_, endless)) = returned((("a", math.nan), ("b", -math.inf)))
    assert math.isnan(nothing)
    assert endless == -math.inf


def test_a_moment_of_another_zone_is_the_same_moment() -> None:
    moment = datetime(2026, 2, 28, 22, 53, 42, 123456, tzinfo=timezone(timedelta(hours=-3)))
    assert returned((("at", moment),)) == (("at", moment),)


@pytest.mark.parametrize("beside", ["plain", "\ud800"], ids=["alone", "beside a surrogate"])
def test_a_moment_without_a_zone_is_taken_as_utc(beside: str) -> None:
    back = returned((("at", datetime(2026, 1, 1)), ("beside", beside)))  # noqa: DTZ001  a naive one is the case
    assert back[0] == ("at", datetime(2026, 1, 1, tzinfo=UTC))


def test_a_tuple_comes_back_as_a_list() -> None:
    assert returned((("a", (1, (2, "\ud800"))),)) == (("a", [1, [2, "\ud800"]]),)


class Colour(str, Enum):  # noqa: UP042  the older kind of enum is the case
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Mode(StrEnum):
    FAST = "fast"


class Weight(float):
    pass


class Raw(bytes):
    pass


@pytest.mark.parametrize(
    ("subtype", "plain"),
    [(Colour.RED, "red"), (Level.HIGH, 3), (Mode.FAST, "fast"), (Weight(1.5), 1.5), (Raw(b"x"), b"x")],
    ids=["str enum", "int enum", "StrEnum", "float", "bytes"],
)
def test_a_value_of_a_subtype_is_stored_as_what_it_is(subtype: object, plain: object) -> None:
    ((_, value), (_, inside)) = returned((("a", subtype), ("b", [subtype])))
    assert (type(value), value) == (type(plain), plain)
    assert inside == [plain]


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 1j, bytearray(b"x"), [object()], {"a": {"b": object()}}, {(1, 2): 3}, {frozenset(): 3}],
    ids=["object", "set", "complex", "bytearray", "in a list", "in a dict", "tuple as key", "set as key"],
)
@pytest.mark.parametrize("beside", ["plain", "\ud800"])
def test_a_value_that_no_broker_could_carry_is_a_type_error_that_names_its_header(value: Any, beside: str) -> None:
    with pytest.raises(TypeError, match="'x-strange'"):
        encode_headers((("fine", beside), ("x-strange", value)))


def nested(depth: int) -> Any:
    value: Any = "\ud800"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def test_nesting_has_a_limit_and_what_is_within_it_comes_back() -> None:
    assert returned((("a", nested(64)),)) == (("a", nested(64)),)
    with pytest.raises(TypeError, match="'a' nests deeper than 64"):
        encode_headers((("a", nested(65)),))
    with pytest.raises(TypeError, match="'a' nests deeper than 64"):
        encode_headers((("a", nested(900)),))


def test_a_value_that_contains_itself_is_a_type_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="'a' nests deeper"):
        encode_headers((("a", loop),))


@given(st.binary(min_size=1, max_size=60))
@example(b"\x91" * 5000)
@example(b"\x91\x92\xa1a\xc7\x03\x02xyz")  # a big integer that is none
@example(b"\x91\x92\xa1a\xc7\x01\x09x")  # an extension nobody knows
@example(b"\x91\x92\xa1a\xc7\x01\x01\xff")  # text that is none
@example(b"\x91\x92\xa1a\xc7\x02\x03\x91\x01")  # a table that is none
def test_bytes_that_are_not_ours_are_read_or_refused_with_a_value_error(stored: bytes) -> None:
    try:
        headers = decode_headers(stored)
    except ValueError:
        return
    assert all(len(pair) == 2 for pair in headers)


@given(st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=4), st.data())
def test_headers_cut_off_anywhere_are_refused(pairs: list[tuple[str, Any]], data: st.DataObject) -> None:
    stored = encode_headers(tuple(pairs))
    cut = data.draw(st.integers(min_value=1, max_value=len(stored) - 1))
    with pytest.raises(ValueError, match="cannot be read"):
        decode_headers(stored[:cut])


def test_of_a_repeated_header_the_last_value_counts() -> None:
    assert header((("a", 1), ("b", 2), ("a", 3)), "a") == 3
    assert header((("a", 1),), "A") is None
    assert header((), "a") is None
