"""Any text and any time go into a column and come out the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite import dialect as sqlite

from redrive.stores.columns import ExactText, Moment, escape, escape_all, microseconds, unescape

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_any_text_comes_back_and_every_database_takes_what_is_stored(text: str) -> None:
    stored = escape(text)

    assert unescape(stored) == text
    assert "\x00" not in stored
    stored.encode("utf-8")


@given(st.text(st.sampled_from("\u241b0d8\x00\ud800a")))
def test_text_that_looks_escaped_comes_back_too(text: str) -> None:
    assert unescape(escape(text)) == text


@given(ANY_TEXT, ANY_TEXT)
def test_beginnings_and_equality_are_kept(one: str, other: str) -> None:
    assert escape(one + other) == escape(one) + escape(other)
    assert (escape(one) == escape(other)) == (one == other)


@given(st.lists(st.none() | ANY_TEXT | st.sampled_from(["orders", "\x00", "\u241b", "a\ud800"])))
def test_many_are_escaped_as_each_would_be(texts: list[str | None]) -> None:
    assert list(escape_all(texts)) == [None if text is None else escape(text) for text in texts]


@pytest.mark.parametrize("text", ["", "orders", "C:\\new\\table", "%s %(name)s \\u0000", "\u00e9\U0001f600"])
def test_ordinary_text_is_stored_as_it_is(text: str) -> None:
    assert escape(text) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_any_moment_comes_back_to_the_microsecond(moment: datetime) -> None:
    column, dialect = Moment(), sqlite()

    assert column.process_result_value(column.process_bind_param(moment, dialect), dialect) == moment


@given(st.datetimes(timezones=st.timezones()), st.datetimes(timezones=st.timezones()))
def test_moments_sort_as_numbers_as_they_do_as_times(one: datetime, other: datetime) -> None:
    one, other = _inside(one), _inside(other)

    assert (microseconds(one) < microseconds(other)) == (one < other)


def _inside(moment: datetime) -> datetime:
    return moment.replace(year=min(max(moment.year, 2), 9998))


def test_a_moment_without_a_zone_is_utc() -> None:
    assert microseconds(datetime(1970, 1, 2)) == 86_400_000_000  # noqa: DTZ001  the point


@pytest.mark.parametrize("hours", [14, -14])
@pytest.mark.parametrize("moment", [datetime.min, datetime.max])  # noqa: DTZ901  their zone is given below
def test_a_moment_beyond_the_calendar_is_its_end(moment: datetime, hours: int) -> None:
    column, dialect = Moment(), sqlite()
    given_moment = moment.replace(tzinfo=timezone(timedelta(hours=hours)))

    found = column.process_result_value(column.process_bind_param(given_moment, dialect), dialect)

    assert found is not None
    assert abs(found.replace(tzinfo=None) - moment) <= timedelta(hours=14)


def test_text_sorts_by_bytes_on_postgresql_as_it_does_on_sqlite() -> None:
    postgresql = PGDialect()  # type: ignore[no-untyped-call]  # as SQLAlchemy has it

    assert ExactText().compile(dialect=postgresql) == 'TEXT COLLATE "C"'
    assert ExactText().compile(dialect=sqlite()) == "TEXT"
