from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from redrive.editing import (
    Add,
    Copy,
    Expect,
    Move,
    Operation,
    Remove,
    RemoveHeader,
    Rename,
    Replace,
    Set,
    SetHeader,
    SetPayload,
    apply,
    check_headers,
    json_value,
)
from redrive.errors import EditRefused
from redrive.message import Message

WHEN = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)
_operations = msgspec.json.Decoder(tuple[Operation, ...])


def foreign(body: bytes | None, headers: tuple[tuple[str, Any], ...] = ()) -> Message:
    return Message(id="m-1", queue="orders", body=body, sent_at=WHEN, headers=headers)


def edited(body: bytes, *operations: Operation) -> bytes | None:
    return apply(foreign(body), operations).body


def setting(path: str, value: Any) -> Set:
    return Set(path=path, value=json_value(value))


# The examples of RFC 6902's appendix: document, patch, and the document afterwards (None: an error).
RFC_6902 = {
    "a member is added": (
        b'{"foo":"bar"}',
        b'[{"op":"add","path":"/baz","value":"qux"}]',
        b'{"foo":"bar","baz":"qux"}',
    ),
    "an element is added before another": (
        b'{"foo":["bar","baz"]}',
        b'[{"op":"add","path":"/foo/1","value":"qux"}]',
        b'{"foo":["bar","qux","baz"]}',
    ),
    "a member is removed": (b'{"baz":"qux","foo":"bar"}', b'[{"op":"remove","path":"/baz"}]', b'{"foo":"bar"}'),
    "an element is removed": (
        b'{"foo":["bar","qux","baz"]}',
        b'[{"op":"remove","path":"/foo/1"}]',
        b'{"foo":["bar","baz"]}',
    ),
    "a value is replaced": (
        b'{"baz":"qux","foo":"bar"}',
        b'[{"op":"replace","path":"/baz","value":"boo"}]',
        b'{"baz":"boo","foo":"bar"}',
    ),
    "a value moves to another object": (
        b'{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
        b'[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
        b'{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
    ),
    "an element moves in its array": (
        b'{"foo":["all","grass","cows","eat"]}',
        b'[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
        b'{"foo":["all","cows","eat","grass"]}',
    ),
    "a test passes": (
        b'{"baz":"qux","foo":["a",2,"c"]}',
        b'[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
        b'{"baz":"qux","foo":["a",2,"c"]}',
    ),
    "a test fails": (b'{"baz":"qux"}', b'[{"op":"test","path":"/baz","value":"bar"}]', None),
    "an object is added": (
        b'{"foo":"bar"}',
        b'[{"op":"add","path":"/child","value":{"grandchild":{}}}]',
        b'{"foo":"bar","child":{"grandchild":{}}}',
    ),
    "what an operation holds beside is ignored": (
        b'{"foo":"bar"}',
        b'[{"op":"add","path":"/baz","value":"qux","xyz":123}]',
        b'{"foo":"bar","baz":"qux"}',
    ),
    "add does not make what should hold it": (
        b'{"foo":"bar"}',
        b'[{"op":"add","path":"/baz/bat","value":"qux"}]',
        None,
    ),
    "escapes in a pointer are read in the right order": (
        b'{"/":9,"~1":10}',
        b'[{"op":"test","path":"/~01","value":10}]',
        b'{"/":9,"~1":10}',
    ),
    "a number is no text": (b'{"/":9,"~1":10}', b'[{"op":"test","path":"/~01","value":"10"}]', None),
    "an array is added behind the last element": (
        b'{"foo":["bar"]}',
        b'[{"op":"add","path":"/foo/-","value":["abc","def"]}]',
        b'{"foo":["bar",["abc","def"]]}',
    ),
}


@pytest.mark.parametrize(("before", "patch", "after"), RFC_6902.values(), ids=RFC_6902)
def test_json_patch(before: bytes, patch: bytes, after: bytes | None) -> None:
    operations = _operations.decode(patch)
    if after is None:
        with pytest.raises(EditRefused):
            edited(before, *operations)
    else:
        assert edited(before, *operations) == after


SPACED = b"""{ "total" : 1.10,
  "customer": { "name": "Jos\\u00e9", "id": 12345678901234567890123 },
  "items": [ {"sku":"A-17", "n": 1e2}, 2 ]
}
"""


def test_what_no_operation_names_keeps_its_bytes() -> None:
    after = edited(SPACED, setting("customer.id", 7), Remove(path="/items/1"))

    assert after == SPACED.replace(b"12345678901234567890123", b"7").replace(b", 2 ]", b" ]")


