"""What a transport must carry without changing a byte of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from redrive.message import ErrorNote, Overlay

BODIES: dict[str, bytes | None] = {
    "nothing": None,
    "empty": b"",
    "JSON with a NUL": b'{"name": "a\\u0000b", "nul": "\x00"}',
    "every byte": bytes(range(256)) * 3,
    "not UTF-8": b"\xff\xfe\x80abc",
    "a mebibyte": bytes(range(256)) * 4096,
}
HEADERS: dict[str, tuple[tuple[str, Any], ...]] = {
    "none": (),
    "an order that is not the alphabet's": (("b", 1), ("a", 2), ("c", 3)),
    "a name repeated": (("trace", "1"), ("trace", "2"), ("other", ""), ("trace", "1")),
    "text and bytes of the same letters": (("text", "abc"), ("bytes", b"abc"), ("empty", ""), ("none", b"")),
    "numbers": (("int", 1), ("float", 1.0), ("true", True), ("tenth", 0.1), ("huge", 10**40), ("least", -(2**63))),
    "nothing as a value": (("none", None), ("empty name", None), ("", "")),
    "text that is no Unicode": (("half a pair", "\ud83d"), ("\udcff", b"\xff"), ("nul", "\x00")),
    "a date": (("when", datetime(2031, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)),),
    "nested": (("table", {"list": [1, "a", b"b", None, {"deeper": [True, 2.5, 10**30]}]}), ("list", [])),
    "a thousand": tuple((f"name-{number}", number) for number in range(1000)),
}
TEXTS = {
    "usual": "order-17",
    "NUL": "a\x00b",
    "half a surrogate pair": "\ud83d and \udcff",
    "not Latin": "Größe \N{GRINNING FACE} 日本語",
    "long": "x" * 10_000,
    "like SQL": "'; DROP TABLE messages; --",
}
OVERLAY = Overlay(ErrorNote("no customer \N{GRINNING FACE}", "NoCustomer", "Traceback ..."), 3)
