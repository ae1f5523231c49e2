from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.duration import seconds, short


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("250ms", 0.25),
        ("5s", 5),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        (" 2D ", 172800),
        ("1w", 604800),
        ("0.5s", 0.5),
        ("300", 300),
        (0, 0),
        (1.5, 1.5),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_read_as_people_write_it(written: str | float | timedelta, meant: float) -> None:
    assert seconds(written) == pytest.approx(meant)


@pytest.mark.parametrize(
    "wrong",
    ["", "   ", "soon", "5 parsecs", "s", "5s5", "1..5s", ".s", "-5s", "5m!", "nan", "inf", "-1", "1e999"],
)
def test_a_text_that_is_no_duration_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds(wrong)


@pytest.mark.parametrize(
    "wrong",
    [True, None, [], object(), math.nan, math.inf, -1, -0.001, 10**400, timedelta(seconds=-1)],
    ids=lambda wrong: type(wrong).__name__,
)
def test_whatever_else_is_no_duration_is_refused_with_the_same_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(wrong)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (0.9999, "1s"),
        (5, "5s"),
        (9.5, "9.5s"),
        (9.96, "10s"),
        (59.9, "1m"),
        (720, "12m"),
        (3 * 86400 + 4 * 3600 + 5, "3d4h"),
        (3599.9, "1h"),
    ],
)
def test_a_duration_is_told_in_two_units_at_most(value: float, told: str) -> None:
    assert short(value) == told


@given(st.integers(min_value=1, max_value=10**9))
def test_what_is_told_reads_back_to_nearly_the_same(value: int) -> None:
    assert seconds(short(value)) == pytest.approx(value, rel=0.05)
