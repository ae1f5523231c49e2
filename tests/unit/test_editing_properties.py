from __future__ import annotations

import contextlib
import json
import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from redrive.edit_diff import MAX_TEXT, diff
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
    apply,
    json_value,
)
from redrive.errors import EditRefused
from redrive.json_path import dotted, tokens_of
from redrive.json_text import value_at
from redrive.message import Message, read_json
from support.edits_by_hand import NoFit, by_hand, get

WHEN = datetime(2026, 2, 28, 22, 53, 42, tzinfo=UTC)
_operations = msgspec.json.Decoder(tuple[Operation, ...])

keys = st.sampled_from(["a", "b", "0", "1", "-", "", "~", "/", ".", '"', "é"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([1.5, "", "text", 'q"', "😀", 10**30]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
token_lists = st.lists(keys, max_size=4).map(tuple)
raws = values.map(json_value)


def pointer(tokens: tuple[str, ...]) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


@st.composite
def operations(
    draw: st.DrawFn, kinds: tuple[type[Any], ...] = (Add, Replace, Expect, Set, Remove, Move, Copy, Rename)
) -> Operation:
    kind = draw(st.sampled_from(kinds))
    write = draw(st.sampled_from([pointer, dotted]))
    path = write(draw(token_lists))
    if kind in (Move, Copy):
        source, target = draw(token_lists), draw(token_lists)
        assume(kind is Copy or target[: len(source)] != source or target == source)
        moved: Operation = kind(path=write(target), source=write(source))
        return moved
    if kind is Remove:
        return Remove(path=path)
    made: Operation = Rename(path=path, to=draw(keys)) if kind is Rename else kind(path=path, value=draw(raws))
    return made


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """JSON in one of the ways it can be spaced and escaped."""
    indent = draw(st.sampled_from([None, 0, 3]))
    separators = draw(st.sampled_from([(",", ":"), (" ,\t", " : ")]))
    text = json.dumps(draw(values), indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return draw(st.sampled_from(["", " \n"])).encode() + text.encode() + draw(st.sampled_from([b"", b"\r\n "]))


def foreign(body: bytes) -> Message:
    return Message(id="m-1", queue="orders", body=body, sent_at=WHEN)


@given(texts(), operations())
def test_each_operation_means_the_same_in_the_text_as_in_values(body: bytes, operation: Operation) -> None:
    try:
        wanted = by_hand(json.loads(body), operation)
    except NoFit:
        with pytest.raises(EditRefused):
            apply(foreign(body), [operation])
    else:
        found = apply(foreign(body), [operation]).data
        assert json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


@given(values, values, st.lists(operations(), max_size=5))
def test_an_envelope_is_edited_as_its_data_alone_would_be(data: Any, rest: Any, edit: list[Operation]) -> None:
    message = Message.create(id="m-1", sent_at=WHEN, queue="orders", data=data, metadata={"data": rest})
    assert message.payload is not None
    try:
        alone = apply(foreign(message.payload), edit)
    except EditRefused as refused:
        with pytest.raises(EditRefused, match=re.escape(str(refused))):
            apply(message, edit)
    else:
        whole = apply(message, edit)
        assert (whole.payload, whole.metadata) == (alone.body, message.metadata)


paths = st.text(max_size=12) | st.text(st.sampled_from('ab/~01."-\\é'), max_size=12)


def _from_elsewhere(op: str, path: str, source: str) -> dict[str, Any]:
    return {"op": op, "path": path, "from": source}


wild = st.one_of(
    st.builds(dict, op=st.sampled_from(["add", "replace", "test", "set"]), path=paths, value=values),
    st.builds(dict, op=st.just("remove"), path=paths),
    st.builds(_from_elsewhere, st.sampled_from(["move", "copy"]), paths, paths),
    st.builds(dict, op=st.just("rename"), path=paths, to=paths),
    st.builds(dict, op=st.just("set-header"), name=paths, value=values),
    st.builds(dict, op=st.just("remove-header"), name=paths),
)


@given(texts() | st.binary(max_size=40), st.lists(wild, max_size=4))
def test_nothing_but_a_refusal_is_ever_raised(body: bytes, document: list[dict[str, Any]]) -> None:
    try:
        edit = _operations.decode(json.dumps(document))
    except msgspec.DecodeError:  # told before any message is touched
        return
    with contextlib.suppress(EditRefused):
        after = apply(foreign(body), edit, allow_sensitive=True)
        assert after.body == body or read_json(after.body) == after.data


@given(
    st.lists(operations() | st.builds(SetHeader, name=st.just("a"), value=raws) | st.just(RemoveHeader(name="a")))
)
def test_operations_survive_json_exactly(edit: list[Operation]) -> None:
    encoded = msgspec.json.encode(edit)
    assert _operations.decode(encoded) == tuple(edit)
    assert msgspec.json.encode(_operations.decode(encoded)) == encoded


@given(texts(), raws, st.data())
def test_what_is_added_and_removed_again_leaves_every_byte(
    body: bytes, value: msgspec.Raw, data: st.DataObject
) -> None:
    holders = _containers(json.loads(body))
    assume(holders)
    holder = data.draw(st.sampled_from(holders))
    path = pointer((*holder, "0"))
    assume(not isinstance(get(json.loads(body), holder), dict) or "0" not in get(json.loads(body), holder))

    added = apply(foreign(body), [Add(path=path, value=value)])

    assert added.body != body
    assert apply(added, [Remove(path=path)]).body == body


@given(texts(), raws, st.data())
def test_what_is_replaced_and_put_back_leaves_every_byte(
    body: bytes, value: msgspec.Raw, data: st.DataObject
) -> None:
    tokens = data.draw(st.sampled_from(_places(json.loads(body))))
    original = msgspec.Raw(value_at(body.decode(), tokens))

    there = apply(foreign(body), [Replace(path=pointer(tokens), value=value)])

    assert json_value(get(there.data, tokens)) == value
    assert apply(there, [Replace(path=pointer(tokens), value=original)]).body == body


def _containers(value: Any) -> list[tuple[str, ...]]:
    return [tokens for tokens in _places(value) if isinstance(get(value, tokens), dict | list)]


def _places(value: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in inner for place in _places(each, (*at, str(key))))]


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=5).map(tuple))
@example(("\\",))
@example(('.\\"', "\\\\,"))
def test_a_dotted_path_reads_as_what_it_was_written_from(tokens: tuple[str, ...]) -> None:
    assert tokens_of(dotted(tokens)) == tokens
    assert tokens_of(pointer(tokens)) == tokens


@given(texts(), texts())
def test_a_difference_is_told_if_and_only_if_there_is_one(one: bytes, other: bytes) -> None:
    found = diff(foreign(one), foreign(other))
    assert bool(found) == (one != other)
    assert all(len(text or "") <= MAX_TEXT + 40 for each in found for text in (each.before, each.after))


@given(texts(), operations((Set, Replace)))
def test_the_differences_of_an_edit_name_only_places_under_its_paths(body: bytes, operation: Operation) -> None:
    assert isinstance(operation, Set | Replace)
    try:
        after = apply(foreign(body), [operation])
    except EditRefused:
        return
    tokens = tokens_of(operation.path)
    for each in diff(foreign(body), after):
        place = tokens_of(each.place)
        assert all(other in {one, "-"} for one, other in zip(place, tokens, strict=False))
