"""What is said of a message that goes to Service Bus's own dead letters fits, and can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.errors import TrailTooLong
from redrive.transports.servicebus import last_words

ANY_TEXT = st.text(st.characters(), max_size=50).map(lambda text: text * 200)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@given(ANY_TEXT, st.binary(max_size=2000))
def test_whatever_is_said_fits_and_the_story_is_read_back_whole(text: str, trail: bytes) -> None:
    described = last_words.description(text, trail)

    assert units(last_words.reason(text)) <= last_words.LONGEST_REASON
    assert units(described) <= last_words.LONGEST_DESCRIPTION
    assert (last_words.trail_in(described) or b"") == trail


def test_a_short_error_is_there_word_for_word_and_a_long_one_says_that_it_is_cut() -> None:
    assert last_words.for_people(last_words.description("no customer\n17", b"\x00story")) == "no customer\n17"
    assert last_words.reason("shop.NoCustomer") == "shop.NoCustomer"
    assert last_words.reason("x" * 1024) == "x" * 1024
    assert last_words.reason("x" * 1025).endswith("x...[cut]")


def test_a_story_that_would_leave_nothing_for_people_is_told_how_much_room_there_is() -> None:
    with pytest.raises(TrailTooLong) as raised:
        last_words.description("no customer", b"x" * 4000)

    described = last_words.description("e" * 4000, b"x" * raised.value.room)
    assert len(last_words.for_people(described)) >= 1000


@pytest.mark.parametrize("described", ["", "no customer", "\nx-redrive:", "no\nx-redrive:%%%", "\nx-redrive:QUJ"])
def test_what_others_have_written_is_no_story(described: str) -> None:
    assert not last_words.trail_in(described)
