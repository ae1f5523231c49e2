from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.edit_parsing import parse_operations
from redrive.editing import Add, Move, Operation, Remove, RemoveHeader, Rename, Set, SetHeader, json_value
from redrive.errors import UsageError


def setting(path: str, value: Any) -> Set:
    return Set(path=path, value=json_value(value))


@pytest.mark.parametrize(
    ("option", "text", "operation"),
    [
        ("set", "customer.id=17", setting("customer.id", 17)),
        ("set", "/customer/id=17", setting("/customer/id", 17)),
        ("set", 'a="17"', setting("a", "17")),
        ("set", "a=seventeen", setting("a", "seventeen")),
        ("set", "a=", setting("a", "")),
        ("set", "a==", setting("a", "=")),
        ("set", "a=b=c", setting("a", "b=c")),
        ("set", '"a=b"."c\\"="=1', setting('"a=b"."c\\"="', 1)),
        ("set", '/a"=1', setting('/a"', 1)),
        ("set", "a=NaN", setting("a", "NaN")),
        ("set", "a=01", setting("a", "01")),
        ("set", "a=null", setting("a", None)),
        ("set", "a=[1, 2", setting("a", "[1, 2")),
        ("set", "a=two\nlines", setting("a", "two\nlines")),
        ("set", "a=1.10", Set(path="a", value=msgspec.Raw(b"1.10"))),
        ("set", 'a={"b": 1}', Set(path="a", value=msgspec.Raw(b'{"b": 1}'))),
        ("set", "a=123456789012345678901234567890", setting("a", 123456789012345678901234567890)),
        ("remove", "customer.note", Remove(path="customer.note")),
        ("remove", "a=b", Remove(path="a=b")),
        ("rename", "customer.mail=email", Rename(path="customer.mail", to="email")),
        ("rename", "a=1", Rename(path="a", to="1")),
        ("set-header", "tenant=acme", SetHeader(name="tenant", value=json_value("acme"))),
        ("set-header", "a.b=3", SetHeader(name="a.b", value=json_value(3))),
        ("remove-header", "tenant", RemoveHeader(name="tenant")),
    ],
)
def test_options(option: str, text: str, operation: Operation) -> None:
    assert parse_operations([(option, text)]) == (operation,)


def test_operations_keep_their_order_and_a_patch_stands_among_them() -> None:
    patch = (
        b'[{"op":"add","path":"/a","value":1.10},{"op":"move","from":"/a","path":"/b"},{"op":"remove","path":"c"}]'
    )

    assert parse_operations([("set", "x=1"), ("patch", patch), ("remove", "y")]) == (
        setting("x", 1),
        Add(path="/a", value=msgspec.Raw(b"1.10")),
        Move(path="/b", source="/a"),
        Remove(path="c"),
        Remove(path="y"),
    )


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("set", "hunter2"),
        ("set", "=hunter2"),
        ("set", ""),
        ("set", "a..b=hunter2"),
        ("set", '"a=hunter2'),
        ("set", "/a~=hunter2"),
        ("set", "a=\udcff"),
        ("remove", ""),
        ("remove", "a."),
        ("rename", "a"),
        ("rename", "=a"),
        ("set-header", "hunter2"),
        ("set-header", "=hunter2"),
        ("set-header", 'a={"base64": "hunter2?"}'),
        ("remove-header", ""),
        ("remove-header", "x" * 256),
    ],
)
def test_what_cannot_be_read_is_told_with_an_example_and_without_its_value(option: str, text: str) -> None:
    with pytest.raises(UsageError) as wrong:
        parse_operations([(option, text)])

    assert str(wrong.value).startswith(f"--{option}: ")
    assert f"--{option} " in wrong.value.remedy
    assert "hunter2" not in str(wrong.value)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xff",
        b"{}",
        b'{"op":"remove","path":"/a"}',
        b'[{"op":"add","path":"/a"}]',
        b'[{"op":"replace","value":"hunter2"}]',
        b'[{"op":"explode","path":"/a","value":"hunter2"}]',
        b'[{"op":"add","path":"/~","value":"hunter2"}]',
        b'[{"op":"add","path":7,"value":"hunter2"}]',
        b'[{"op":"add","path":"/a","value":"hunter2\xff"}]',
        b"[" * 100_000,
    ],
    ids=range(11),
)
def test_a_patch_that_cannot_be_read_is_told_without_its_values(document: bytes) -> None:
    with pytest.raises(UsageError, match="the patch is not") as wrong:
        parse_operations([("patch", document)])

    assert "hunter2" not in str(wrong.value)
    assert "6902" in wrong.value.remedy


def test_an_edit_has_a_largest_number_of_operations() -> None:
    with pytest.raises(UsageError, match="1,001 operations"):
        parse_operations([("remove", "a")] * 1001)


@given(st.sampled_from(["set", "remove", "rename", "set-header", "remove-header"]), st.text())
def test_no_text_raises_anything_else(option: str, text: str) -> None:
    try:
        found = parse_operations([(option, text)])
    except UsageError:
        return
    encoded = msgspec.json.encode(found)
    assert msgspec.json.decode(encoded, type=tuple[Operation, ...]) == found
