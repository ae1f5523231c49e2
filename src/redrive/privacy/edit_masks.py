"""The edit of a run as it is shown: what it writes into messages is masked as those messages are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.editing import Add, Expect, Replace, Set, SetHeader, SetPayload, json_value
from redrive.header_class import HIDDEN, HeaderClass, header_class
from redrive.json_path import tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.editing import Operation
    from redrive.privacy.masking import Masker

_VALUED = (Add, Replace, Expect, Set)
_MASKED = "[masked]"


def masked_edit(operations: Sequence[Operation], masker: Masker) -> tuple[Operation, ...]:
    """Values of headers that let somebody in are hidden, whatever the rules are."""
    return tuple(_masked(each, masker) for each in operations)


def _masked(operation: Operation, masker: Masker) -> Operation:
    if isinstance(operation, SetHeader):
        return msgspec.structs.replace(operation, value=_header(operation, masker))
    if isinstance(operation, SetPayload):
        return msgspec.structs.replace(operation, payload=masker.payload(operation.payload) or b"")
    if isinstance(operation, _VALUED):
        return msgspec.structs.replace(operation, value=_value(operation.path, bytes(operation.value), masker))
    return operation


def _header(operation: SetHeader, masker: Masker) -> msgspec.Raw:
    if header_class(operation.name) is HeaderClass.SENSITIVE:
        return json_value(HIDDEN)
    value = msgspec.json.decode(operation.value)
    shown = masker.header(operation.name, value)
    return operation.value if shown == value else json_value(shown if isinstance(shown, str) else _MASKED)


def _value(path: str, value: bytes, masker: Masker) -> msgspec.Raw:
    """Masked where it will stand: the names on the way there tell as much as the value itself."""
    tokens = [str(each) for each in tokens_of(path)]
    around = b"".join(b"{" + msgspec.json.encode(each) + b":" for each in tokens)
    shown: bytes = masker.payload(around + value + b"}" * len(tokens)) or b""
    try:
        for each in tokens:
            shown = bytes(msgspec.json.decode(shown, type=dict[str, msgspec.Raw])[each])
    except (msgspec.DecodeError, KeyError):  # hidden as a whole, or a name that is masked itself
        return json_value(_MASKED)
    return msgspec.Raw(shown)
