"""AMQP field tables: read with every type, cut apart and joined without changing a byte, total on any input."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.transports.rabbitmq import table as tables
from redrive.transports.rabbitmq.table import Entry, Inexact
from support import amqp_values

READ: list[tuple[bytes, Any]] = [
    (b"t\x00", False),
    (b"t\x01", True),
    (b"t\x07", True),
    (b"b\xff", -1),
    (b"B\xff", 255),
    (b"s\xff\xfe", -2),
    (b"U\xff\xfe", -2),
    (b"u\xff\xfe", 65534),
    (b"I\xff\xff\xff\xff", -1),
    (b"i\xff\xff\xff\xff", 2**32 - 1),
    (b"l" + b"\xff" * 8, -1),
    (b"L" + b"\x7f" + b"\xff" * 7, 2**63 - 1),
    (b"f\x3f\x80\x00\x00", 1.0),
    (b"d\x3f\xf1\x99\x99\x99\x99\x99\x9a", 1.1),
    (b"D\x02\x00\x00\x00\x7b", 1.23),
    (b"T\x00\x00\x00\x00\x00\x00\x00\x01", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    (b"T" + b"\xff" * 8, 2**64 - 1),
    (b"V", None),
    (b"\x00", None),
    (b"S\x00\x00\x00\x02\xc3\xa9", "é"),
    (b"S\x00\x00\x00\x02\xff\xfe", b"\xff\xfe"),
    (b"S\x00\x00\x00\x00", ""),
    (b"x\x00\x00\x00\x02ab", b"ab"),
    (b"A\x00\x00\x00\x03t\x01V", [True, None]),
    (b"A\x00\x00\x00\x00", []),
    (b"F\x00\x00\x00\x04\x01at\x01", {"a": True}),
    (b"F\x00\x00\x00\x04\x02\xff\xfeV", {"\udcff\udcfe": None}),
]


@pytest.mark.parametrize(("raw", "value"), READ, ids=[str(raw) for raw, _ in READ])
def test_every_type_is_read(raw: bytes, value: Any) -> None:
    found = tables.value_of(raw)
    assert (found, type(found)) == (value, type(value))
    assert tables.entries(tables.joined([Entry(b"name", raw)])) == [Entry(b"name", raw)]


def test_no_type_is_forgotten() -> None:
    assert {raw[:1] for raw, _ in READ} == {*amqp_values.FIXED, b"\x00", b"S", b"x", b"A", b"F"}


@given(amqp_values.tables)
def test_a_table_cut_apart_and_joined_is_the_same_bytes(table: bytes) -> None:
    assert tables.joined(tables.entries(table)) == table


@given(amqp_values.values)
def test_every_field_can_be_looked_at(raw: bytes) -> None:
    tables.value_of(raw)


@given(amqp_values.tables, st.data())
def test_a_table_that_breaks_off_is_none(table: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(table) - 1))
    with pytest.raises(ValueError, match="a field table"):
        tables.entries(table[:end])
    with pytest.raises(ValueError, match="a field table"):
        tables.entries(table + b"\x00")


@given(st.binary())
def test_any_bytes_are_a_table_or_a_value_error(raw: bytes) -> None:
    for read in (tables.entries, tables.value_of):
        with suppress(ValueError):
            read(raw)


@given(st.binary(max_size=40))
def test_a_table_with_any_bytes_inside_is_cut_apart_though_nobody_can_read_it(inner: bytes) -> None:
    raw = b"F" + len(inner).to_bytes(4) + inner
    table = tables.joined([Entry(b"broken", raw), Entry(b"whole", b"V")])
    assert tables.entries(table) == [Entry(b"broken", raw), Entry(b"whole", b"V")]


@pytest.mark.parametrize("kind", [b"A", b"F"])
def test_however_deep_it_nests_it_is_read_without_an_end_of_the_stack(kind: bytes) -> None:
    raw = b"V"
    for _ in range(5000):
        inner = raw if kind == b"A" else b"\x01a" + raw
        raw = kind + len(inner).to_bytes(4) + inner
    assert tables.value_of(raw)
    assert tables.joined(tables.entries(tables.joined([Entry(b"deep", raw)])))


names = st.text(max_size=20)
exact = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.binary(max_size=20)
    | st.integers(0, 2**37).map(lambda seconds: datetime.fromtimestamp(seconds, tz=UTC)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(exact)
def test_what_can_be_written_reads_back_as_itself(value: Any) -> None:
    assert repr(tables.value_of(tables.write(value))) == repr(value)  # repr: 1 is not 1.0, and True is not 1


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        "\ud83d",
        datetime(2026, 1, 1),  # noqa: DTZ001  without a zone on purpose
        datetime(2026, 1, 1, microsecond=1, tzinfo=UTC),
        datetime(1969, 12, 31, tzinfo=UTC),
        math.nan,
        -math.inf,
        {1: "a"},
        {"x" * 256: 1},
    ],
    ids=repr,
)
def test_what_amqp_cannot_say_is_inexact(value: Any) -> None:
    for given_value in (value, [value], {"in": value}):
        with pytest.raises(Inexact):
            tables.write(given_value)


def test_what_no_broker_can_say_is_a_type_error() -> None:
    deep: Any = None
    for _ in range(100):
        deep = [deep]
    for value in (object(), {1, 2}, deep):
        with pytest.raises(TypeError):
            tables.write(value)


@given(st.binary(max_size=255))
def test_a_name_of_any_bytes_comes_back_as_those(raw: bytes) -> None:
    assert tables.name_of(tables.text_of(raw)) == raw


@pytest.mark.parametrize("name", ["x" * 256, "é" * 128, "\ud83d"])
def test_a_name_that_has_no_place_is_inexact(name: str) -> None:
    with pytest.raises(Inexact):
        tables.name_of(name)
