"""AMQP field tables and properties as hypothesis makes them: every type, any bytes, as they stand on the wire."""

from __future__ import annotations

import math
from struct import unpack

from hypothesis import strategies as st

from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq.table import Entry, joined

FIXED = {b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"U": 2, b"u": 2, b"I": 4, b"i": 4, b"l": 8, b"L": 8, b"f": 4,
         b"d": 8, b"D": 5, b"T": 8, b"V": 0}  # fmt: skip
"""Type octets and the number of bytes that follow them."""
SPECIAL = [b"x-death", b"x-first-death-queue", b"x-last-death-reason", b"x-delivery-count", b"x-acquired-count",
           b"x-redrive", b"x-redrive-id", b"CC", b"BCC", b"a-count"]  # fmt: skip
FLAGS = tuple(1 << bit for bit in range(15, 1, -1))
_UNKNOWN_TO_RABBITMQ = {b"U", b"L"}
_FLOATS = {b"f": ">f", b"d": ">d"}
_SIZES = {props.DELIVERY_MODE: 1, props.PRIORITY: 1, props.TIMESTAMP: 8}

names = st.binary(max_size=20) | st.sampled_from(SPECIAL)


def _fixed(kind: bytes) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=FIXED[kind], max_size=FIXED[kind]).map(lambda raw: kind + raw)


def _long(kind: bytes, inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return inner.map(lambda raw: kind + len(raw).to_bytes(4) + raw)


def _entries(
    inner: st.SearchStrategy[bytes], named: st.SearchStrategy[bytes] = names
) -> st.SearchStrategy[list[Entry]]:
    return st.lists(st.builds(Entry, named, inner), max_size=4)


def _values(fixed: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.recursive(
        fixed | _long(b"S", st.binary(max_size=20)) | _long(b"x", st.binary(max_size=20)),
        lambda inner: (
            _long(b"A", st.lists(inner, max_size=3).map(b"".join))
            | _entries(inner).map(lambda found: b"F" + joined(found))
        ),
        max_leaves=8,
    )


def _kept(raw: bytes) -> bool:
    """RabbitMQ writes every true as 1, and closes the connection of whoever sends it what it does not take."""
    if raw[:1] == b"t":
        return raw[1] <= 1
    form = _FLOATS.get(raw[:1])
    return raw[:1] not in _UNKNOWN_TO_RABBITMQ and (form is None or math.isfinite(unpack(form, raw[1:])[0]))


values = _values(st.sampled_from(sorted(FIXED)).flatmap(_fixed))
"""One field, with its type octet."""
tables = _entries(values).map(joined)
tables_that_rabbitmq_keeps = _entries(
    _values(st.sampled_from(sorted(FIXED)).flatmap(_fixed).filter(_kept)),
    st.binary(max_size=20).filter(lambda name: not name.startswith((b"x-", b"CC", b"BCC"))),
).map(joined)


@st.composite
def properties(draw: st.DrawFn, headers: st.SearchStrategy[bytes] = tables) -> bytes:
    """Any combination of fields, any bytes in them."""
    chosen = draw(st.sets(st.sampled_from(FLAGS)))
    return props.join({flag: draw(headers if flag == props.HEADERS else _field(flag)) for flag in chosen})


def _field(flag: int) -> st.SearchStrategy[bytes]:
    if (size := _SIZES.get(flag)) is not None:
        return st.binary(min_size=size, max_size=size)
    return st.binary(max_size=255).map(lambda raw: bytes((len(raw),)) + raw)
