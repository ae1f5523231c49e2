"""What the SDK's codec forgets of a value: text or bytes, how wide a number is, that it is a time. G2 needs it.

The SDK has no place where the bytes of a message could be had. So its table of decoders is given others: they call
the old ones and give what those gave, as subtypes of `int`, `float`, `bytes` and `list`, so that nobody who uses
the SDK in this process notices. Three are new. `char`, `decimal32` and `decimal64` it cannot decode, and
`decimal128` it decodes wrongly, most values not at all: such a message (any with a `decimal` of .NET) would break
the link of everybody who receives it, again and again. And its encoder takes `{"TYPE": ..., "VALUE": ...}` for a
value of that type everywhere but where a body is one value: it learns that.

Both tables are private. Where a version has none, or others, nothing is touched, types are guessed, and a body
that is no data cannot be sent.
"""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Decoder = Callable[..., tuple[memoryview, Any]]

KIND = "amqp"
"""The attribute of a value that has its type's name: the SDK's names. What has none is as Python says."""

_NAMES: dict[int, tuple[str, type]] = {
    0x43: ("UINT", int),
    0x44: ("ULONG", int),
    0x50: ("UBYTE", int),
    0x51: ("BYTE", int),
    0x52: ("UINT", int),
    0x53: ("ULONG", int),
    0x55: ("LONG", int),
    0x60: ("USHORT", int),
    0x61: ("SHORT", int),
    0x70: ("UINT", int),
    0x72: ("FLOAT", float),
    0x80: ("ULONG", int),
    0x81: ("LONG", int),
    0x83: ("TIMESTAMP", int),
    0xA1: ("STRING", bytes),
    0xA3: ("SYMBOL", bytes),
    0xB1: ("STRING", bytes),
    0xB3: ("SYMBOL", bytes),
    0xE0: ("ARRAY", list),
    0xF0: ("ARRAY", list),
}
_FIXED: dict[int, tuple[str, int]] = {0x73: ("CHAR", 4), 0x74: ("DECIMAL32", 4), 0x84: ("DECIMAL64", 8)}
_DECIMAL128 = 0x94
_SPECIAL, _INFINITE = 0b11, 0b11110
_BIAS = 6176
_installed = False


def _kind(name: str, of: type) -> type:
    return type(name.title(), (of,), {KIND: name})


_KINDS = {
    name: _kind(name, of) for name, of in {*_NAMES.values(), *((name, bytes) for name, _ in _FIXED.values())}
}


def told() -> bool:
    """Whether `install` has worked: a value without a kind is then a 32-bit integer, a double, or bytes."""
    return _installed


def install() -> bool:
    """Whether types are told from now on. Safe to repeat."""
    global _installed  # noqa: PLW0603  the table is one for all, and so is this
    if _installed:
        return True
    try:
        decoders = import_module("azure.servicebus._pyamqp._decode")._DECODE_BY_CONSTRUCTOR  # noqa: SLF001  see above
        encoders = import_module("azure.servicebus._pyamqp._encode")._ENCODE_MAP  # noqa: SLF001  see above
        known = all(callable(decoders[code]) for code in (*_NAMES, _DECIMAL128)) and callable(encoders[None])
    except (ImportError, AttributeError, LookupError, TypeError):
        return False
    if known:
        _teach(decoders, encoders)
        _installed = True
    return known


def _teach(decoders: list[Decoder | None], encoders: dict[str | None, Callable[..., None]]) -> None:
    for code, (name, _) in _NAMES.items():
        decoders[code] = _telling(decoders[code], _KINDS[name])
    for code, (name, width) in _FIXED.items():
        decoders[code] = decoders[code] or _fixed(_KINDS[name], width)
    decoders[_DECIMAL128] = _decimal128
    untyped = encoders[None]

    def encode(output: bytearray, value: Any, **how: Any) -> None:
        typed = isinstance(value, dict) and value.keys() == {"TYPE", "VALUE"} and value["TYPE"] in encoders
        if typed:
            encoders[value["TYPE"]](output, value["VALUE"], **how)
        else:
            untyped(output, value, **how)

    encoders[None] = encode


def _telling(decode: Any, kind: type) -> Decoder:
    def told(buffer: memoryview, *depth: int) -> tuple[memoryview, Any]:
        rest, value = decode(buffer, *depth)
        return rest, kind(value)

    return told


def _fixed(kind: type, width: int) -> Decoder:
    def opaque(buffer: memoryview, *_: int) -> tuple[memoryview, Any]:
        return buffer[width:], kind(buffer[:width].tobytes())

    return opaque


def _decimal128(buffer: memoryview, *_: int) -> tuple[memoryview, Decimal]:
    """IEEE 754, a binary integer and an exponent. Infinities and what is no number are that."""
    bits = int.from_bytes(buffer[:16])
    sign, top = bits >> 127, bits >> 125 & _SPECIAL
    if top == _SPECIAL:
        infinite = bits >> 122 & 0b11111 == _INFINITE
        return buffer[16:], Decimal("-Infinity" if sign else "Infinity") if infinite else Decimal("NaN")
    digits = tuple(map(int, str(bits & (1 << 113) - 1)))
    return buffer[16:], Decimal((sign, digits, (bits >> 113 & 0x3FFF) - _BIAS))
