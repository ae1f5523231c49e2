"""Edits that a run makes to each letter of a selection: JSON Patch (RFC 6902), and a few plainer operations.

What is edited is the payload: the envelope's `data`, or a foreign message's whole body. The edit is made in the
text, so whatever no operation names keeps its bytes: spacing, key order, escapes, `1.10`, integers of any length.
A new value stands as it was given; a new key goes behind the others of its object. Where an equal value is set,
the old text stays.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from redrive import json_text
from redrive.errors import EditRefused, Refused
from redrive.header_class import HeaderClass, header_class
from redrive.header_json import value_of
from redrive.json_path import tokens_of
from redrive.message import MAX_ENVELOPE_BYTES, cut, read_json
from redrive.splice import with_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redrive.message import Headers, Message

MAX_HEADER_NAME = 255
MAX_PAYLOAD = 128 * 1024
"""Bytes of a SetPayload: a run's plan holds them, and each of its letters gets a copy."""
_LONGEST_TOLD = 120


def json_value(value: Any) -> msgspec.Raw:
    """A Python value as an operation holds it. TypeError if JSON has no such value."""
    return msgspec.Raw(msgspec.json.encode(value))


class _Edit(msgspec.Struct, frozen=True, kw_only=True, tag_field="op"):
    """ValueError for one that no message could ever take: an operation that exists is well formed."""


class _Placed(_Edit, frozen=True, kw_only=True):
    path: str
    """A JSON Pointer, or keys with dots between them (`json_path`)."""

    def __post_init__(self) -> None:
        tokens_of(self.path)


class _Valued(_Placed, frozen=True, kw_only=True):
    value: msgspec.Raw
    """JSON text, kept as it was written. `json_value` makes one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_value(self.value)


class Add(_Valued, frozen=True, kw_only=True, tag="add"):
    """A new member or element; of a key that is there, a new value."""


class Replace(_Valued, frozen=True, kw_only=True, tag="replace"):
    """Another value at a place that is there."""


class Expect(_Valued, frozen=True, kw_only=True, tag="test"):
    """Refuses the message unless an equal value is there."""


class Set(_Valued, frozen=True, kw_only=True, tag="set"):
    """The value at that place, there or not; objects that are missing on the way are made."""


class Remove(_Placed, frozen=True, kw_only=True, tag="remove"):
    """Takes away what is there."""


class _FromElsewhere(_Placed, frozen=True, kw_only=True):
    source: str = msgspec.field(name="from")

    def __post_init__(self) -> None:
        super().__post_init__()
        tokens_of(self.source)


class Move(_FromElsewhere, frozen=True, kw_only=True, tag="move"):
    """Removes the value at `source` and adds it at `path`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        source, target = tokens_of(self.source), tokens_of(self.path)
        if source == target[: len(source)] and source != target:
            raise ValueError("a value cannot be moved into itself")


class Copy(_FromElsewhere, frozen=True, kw_only=True, tag="copy"):
    """Adds the value at `source` at `path` as well."""


class Rename(_Placed, frozen=True, kw_only=True, tag="rename"):
    """Another key in the same object, at the same place among the others."""

    to: str

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_unicode(self.to)


class _OfHeader(_Edit, frozen=True, kw_only=True):
    name: str
    """Capitals matter, except for the question whether it is locked or sensitive."""

    def __post_init__(self) -> None:
        if not 0 < len(_check_unicode(self.name)) <= MAX_HEADER_NAME:
            raise ValueError(f"a header's name has 1 to {MAX_HEADER_NAME} bytes")


