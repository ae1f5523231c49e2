"""Moments in a filter: dates, times, and how long ago. Each becomes an absolute time in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from redrive.duration import seconds
from redrive.search_terms import Field, FieldTerm, Op
from redrive.search_written import Written, one_value, shown, wrong

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.search_scanner import Value

_DATE_LENGTH = len("2026-11-01")


def reader_of_moment(field: Field) -> Callable[[Written], FieldTerm]:
    def read(written: Written) -> FieldTerm:
        value = one_value(written)
        if written.comparison is None:
            either = f"write {field}:>{value.text} or {field}:<{value.text}"
            wrong(f"{field} needs a comparison", value.column, either)
        return _at(written, written.comparison, _moment(value, written.now), field)

    return read


_YOUNGER = {Op.MORE: Op.LESS, Op.LESS: Op.MORE, Op.AT_LEAST: Op.AT_MOST, Op.AT_MOST: Op.AT_LEAST}
"""The greater the age, the earlier the moment."""


def read_age(written: Written) -> FieldTerm:
    value = one_value(written)
    if written.comparison is None:
        wrong(
            "age needs to know: older or younger?", value.column, f"write age:>{value.text} or age:<{value.text}"
        )
    moment = _ago(value, written.now)
    if moment is None:
        wrong(f"{shown(value.text)} is not an age", value.column, "write it like age:>2d, age:<1h or age:>=1h30m")
    return _at(written, _YOUNGER[written.comparison], moment)


def reader_of_side(op: Op) -> Callable[[Written], FieldTerm]:
    def read(written: Written) -> FieldTerm:
        value = one_value(written)
        if written.comparison is not None:
            wrong(
                f"{written.name} is a comparison already",
                value.column - len(written.comparison),
                f"write {written.name}:{value.text}",
            )
        return _at(written, op, _moment(value, written.now))

    return read


def _at(written: Written, op: Op, moment: datetime, field: Field = Field.CREATED) -> FieldTerm:
    return FieldTerm(field=field, op=op, values=(moment,), negated=written.negated)


def _moment(value: Value, now: datetime) -> datetime:
    found = _date(value.text) or _ago(value, now)
    if found is None:
        wrong(
            f"{shown(value.text)} is not a moment",
            value.column,
            "write 2026-11-01, 2026-11-01T12:00:00Z, or how long ago: 2d",
        )
    return found


def _date(text: str) -> datetime | None:
    """A date (its first moment) or a date and time, in UTC if it names no zone."""
    if text[4:5] != "-" or text[7:8] != "-" or text[_DATE_LENGTH : _DATE_LENGTH + 1] not in {"", "T", "t", " "}:
        return None
    try:
        found = datetime.fromisoformat(text.upper())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _ago(value: Value, now: datetime) -> datetime | None:
    """So long before now; the beginning of time if that is too long. A number needs its unit here: `before:2026`
    would mean 34 minutes otherwise.
    """
    if not value.text[:1].isdigit() or not value.text[-1:].isalpha():
        return None
    try:
        return now.astimezone(UTC) - timedelta(seconds=seconds(value.text))
    except ValueError:
        return None
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
