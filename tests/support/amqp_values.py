"""AMQP field tables and properties as hypothesis makes them: every type, any bytes, as they stand on the wire."""

from __future__ import annotations

from hypothesis import strategies as st

from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq.table import Entry, joined

FIXED = {b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"U": 2, b"u": 2, b"I": 4, b"i": 4, b"l": 8, b"L": 8, b"f": 4,
         b"d": 8, b"D": 5, b"T": 8, b"V": 0}  # fmt: skip
"""Type octets and the number of bytes that follow them."""
_SIZES = {props.DELIVERY_MODE: 1, props.PRIORITY: 1, props.TIMESTAMP: 8}
FLAGS = tuple(1 << bit for bit in range(15, 1, -1))


def _fixed() -> st.SearchStrategy[bytes]:
    def of(kind: bytes) -> st.SearchStrategy[bytes]:
        return st.binary(min_size=FIXED[kind], max_size=FIXED[kind]).map(lambda raw: kind + raw)

    return st.sampled_from(sorted(FIXED)).flatmap(of)


def _long(kind: bytes, inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return inner.map(lambda raw: kind + len(raw).to_bytes(4) + raw)


SPECIAL = [b"x-death", b"x-first-death-queue", b"x-last-death-reason", b"x-delivery-count", b"x-acquired-count",
           b"x-redrive", b"x-redrive-id", b"CC", b"BCC", b"a-count"]  # fmt: skip
names = st.binary(max_size=20) | st.sampled_from(SPECIAL)


def _entries(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Entry]]:
    return st.lists(st.builds(Entry, names, values), max_size=4)


values: st.SearchStrategy[bytes] = st.recursive(
    _fixed() | _long(b"S", st.binary(max_size=20)) | _long(b"x", st.binary(max_size=20)),
    lambda inner: (
        _long(b"A", st.lists(inner, max_size=3).map(b"".join)) | _entries(inner).map(lambda e: b"F" + joined(e))
    ),
    max_leaves=8,
)
"""One field, with its type octet."""
tables = _entries(values).map(joined)


@st.composite
def properties(draw: st.DrawFn) -> bytes:
    """Any combination of fields, any bytes in them."""
    found = {flag: draw(_field(flag)) for flag in draw(st.sets(st.sampled_from(FLAGS)))}
    return props.join(found)


def _field(flag: int) -> st.SearchStrategy[bytes]:
    if flag == props.HEADERS:
        return tables
    if (size := _SIZES.get(flag)) is not None:
        return st.binary(min_size=size, max_size=size)
    return st.binary(max_size=255).map(lambda raw: bytes((len(raw),)) + raw)