def test_a_new_value_stands_as_it_was_written() -> None:
    exact = msgspec.Raw(b'{"a": 1.10, "b":99999999999999999999999}')

    assert edited(b'{"x":0}', Set(path="x", value=exact)) == b'{"x":' + bytes(exact) + b"}"


def test_in_an_envelope_only_the_data_changes() -> None:
    message = Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": 1}, metadata={"a": 1})
    assert message.body is not None

    after = apply(message, [setting("a", 2)])

    assert after.body == message.body.replace(b'"data":{"a":1}', b'"data":{"a":2}')
    assert (after.id, after.data, after.metadata) == ("m-1", {"a": 2}, {"a": 1})


def test_the_whole_payload_of_an_envelope_can_be_replaced() -> None:
    message = Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": 1})

    assert apply(message, [Replace(path="", value=msgspec.Raw(b" [1] "))]).data == [1]


@pytest.mark.parametrize(
    "operation",
    [
        setting("customer.name", "José"),
        Replace(path="/items", value=msgspec.Raw(b'[{"n":1e2,"sku":"A-17"},2]')),
        Move(path="/items/0", source="items.0"),
        Rename(path="total", to="total"),
        Expect(path="total", value=msgspec.Raw(b"1.1")),
    ],
    ids=lambda operation: operation.__struct_config__.tag,
)
def test_operations_that_change_nothing_leave_the_message_as_it_is(operation: Operation) -> None:
    message = foreign(SPACED)
    assert apply(message, [operation]) is message


def test_another_way_to_write_a_number_is_a_change() -> None:
    assert edited(b'{"a":1.10}', Set(path="a", value=msgspec.Raw(b"1.1"))) == b'{"a":1.1}'
    assert edited(b'{"a":1}', setting("a", "1")) == b'{"a":"1"}'
    assert edited(b'{"a":1}', setting("a", value=True)) == b'{"a":true}'


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        (b"{}", "a.b.c", b'{"a":{"b":{"c":1}}}'),
        (b'{ "x": 0 }', "a.b", b'{ "x": 0,"a":{"b":1} }'),
        (b'{"a":[5]}', "a.0", b'{"a":[1]}'),
        (b'{"a":[5]}', "a.1.b", b'{"a":[5,{"b":1}]}'),
        (b'{"a":[ ]}', "/a/-", b'{"a":[1 ]}'),
        (b'{"0":5}', "0", b'{"0":1}'),
        (b"{}", '"a.b"."="', b'{"a.b":{"=":1}}'),
        (b"{}", "/a~1b/é", '{"a/b":{"é":1}}'.encode()),
        (b"5", "", b"1"),
    ],
)
def test_set_makes_what_is_missing(before: bytes, path: str, after: bytes) -> None:
    assert edited(before, setting(path, 1)) == after


def test_rename_keeps_the_place_among_the_other_keys() -> None:
    assert edited(b'{"a":1, "b" : 2,"c":3}', Rename(path="b", to='q"')) == b'{"a":1, "q\\"" : 2,"c":3}'


def test_a_copy_of_a_value_keeps_its_text() -> None:
    assert edited(b'{"a":1.10}', Copy(path="b", source="/a")) == b'{"a":1.10,"b":1.10}'


def test_operations_see_what_those_before_them_did() -> None:
    operations: list[Operation] = [
        Rename(path="a", to="b"),
        setting("b.c", 1),
        Expect(path="/b/c", value=json_value(1.0)),
    ]

    assert edited(b'{"a":{}}', *operations) == b'{"b":{"c":1}}'


HIDDEN = "hunter2"
HOLDER = b'{"password":"hunter2","list":["hunter2"],"twice":1,"twice":2,"text":"hunter2","one":1}'
REFUSED = {
    "nothing to remove": Remove(path="customer"),
    "nothing on the way": Remove(path="customer.id"),
    "nothing to replace": Replace(path="/list/7", value=json_value(1)),
    "nothing to rename": Rename(path="customer", to="x"),
    "nothing to move": Move(path="x", source="customer"),
    "nothing to copy": Copy(path="x", source="customer"),
    "another value": Expect(path="password", value=json_value("other")),
    "not the same kind": Expect(path="twice", value=json_value(1)),
    "true is not 1": Expect(path="one", value=json_value(value=True)),
    "a text holds nothing": setting("text.inner", 1),
    "an array has no keys": Add(path="list.first", value=json_value(1)),
    "the array is too short": Add(path="list.3", value=json_value(1)),
    "a leading zero is no place": Remove(path="/list/00"),
    "behind the last there is nothing": Remove(path="/list/-"),
    "the whole cannot be removed": Remove(path=""),
    "the whole has no key": Rename(path="", to="x"),
    "an element has no key": Rename(path="list.0", to="x"),
    "the new key is taken": Rename(path="password", to="text"),
    "a key that comes twice": Remove(path="twice"),
    "moved away with all that should hold it": Move(path="/list/0/x", source="/list/1"),
}