class SetHeader(_OfHeader, frozen=True, kw_only=True, tag="set-header"):
    """One header of that name, at the place of the first that was there, else behind all others."""

    value: msgspec.Raw
    """As `header_json` writes header values: `"text"`, `3`, `{"base64": "AP8="}`, ..."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_value(self.value)
        value_of(read_json(bytes(self.value)))


class RemoveHeader(_OfHeader, frozen=True, kw_only=True, tag="remove-header"):
    """Takes away every header of that name. Refused if there is none."""


class SetPayload(_Edit, frozen=True, kw_only=True, tag="set-payload"):
    """Other bytes for the whole payload, whatever it was. In an envelope of ours they have to be JSON."""

    payload: bytes

    def __post_init__(self) -> None:
        if len(self.payload) > MAX_PAYLOAD:
            raise ValueError(f"a payload for many letters has at most {MAX_PAYLOAD:,} bytes")


BodyOperation: TypeAlias = Add | Replace | Remove | Move | Copy | Expect | Set | Rename
HeaderOperation: TypeAlias = SetHeader | RemoveHeader
Operation: TypeAlias = (
    Add | Replace | Remove | Move | Copy | Expect | Set | Rename | SetPayload | SetHeader | RemoveHeader
)


def check_headers(operations: Sequence[Operation], *, allow_sensitive: bool = False) -> None:
    """EditRefused if one of them touches a header that it may not touch, whatever the message."""
    for number, operation in enumerate(operations, start=1):
        if isinstance(operation, _OfHeader):
            _check_class(number, operation, allow_sensitive=allow_sensitive)


def apply(message: Message, operations: Sequence[Operation], *, allow_sensitive: bool = False) -> Message:
    """The message after all of them, in their order; with the same bytes if they change nothing. All or none:
    EditRefused says which operation does not fit and where, never with a value of the payload.
    """
    check_headers(operations, allow_sensitive=allow_sensitive)
    edited = message
    for of_what, numbered in groupby(enumerate(operations, start=1), key=_what):
        edited = _APPLIED[of_what](edited, list(numbered))
    return edited


_Numbered: TypeAlias = "tuple[int, Any]"


class _What(Enum):
    HEADERS = auto()
    PAYLOAD = auto()
    PLACES = auto()
    """In the payload's text, which is read once for all that stand next to each other."""


def _what(numbered: _Numbered) -> _What:
    operation = numbered[1]
    if isinstance(operation, SetPayload):
        return _What.PAYLOAD
    return _What.HEADERS if isinstance(operation, _OfHeader) else _What.PLACES


def _with_headers(message: Message, numbered: Sequence[_Numbered]) -> Message:
    headers = message.headers
    for number, operation in numbered:
        try:
            headers = _edited_headers(headers, operation)
        except json_text.CannotEdit as reason:
            raise _refused(number, operation, str(reason), reason.remedy) from None
    return message.with_headers(headers)


def _with_places(message: Message, numbered: Sequence[_Numbered]) -> Message:
    text = before = _text(message)
    for number, operation in numbered:
        try:
            text = _bounded(_edited(text, operation), than=before)
        except json_text.CannotEdit as reason:
            raise _refused(number, operation, str(reason), reason.remedy) from None
        except RecursionError:
            raise _refused(number, operation, "the payload nests too deep", "edit it by hand") from None
    return message if text == before else _with_text(message, text)


def _with_bytes(message: Message, numbered: Sequence[_Numbered]) -> Message:
    number, operation = numbered[-1]
    if operation.payload == message.payload:
        return message
    try:
        if message.envelope is not None:
            operation.payload.decode()
        return with_payload(message, operation.payload)
    except (Refused, UnicodeDecodeError):
        raise _refused(
            number,
            operation,
            "the message is in an envelope of ours, whose data is JSON",
            "give JSON, or leave out the letters in our envelope",
        ) from None


_APPLIED: dict[_What, Callable[[Message, list[_Numbered]], Message]] = {
    _What.HEADERS: _with_headers,
    _What.PAYLOAD: _with_bytes,
    _What.PLACES: _with_places,
}


def _text(message: Message) -> str:
    try:
        text = (message.payload or b"").decode()
        json_text.check(text)
    except (ValueError, RecursionError):
        raise EditRefused(
            "the body is not JSON that could be edited by operations",
            remedy="give the whole payload by a file: --payload-file for all, redrive edit ID --from FILE for one",
        ) from None
    return text


