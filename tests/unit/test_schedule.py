from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.schedule import MAX_DELAY, MIN_DELAY, Jitter, Schedule, explicit, exponential, fixed, linear


def waits(schedule: Schedule, count: int) -> list[float]:
    return [schedule.base(retry) for retry in range(1, count + 1)]


def test_s2_exponential_waits_5_10_20_seconds_and_never_over_300() -> None:
    assert waits(exponential("5s", factor=2, at_most="5m"), 9) == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_s2_the_development_profile_waits_2_4_8_and_never_over_60() -> None:
    assert waits(exponential("2s", factor=2.0, at_most="60s"), 7) == [2, 4, 8, 16, 32, 60, 60]


def test_s0_linear_waits_the_backoff_times_the_attempt() -> None:
    assert waits(linear("100ms"), 3) == pytest.approx([0.1, 0.2, 0.3])
    assert waits(linear("10s", at_most="25s"), 4) == [10, 20, 25, 25]


def test_fixed_waits_the_same_every_time() -> None:
    assert waits(fixed(timedelta(seconds=3)), 3) == [3, 3, 3]


def test_explicit_waits_as_told_and_the_last_one_from_then_on() -> None:
    assert waits(explicit(["1s", "10s", 60]), 5) == [1, 10, 60, 60, 60]


def test_defaults_are_s2s_values_with_full_jitter() -> None:
    assert exponential() == exponential("5s", factor=2.0, at_most="5m", jitter="full")


schedules = st.one_of(
    st.builds(fixed, st.floats(0, 1e6), jitter=st.sampled_from(["none", "full", "equal"])),
    st.builds(linear, st.floats(0, 1e6), jitter=st.sampled_from(["none", "full", "equal"])),
    st.builds(
        exponential,
        st.floats(0, 1e6),
        factor=st.floats(1, 100),
        at_most=st.none() | st.floats(0, 1e9),
        jitter=st.sampled_from(["none", "full", "equal"]),
    ),
    st.builds(explicit, st.lists(st.floats(0, 1e12), min_size=1, max_size=4)),
)
randoms = st.floats(0, 1, exclude_max=True)


@given(schedules, st.integers(1, 10**6), randoms)
def test_jitter_stays_within_its_bounds(schedule: Schedule, retry: int, random: float) -> None:
    base, delay = schedule.base(retry), schedule.delay(retry, random)
    lowest = {"none": base, "full": 0.0, "equal": base / 2}[schedule.jitter]
    assert max(lowest, min(base or MIN_DELAY, MIN_DELAY)) <= delay <= max(base, MIN_DELAY)


@given(schedules, st.integers(1, 10**6), randoms)
def test_sd11_a_delayed_retry_never_comes_back_at_once(schedule: Schedule, retry: int, random: float) -> None:
    delay = schedule.delay(retry, random)
    assert delay > 0
    assert delay >= MIN_DELAY or delay == pytest.approx(schedule.base(retry))


@given(schedules, st.integers(1, 10**6), randoms)
def test_no_wait_is_too_long_to_be_a_date(schedule: Schedule, retry: int, random: float) -> None:
    assert timedelta(seconds=schedule.delay(retry, random)) <= timedelta(seconds=MAX_DELAY)


def test_full_jitter_spreads_over_the_whole_wait_and_equal_over_its_upper_half() -> None:
    assert [fixed("10s", jitter="full").delay(1, each) for each in (0.0, 0.5, 0.75)] == [MIN_DELAY, 5, 7.5]
    assert [fixed("10s", jitter="equal").delay(1, each) for each in (0.0, 0.5)] == [5, 7.5]
    assert fixed("10s").delay(1, 0.9) == 10


def test_a_schedule_that_says_less_than_the_minimum_is_believed_unless_it_says_zero() -> None:
    assert fixed("10ms").delay(1, 0.5) == pytest.approx(0.01)
    assert fixed(0).delay(1, 0.5) == MIN_DELAY
    assert explicit([0, 0]).delay(2, 0.5) == MIN_DELAY


@pytest.mark.parametrize("factor", [0.5, 0, -2, float("nan"), float("inf")])
def test_a_factor_that_would_shorten_the_waits_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="use 1 or more"):
        exponential(factor=factor)


def test_a_whole_number_as_factor_stays_quick_and_finite() -> None:
    assert exponential("5s", factor=2, at_most=None).base(10**6) == MAX_DELAY


@pytest.mark.parametrize(
    "make", [fixed, linear, exponential, lambda wait, jitter: explicit([wait], jitter=jitter)]
)
def test_an_unknown_jitter_is_refused_with_the_known_ones(make: Any) -> None:
    wrong: Jitter = "half"  # type: ignore[assignment]  # the wrong word is the case
    with pytest.raises(ValueError, match="'none', 'full' or 'equal'"):
        make("1s", jitter=wrong)


def test_an_explicit_schedule_without_a_delay_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        explicit([])
