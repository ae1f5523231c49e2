from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.control import (
    GENERATION,
    LETTER,
    OURS,
    REDRIVE_ID,
    SIGNATURE,
    RedriveTicket,
    carries_ticket,
    read_ticket,
    stamp,
    strip,
)
from redrive.message import Headers

KEY = b"k" * 32
TICKET = RedriveTicket("redrive-1", "letter-1", 2, "orders")
STAMPED = stamp((("a", 1),), TICKET, KEY)

names = st.sampled_from([*sorted(OURS), "X-Redrive-Sig", "user"]) | st.text(st.characters(), max_size=5)
values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(), max_size=70)
    | st.binary(max_size=40)
    | st.just("0" * 64)
)


def changed(name: str, value: Any) -> Headers:
    return tuple((each, value if each == name else old) for each, old in STAMPED)


def without(name: str) -> Headers:
    return tuple(pair for pair in STAMPED if pair[0] != name)


def test_a_ticket_that_we_signed_is_believed() -> None:
    assert read_ticket(STAMPED, "orders", KEY) == TICKET


@given(st.lists(st.tuples(names, values), max_size=8), st.text(max_size=5))
@example([(REDRIVE_ID, "a"), (LETTER, "b"), (GENERATION, 1), (SIGNATURE, "c")], "orders")
@example([(REDRIVE_ID, "a"), (LETTER, "b"), (GENERATION, 10**5000), (SIGNATURE, "c")], "orders")
@example([(REDRIVE_ID, "\ud800"), (LETTER, "\ud800"), (GENERATION, -1), (SIGNATURE, "\udfff")], "orders")
@example([(REDRIVE_ID, "a"), (LETTER, "b"), (GENERATION, 1), (SIGNATURE, b"c")], "orders")
def test_no_headers_that_we_did_not_sign_make_a_ticket(headers: list[tuple[str, Any]], target: str) -> None:
    assert read_ticket(tuple(headers), target, KEY) is None


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_truncated_ticket_is_not_believed(name: str) -> None:
    assert read_ticket(without(name), "orders", KEY) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (REDRIVE_ID, "redrive-2"),
        (REDRIVE_ID, b"redrive-1"),
        (REDRIVE_ID, None),
        (LETTER, "letter-2"),
        (GENERATION, 3),
        (GENERATION, 2.0),
        (GENERATION, "2"),
        (GENERATION, True),
        (GENERATION, -2),
        (SIGNATURE, ""),
        (SIGNATURE, "0" * 64),
        (SIGNATURE, None),
        (SIGNATURE, dict(STAMPED)[SIGNATURE].encode()),
        (SIGNATURE, dict(STAMPED)[SIGNATURE].upper()),
        (SIGNATURE, dict(STAMPED)[SIGNATURE][:-1]),
        (SIGNATURE, dict(STAMPED)[SIGNATURE] + "0"),
    ],
)
def test_a_ticket_with_one_thing_changed_is_not_believed(name: str, value: Any) -> None:
    assert read_ticket(changed(name, value), "orders", KEY) is None


def test_a_ticket_for_another_queue_is_not_believed() -> None:
    assert read_ticket(STAMPED, "payments", KEY) is None


def test_a_ticket_of_another_store_is_not_believed() -> None:
    assert read_ticket(STAMPED, "orders", b"x" * 32) is None


def test_parts_cannot_be_moved_from_one_field_to_the_next() -> None:
    swapped = stamp((), RedriveTicket("letter-1", "redrive-1", 2, "orders"), KEY)
    signature = dict(swapped)[SIGNATURE]
    assert read_ticket(changed(SIGNATURE, signature), "orders", KEY) is None
    signed = dict(stamp((), RedriveTicket("ab", "c", 1, "orders"), KEY))[SIGNATURE]
    moved: Headers = ((REDRIVE_ID, "a"), (LETTER, "bc"), (GENERATION, 1), (SIGNATURE, signed))
    assert read_ticket(moved, "orders", KEY) is None


tickets = st.builds(
    RedriveTicket,
    st.text(st.characters(), max_size=6),
    st.text(st.characters(), max_size=6),
    st.integers(min_value=0, max_value=2**31 - 1),
    st.text(st.characters(), max_size=6),
)


@given(tickets, tickets)
def test_the_signature_of_one_ticket_never_fits_another(one: RedriveTicket, other: RedriveTicket) -> None:
    assert read_ticket(stamp((), one, KEY), one.target, KEY) == one
    forged = (*stamp((), other, KEY)[:-1], stamp((), one, KEY)[-1])
    assert (read_ticket(forged, other.target, KEY) is not None) == (one == other)


def test_a_producer_who_adds_to_a_signed_ticket_breaks_it() -> None:
    assert read_ticket((*STAMPED, (LETTER, "letter-2")), "orders", KEY) is None
    assert read_ticket(((LETTER, "letter-2"), *STAMPED), "orders", KEY) == TICKET


@given(st.lists(st.tuples(st.text(st.characters(), max_size=5), values), max_size=6))
def test_stamping_and_stripping_keep_the_users_headers_in_their_order(pairs: list[tuple[str, Any]]) -> None:
    headers = tuple(pairs)
    stamped = stamp(headers, TICKET, KEY)
    assert stamped[: len(headers)] == headers
    assert strip(stamped) == headers
    assert carries_ticket(stamped)
    assert not carries_ticket(strip(stamped))


def test_a_new_ticket_replaces_an_older_one() -> None:
    newer = msgspec.structs.replace(TICKET, redrive_id="redrive-2", generation=3)
    twice = stamp(STAMPED, newer, KEY)
    assert [name for name, _ in twice] == ["a", GENERATION, REDRIVE_ID, LETTER, SIGNATURE]
    assert read_ticket(twice, "orders", KEY) == newer
