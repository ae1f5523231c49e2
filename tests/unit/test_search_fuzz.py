"""Any text is a filter or an error with a place; any filter can be written and read again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.errors import FilterError
from redrive.search import Filter, parse, unparse
from redrive.search_completion import complete
from redrive.search_fields import FIELDS
from support.filters import filters

NOW = datetime(2026, 11, 10, 12, tzinfo=UTC)


@settings(max_examples=1000, deadline=None)
@given(filters, st.integers(-1000, 1000))
def test_a_written_filter_is_read_as_the_same_filter_at_any_time(filter_: Filter, hours: int) -> None:
    assert parse(unparse(filter_), now=NOW + timedelta(hours=hours)) == filter_


def read(written: str) -> Filter | FilterError:
    try:
        return parse(written, now=NOW)
    except FilterError as error:
        return error


def check(written: str) -> None:
    """Parses, or fails with a place in the text; what parses can be written and read again."""
    found = read(written)
    if isinstance(found, FilterError):
        assert 1 <= found.column <= len(written) + 1
        assert found.remedy
    else:
        assert read(unparse(found)) == found


@settings(max_examples=1000, deadline=None)
@given(st.text(st.characters(), max_size=200))
def test_any_unicode_parses_or_gives_an_error_with_a_place(written: str) -> None:
    check(written)


NAMES = [
    *(f"{name}:" for name in FIELDS),
    "header.",
    "data.",
    "data:",
    "header.x:",
    "data.a.0:",
    "DATA.a:",
    "Queue:",
]
SIGNS = [":", "-", ",", "*", '"', '"', "\\", '\\"', ">", "<", ">=", "<=", ".", " ", " ", "\n", "\u2003", "\x1f"]
MOMENTS = ["2d", "1e5", "inf", "2026-11-01", "2026-11-01T12:00:00Z", "0001-01-01T00:00+14:00", "9" * 30 + "w"]
OTHERS = [
    "PENDING",
    "permanent",
    "99999999999",
    "null",
    "0",
    "abcd",
    "orders",
    "OR",
    "9" * 400 + "d",
    "attempts>3",
]
ODD = ["\x00", "\ud800", "\u0130", "\u00df", "e\u0301", "!"]
pieces = st.sampled_from([*NAMES, *SIGNS, *MOMENTS, *OTHERS, *ODD])


@settings(max_examples=3000, deadline=None)
@given(st.lists(pieces | st.text(max_size=3), max_size=14).map("".join))
def test_any_jumble_of_the_grammars_own_pieces_parses_or_gives_an_error_with_a_place(written: str) -> None:
    check(written)


@settings(max_examples=500, deadline=None)
@given(filters, st.data())
def test_a_filter_with_one_character_changed_parses_or_gives_an_error_with_a_place(
    filter_: Filter, data: st.DataObject
) -> None:
    written = unparse(filter_)
    at = data.draw(st.integers(0, len(written)))
    change = data.draw(st.sampled_from(['"', "\\", "*", ":", ",", "-", " ", "", "\x00", "."]))
    check(written[:at] + change + written[at + 1 :])


@pytest.mark.parametrize("written", ['"' * 4096, "\\" * 4096, "data." * 819, "a:" * 2048, "-" * 4096, "," * 5000])
def test_long_repetitions_parse_or_give_an_error_with_a_place(written: str) -> None:
    check(written)


@settings(max_examples=500, deadline=None)
@given(st.lists(pieces | st.text(max_size=3), max_size=10).map("".join), st.integers(-5, 60))
def test_every_suggestion_fits_into_the_text_whatever_it_is(written: str, cursor: int) -> None:
    for suggestion in complete(written, cursor, {"queue": ["orders", 'odd "name"']}):
        start, end = suggestion.replaces
        assert 0 <= start <= end <= len(written)
