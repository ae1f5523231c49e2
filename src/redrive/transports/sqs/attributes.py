"""Headers as attributes of a message, and back: at most ten, each a text, a number or bytes, in no order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.control import GENERATION
from redrive.headers import encode_headers
from redrive.transports.sqs.body import is_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redrive.message import Headers

    Attribute = dict[str, Any]

MOST = 10
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_OF_AWS = ("aws.", "amazon.")
_LONGEST_NUMBER = 38
_TEXT, _NUMBER, _BINARY = "String", "Number", "Binary"


class Native(msgspec.Struct, frozen=True):
    attributes: dict[str, Any]
    """By name, in the order of the headers."""
    exact: bool
    """They say all that the headers say."""


def native(headers: Headers, types: Mapping[str, str]) -> Native:
    """What of the headers attributes can say. `types`: those that were more than text or bytes when they came.
    TypeError for a header that no broker could carry.
    """
    found: dict[str, Attribute] = {}
    exact = True
    for name, value in headers:
        attribute = _attribute(name, value, types.get(name))
        same = attribute is not None and (isinstance(value, str | bytes) or name == GENERATION)
        exact = exact and same and name not in found
        if attribute is not None:
            found[name] = attribute
    return Native(found, exact=exact and list(found) == sorted(found))


def size(attributes: Mapping[str, Attribute]) -> int:
    """As SQS counts it."""
    return sum(
        len(name.encode())
        + len(each["DataType"].encode())
        + len(each.get("StringValue", "").encode() or each.get("BinaryValue", b""))
        for name, each in attributes.items()
    )


def read(attributes: Mapping[str, Attribute]) -> Headers:
    """In the order of their names: they have no other. Numbers as the texts that they are."""
    return tuple((name, _value(attributes[name])) for name in sorted(attributes))


def types_of(attributes: Mapping[str, Attribute]) -> dict[str, str]:
    """Of those that are more than a text or bytes: numbers, and types with a label such as `String.uuid`."""
    told = {name: str(each.get("DataType", _TEXT)) for name, each in attributes.items()}
    return {name: kind for name, kind in told.items() if kind not in {_TEXT, _BINARY}}


def text(value: str) -> Attribute:
    return {"DataType": _TEXT, "StringValue": value}


def binary(value: bytes) -> Attribute:
    return {"DataType": _BINARY, "BinaryValue": value}


def _value(attribute: Attribute) -> Any:
    return attribute["BinaryValue"] if "BinaryValue" in attribute else attribute.get("StringValue", "")


def _attribute(name: str, value: Any, kind: str | None) -> Attribute | None:
    encode_headers(((name, value),))  # TypeError for what no broker could carry
    if not value and value != 0:
        return None
    if not _is_name(name):
        return None
    if isinstance(value, bytes):
        of_bytes = kind if kind is not None and kind.startswith(_BINARY) else _BINARY
        return {"DataType": of_bytes, "BinaryValue": bytes(value)}
    if isinstance(value, str):
        of_text = kind if kind is not None and not kind.startswith(_BINARY) else _TEXT
        return {"DataType": of_text, "StringValue": str(value)} if is_text(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_LONGEST_NUMBER:
        return {"DataType": _NUMBER, "StringValue": str(int(value))}
    told = str(value)
    return text(told) if is_text(told) else None


def _is_name(name: str) -> bool:
    dots_apart = ".." not in f".{name}."
    return dots_apart and _NAME.fullmatch(name) is not None and not name.lower().startswith(_OF_AWS)
