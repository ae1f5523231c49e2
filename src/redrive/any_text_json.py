"""Values as JSON, whatever stands in their texts, and back."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def encoded(value: Any) -> bytes:
    """Text that is no Unicode (a producer may write a lone surrogate into an id) is told by its escapes: a page
    must not fail because of one letter on it.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode("ascii")


def decoded(raw: bytes, kind: type[T]) -> T:
    """What `encoded` was given, as that type. MsgspecError, ValueError or RecursionError if it is none."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError):
            raise
        return msgspec.convert(json.loads(raw), kind)  # escapes of what is no Unicode are for this one alone