@pytest.mark.parametrize("operation", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_by_its_number_and_place_without_values(operation: Operation) -> None:
    harmless = setting("new", 1)
    with pytest.raises(EditRefused) as refused:
        apply(foreign(HOLDER), [harmless, operation])

    error = refused.value
    assert error.operation == 2
    assert str(error).startswith(f"operation 2 ({operation.__struct_config__.tag} ")
    assert error.remedy
    assert HIDDEN not in str(error) + error.remedy


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"plain text",
        b"\xff\xfe",
        '{"a":1}'.encode("utf-16"),
        b'\xef\xbb\xbf{"a":1}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":1} trailing',
    ],
    ids=["none", "empty", "text", "bytes", "utf-16", "bom", "deep", "trailing"],
)
def test_a_body_that_is_not_json_is_refused_for_body_operations_only(body: bytes | None) -> None:
    with pytest.raises(EditRefused, match="not JSON") as refused:
        apply(foreign(body), [setting("a", 1)])
    assert "--from FILE" in refused.value.remedy

    assert apply(foreign(body), [SetHeader(name="tenant", value=json_value("acme"))]).body == body


def test_what_python_writes_and_json_does_not_know_can_be_replaced() -> None:
    assert edited(b'{"a":NaN,"b":"\\ud800"}', setting("a", None)) == b'{"a":null,"b":"\\ud800"}'


def test_copies_into_itself_end_before_memory_does() -> None:
    doubling = [Copy(path="/list/-", source="")] * 60
    with pytest.raises(EditRefused, match="too large"):
        apply(foreign(b'{"list":["' + b"x" * 1000 + b'"]}'), doubling)


def test_a_payload_that_would_nest_too_deep_is_refused() -> None:
    deeper: list[Operation] = [
        Move(path="/a/0", source="/b"),
        Move(path="/b", source="/a"),
        Add(path="/a", value=msgspec.Raw(b"[]")),
    ]
    with pytest.raises(EditRefused):
        apply(foreign(b'{"a":[],"b":[]}'), deeper * 1100)


def test_a_payload_is_read_again_after_its_edit() -> None:
    deep = next(depth for depth in range(1000, 0, -5) if _reads(b"[" * (depth + 10) + b"]" * (depth + 10)))
    body = b'{"a":' + b"[" * deep + b"]" * deep + b"}"
    inner = ".".join("b" * 60)
    wrapped: list[Operation] = [setting(inner, {}), Move(path=f"{inner}.c", source="a")]

    assert apply(foreign(body), wrapped[:1]).body != body
    with pytest.raises(EditRefused, match="readable"):
        apply(foreign(body), wrapped)


def _reads(body: bytes) -> bool:
    try:
        apply(foreign(body), [Expect(path="", value=json_value(1))])
    except EditRefused as refused:
        return refused.operation == 1
    return True


HEADERS = (("tenant", "acme"), ("a", 1), ("tenant", b"\xff"), ("x-redrive-id", "r-1"))


def headers_after(*operations: Operation, allow_sensitive: bool = False) -> tuple[tuple[str, Any], ...]:
    return apply(foreign(b"", HEADERS), operations, allow_sensitive=allow_sensitive).headers


def test_a_header_is_set_where_the_first_of_its_name_stood() -> None:
    assert headers_after(SetHeader(name="tenant", value=json_value("new"))) == (
        ("tenant", "new"),
        ("a", 1),
        ("x-redrive-id", "r-1"),
    )
    assert headers_after(SetHeader(name="b", value=json_value([1]))) == (*HEADERS, ("b", [1]))


def test_a_header_changes_its_type() -> None:
    changed = headers_after(SetHeader(name="a", value=json_value(value=True)))
    assert repr(changed[1]) == "('a', True)"


def test_a_header_can_hold_bytes() -> None:
    assert headers_after(SetHeader(name="a", value=json_value({"base64": "AP8="})))[1] == ("a", b"\x00\xff")


