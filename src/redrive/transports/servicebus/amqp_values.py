"""Values of AMQP as they are kept in `Origin`, shown to people, and sent again.

Kept, a value is what MessagePack can say: None, booleans, 32-bit integers, doubles, text and bytes as themselves,
everything else as a pair of its type's name and what there is of it. All functions but `sendable` are total.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from redrive.epoch import EPOCH
from redrive.transports.servicebus import wire_types
from redrive.transports.servicebus.wire_types import KIND

_32_BITS = range(-(2**31), 2**31)
_LONGS = range(-(2**63), 2**63)
_ULONGS = range(2**64)
_UNKNOWN = "UNKNOWN"
_SENDABLE = frozenset(
    {
        *("UBYTE", "BYTE", "USHORT", "SHORT", "UINT", "ULONG", "LONG", "FLOAT", "DECIMAL128", "TIMESTAMP", "UUID"),
        *("STRING", "SYMBOL", "BINARY", "LIST", "ARRAY", "MAP", "DESCRIBED"),
    }
)
"""The SDK cannot encode others."""
_encoder = msgspec.msgpack.Encoder()


def kept(value: Any) -> Any:
    """Of what the SDK has decoded."""
    if hasattr(value, "descriptor"):
        return ["DESCRIBED", [kept(value.descriptor), _described(value)]]
    plain = _kept_plain(value, getattr(value, KIND, ""))
    if plain is not _UNKNOWN:
        return plain
    if isinstance(value, UUID):
        return ["UUID", value.bytes]
    if isinstance(value, Decimal):
        return ["DECIMAL128", str(value)]
    if isinstance(value, list | tuple):
        return [getattr(value, KIND, "LIST"), [kept(each) for each in value]]
    if isinstance(value, dict):
        return ["MAP", [[kept(name), kept(item)] for name, item in value.items()]]
    return [_UNKNOWN, type(value).__name__]


def guessed(value: Any) -> Any:
    """Kept, of a header's value of ours: the type that others would choose for it."""
    if isinstance(value, str) and not _is_text(value):
        return [_UNKNOWN, "text that is no Unicode"]
    if isinstance(value, int) and not isinstance(value, bool):
        return _guessed_integer(int(value))
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH
        return ["TIMESTAMP", since // timedelta(milliseconds=1)]
    return value if isinstance(value, bytes) else kept(value)


def readable(stored: Any) -> Any:
    """For people and handlers: what a header can hold."""
    if not isinstance(stored, list):
        return stored
    kind, value = stored
    if kind in {"LIST", "ARRAY"}:
        return [readable(each) for each in value]
    if kind == "MAP":
        return {_key(readable(name)): readable(item) for name, item in value}
    if kind == "DESCRIBED":
        return readable(value[1])
    if kind == "UUID":
        return str(UUID(bytes=value))
    if kind == "TIMESTAMP":
        return _moment(value)
    if kind == "CHAR":
        return value.decode("utf-32-be", "backslashreplace")
    return _text(value) if kind in {"STRING", "SYMBOL"} else value


def sendable(stored: Any) -> Any:
    """As the SDK takes it. ValueError for what it cannot send."""
    if isinstance(stored, bytes):
        return bytearray(stored)  # of bytes it makes text, and fails if they are none
    if not isinstance(stored, list):
        return stored
    kind, value = stored
    if kind not in _SENDABLE:
        raise ValueError(f"the SDK of Service Bus cannot send a value of the AMQP type {str(kind).lower()}")
    return {"TYPE": kind, "VALUE": _inside(kind, value)}


def packed(stored: Any) -> bytes:
    return _encoder.encode(stored)


def unpacked(raw: bytes) -> Any:
    """ValueError for what `packed` did not make."""
    try:
        return msgspec.msgpack.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this is no packed value of AMQP: {error}") from None


def _inside(kind: str, value: Any) -> Any:
    if kind in {"LIST", "ARRAY"}:
        return [sendable(each) for each in value]
    if kind == "MAP":
        return [(sendable(name), sendable(item)) for name, item in value]
    if kind == "DESCRIBED":
        return tuple(sendable(each) for each in value)
    if kind == "DECIMAL128":
        if not Decimal(value).is_finite():
            raise ValueError("the SDK of Service Bus cannot send a decimal that is no finite number")
        return Decimal(value)
    return value


def _kept_plain(value: Any, kind: str) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, bytes | bytearray):
        return _kept_bytes(bytes(value), kind)
    if isinstance(value, int | float):
        plain = int(value) if isinstance(value, int) else float(value)
        return [kind, plain] if kind else plain if wire_types.told() else guessed(plain)
    return _UNKNOWN


def _guessed_integer(value: int) -> Any:
    if value in _32_BITS:
        return value
    return ["LONG", value] if value in _LONGS else ["ULONG", value] if value in _ULONGS else [_UNKNOWN, str(value)]


def _kept_bytes(raw: bytes, kind: str) -> Any:
    if not kind:
        return raw if wire_types.told() else _text(raw)
    if kind == "STRING" and isinstance(text := _text(raw), str):
        return text
    return [kind, raw]


def _described(value: Any) -> Any:
    """The SDK forgets what type a described value is. Those of .NET (spans, moments, addresses) are these two."""
    if isinstance(value, int):
        return ["LONG", int(value)]
    if isinstance(value, bytes):
        return _kept_bytes(bytes(value), "STRING")
    if isinstance(value, float):
        return float(value)
    return kept(list(value) if isinstance(value, list) else dict(value) if isinstance(value, dict) else value)


def _text(raw: Any) -> Any:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(name: Any) -> Any:
    return name if isinstance(name, str | bytes | int | float | None) else str(name)


def _moment(milliseconds: int) -> datetime | int:
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds
