"""The properties of a message as bytes: every combination of fields cut apart and joined without changing one."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.transports.rabbitmq import properties as props
from support import amqp_values

FIELDS = {
    props.CONTENT_TYPE: b"\x04json",
    props.CONTENT_ENCODING: b"\x04gzip",
    props.HEADERS: b"\x00\x00\x00\x03\x01aV",
    props.DELIVERY_MODE: b"\x02",
    props.PRIORITY: b"\x09",
    props.CORRELATION_ID: b"\x02c1",
    props.REPLY_TO: b"\x00",
    props.EXPIRATION: b"\x0260",
    props.MESSAGE_ID: b"\x03m-1",
    props.TIMESTAMP: b"\x00\x00\x00\x00\x65\x00\x00\x01",
    props.TYPE: b"\x01t",
    props.USER_ID: b"\x05guest",
    props.APP_ID: b"\x02\xff\xfe",
    props.CLUSTER_ID: b"\x01c",
}


def test_every_combination_of_fields_comes_back_and_a_glance_agrees() -> None:
    assert len(FIELDS) == 14
    for size in range(len(FIELDS) + 1):
        for flags in combinations(FIELDS, size):
            chosen = {flag: FIELDS[flag] for flag in flags}
            raw = props.join(chosen)
            assert props.fields(raw) == chosen
            assert props.glance(raw) == (
                b"m-1" if props.MESSAGE_ID in chosen else None,
                0x65000001 if props.TIMESTAMP in chosen else None,
                b"\xff\xfe" if props.APP_ID in chosen else None,
                FIELDS[props.HEADERS] if props.HEADERS in chosen else None,
            )


@given(amqp_values.properties())
def test_any_properties_cut_apart_and_joined_are_the_same_bytes(raw: bytes) -> None:
    found = props.fields(raw)
    assert props.join(found) == raw
    seen = props.glance(raw)
    assert seen.table == found.get(props.HEADERS)
    assert seen.message_id == (found[props.MESSAGE_ID][1:] if props.MESSAGE_ID in found else None)
    assert seen.app_id == (found[props.APP_ID][1:] if props.APP_ID in found else None)
    timestamp = found.get(props.TIMESTAMP)
    assert seen.timestamp == (None if timestamp is None else int.from_bytes(timestamp))


@given(amqp_values.properties(), st.data())
def test_properties_that_break_off_or_go_on_are_none(raw: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(raw) - 1))
    for wrong in (raw[:end], raw + b"\x00"):
        with pytest.raises(ValueError, match="the properties"):
            props.fields(wrong)


@given(st.binary())
def test_any_bytes_are_properties_or_a_value_error(raw: bytes) -> None:
    for read in (props.fields, props.glance):
        with suppress(ValueError):
            read(raw)


def test_fields_that_amqp_0_9_1_does_not_know_are_not_guessed_at() -> None:
    for flag in (0x0001, 0x0002):
        with pytest.raises(ValueError, match="does not know"):
            props.fields(flag.to_bytes(2))


def test_a_short_string_has_at_most_255_bytes() -> None:
    assert props.short(b"x" * 255) == b"\xff" + b"x" * 255
    assert props.short(b"x" * 256) is None