def test_all_headers_of_a_name_are_removed() -> None:
    assert headers_after(RemoveHeader(name="tenant")) == (("a", 1), ("x-redrive-id", "r-1"))


def test_a_header_that_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(EditRefused, match="operation 1"):
        headers_after(RemoveHeader(name="Tenant"))


@pytest.mark.parametrize("name", ["x-redrive-id", "X-Redrive-Sig", "x-death", "message_id", "CC"])
def test_a_locked_header_stays_whoever_asks(name: str) -> None:
    for operation in (SetHeader(name=name, value=json_value(1)), RemoveHeader(name=name)):
        with pytest.raises(EditRefused, match="locked"):
            check_headers([operation], allow_sensitive=True)
        with pytest.raises(EditRefused, match="locked"):
            headers_after(operation, allow_sensitive=True)


def test_a_sensitive_header_changes_only_where_it_is_allowed() -> None:
    operation = SetHeader(name="Authorization", value=json_value("Bearer 2"))
    with pytest.raises(EditRefused, match="sensitive") as refused:
        headers_after(setting("a", 1), operation)
    assert "Bearer" not in str(refused.value)

    assert headers_after(operation, allow_sensitive=True)[-1] == ("Authorization", "Bearer 2")


MALFORMED: dict[str, bytes] = {
    "a value that is not JSON": b'[{"op":"add","path":"/a","value":"\xff"}]',
    "a pointer with a bare tilde": b'[{"op":"remove","path":"/a~2"}]',
    "a missing key": b'[{"op":"remove","path":"a..b"}]',
    "an open quote": b'[{"op":"remove","path":"\\"a"}]',
    "something behind a quote": b'[{"op":"remove","path":"\\"a\\"b"}]',
    "a quote in a word": b'[{"op":"remove","path":"a\\"b\\""}]',
    "a move into itself": b'[{"op":"move","from":"/a","path":"a.b"}]',
    "a bad source": b'[{"op":"copy","from":"a.","path":"b"}]',
    "a path without end": b'[{"op":"remove","path":"' + b"/a" * 65 + b'"}]',
    "a path too long": b'[{"op":"remove","path":"' + b"a" * 5000 + b'"}]',
    "a header without a name": b'[{"op":"remove-header","name":""}]',
    "a header's name too long": b'[{"op":"remove-header","name":"' + b"a" * 256 + b'"}]',
    "a header's bytes that are none": b'[{"op":"set-header","name":"a","value":{"base64":"?"}}]',
}


@pytest.mark.parametrize("document", MALFORMED.values(), ids=MALFORMED)
def test_an_operation_that_no_message_could_take_cannot_exist(document: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        _operations.decode(document)


def test_a_value_never_shows_in_a_repr() -> None:
    assert HIDDEN not in repr(setting("password", HIDDEN))


@pytest.mark.parametrize(
    "payload",
    [b"<a/>", b"", b'1},"x":{', b"\xff", b'"\xed\xa0\x80"', b"[1", b'1,"data":2', b"{}{}", b"{" * 5000],
    ids=range(9),
)
def test_a_payload_that_is_not_json_fits_foreign_messages_only(payload: bytes) -> None:
    enveloped = Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": 1})
    with pytest.raises(EditRefused, match="whose data is JSON"):
        apply(enveloped, [SetPayload(payload=payload)])
    assert apply(foreign(b'{"a":1}'), [SetPayload(payload=payload)]).body == payload
    assert apply(foreign(None), [SetPayload(payload=payload)]).body == payload


def test_a_payload_in_an_envelope_is_its_data_without_what_is_white_around_it() -> None:
    enveloped = Message.create(id="m-1", sent_at=WHEN, queue="orders", data={"a": 1})
    edited = apply(enveloped, [SetPayload(payload=b'\n {"b": 2}\r\n')])
    assert edited.body == (enveloped.body or b"").replace(b'{"a":1}', b'{"b": 2}')


def test_operations_on_places_see_a_payload_that_was_set_before_them() -> None:
    edit: list[Operation] = [setting("x", 1), SetPayload(payload=b'{"a":1}'), setting("b", 2)]
    assert apply(foreign(b"{}"), edit).body == b'{"a":1,"b":2}'
    with pytest.raises(EditRefused, match="not JSON"):
        apply(foreign(b"{}"), [SetPayload(payload=b"<a/>"), setting("b", 2)])