def _with_text(message: Message, text: str) -> Message:
    try:
        json_text.check(text)
        return with_payload(message, text.encode())
    except (Refused, ValueError, RecursionError):
        raise EditRefused(
            "the body would not be readable after these operations",
            remedy="look for values that nest too deep or grow too large",
        ) from None


def _edited(text: str, operation: BodyOperation) -> str:
    return _EDITS[type(operation)](text, tokens_of(operation.path), operation)


def _move(text: str, tokens: json_text.Tokens, operation: Move) -> str:
    source = tokens_of(operation.source)
    value = json_text.value_at(text, source)
    return text if source == tokens else json_text.add(json_text.remove(text, source), tokens, value)


def _expect(text: str, tokens: json_text.Tokens, operation: Expect) -> str:
    if not json_text.equal(json_text.value_at(text, tokens), _value(operation)):
        raise json_text.CannotEdit("another value is there", "leave out the letters that have another value")
    return text


def _value(operation: Add | Replace | Expect | Set) -> str:
    return bytes(operation.value).decode().strip(" \t\n\r")


_EDITS: dict[type, Callable[[str, json_text.Tokens, Any], str]] = {
    Add: lambda text, tokens, operation: json_text.add(text, tokens, _value(operation)),
    Replace: lambda text, tokens, operation: json_text.replace(text, tokens, _value(operation)),
    Set: lambda text, tokens, operation: json_text.put(text, tokens, _value(operation)),
    Remove: lambda text, tokens, _: json_text.remove(text, tokens),
    Rename: lambda text, tokens, operation: json_text.rename(text, tokens, operation.to),
    Copy: lambda text, tokens, operation: json_text.add(
        text, tokens, json_text.value_at(text, tokens_of(operation.source))
    ),
    Move: _move,
    Expect: _expect,
}


def _bounded(text: str, *, than: str) -> str:
    # A copy of the whole into itself doubles it: a few dozen of them would fill any memory.
    if len(text) > max(MAX_ENVELOPE_BYTES, len(than)):
        raise json_text.CannotEdit(
            "the payload would become too large", f"stay below {MAX_ENVELOPE_BYTES:,} bytes"
        )
    return text


def _edited_headers(headers: Headers, operation: HeaderOperation) -> Headers:
    names = [name for name, _ in headers]
    kept = tuple(pair for pair in headers if pair[0] != operation.name)
    if isinstance(operation, SetHeader):
        new = operation.name, value_of(read_json(bytes(operation.value)))
        # Nothing of that name stands before the first of that name, so its place is the same among the kept ones.
        at = names.index(operation.name) if operation.name in names else len(kept)
        return (*kept[:at], new, *kept[at:])
    if operation.name not in names:
        raise json_text.CannotEdit("there is no such header", "leave out the letters that do not have it")
    return kept


def _check_class(number: int, operation: HeaderOperation, *, allow_sensitive: bool) -> None:
    found = header_class(operation.name)
    if found is HeaderClass.LOCKED:
        raise _refused(number, operation, "this header is locked", "leave it: it tells which message this is")
    if found is HeaderClass.SENSITIVE and not allow_sensitive:
        raise _refused(
            number,
            operation,
            "this header is sensitive",
            "allow it with --allow-sensitive if it really has to change",
        )


def _refused(number: int, operation: Operation, reason: str, remedy: str) -> EditRefused:
    place = _place(operation)
    told = cut(place, _LONGEST_TOLD) or "the whole payload"
    kind = operation.__struct_config__.tag
    return EditRefused(
        f"operation {number} ({kind} {told}): {reason}", operation=number, place=place, remedy=remedy
    )


def _place(operation: Operation) -> str:
    if isinstance(operation, SetPayload):
        return ""
    return operation.name if isinstance(operation, _OfHeader) else operation.path


def is_json(text: bytes) -> bool:
    """Strictly: NaN and Infinity are none."""
    try:
        _strict.decode(text.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _check_value(value: msgspec.Raw) -> None:
    if not is_json(bytes(value)):
        raise ValueError("a value is not JSON")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_strict = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)


def _check_unicode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("a name is not valid Unicode text") from None
