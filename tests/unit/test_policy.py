from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive import Drop, FailurePolicy, Permanent, Retry, Transient, exponential, fixed, linear
from redrive.policy import MAX_IN_PLACE, RetryAfter, SendToDeadLetter
from redrive.policy import Drop as DropDecision
from redrive.schedule import MAX_DELAY, MIN_DELAY

S2_PRODUCTION = Retry(attempts=5, delays=exponential("5s", factor=2.0, at_most="300s", jitter="none"))
ArgumentException = ValueError
"""What .NET calls ArgumentException, Python calls ValueError."""


def decided(policy: FailurePolicy, error: BaseException, attempt: int = 1, elapsed: float = 0.0) -> Any:
    return policy.decide(error, policy.classify(error), attempt=attempt, elapsed=elapsed)


@pytest.mark.parametrize(
    ("exception_type", "attempt_count", "expected"),
    [(TimeoutError, 1, True), (ArgumentException, 1, False), (TimeoutError, 5, False)],
)
def test_s2_should_retry_with_different_exceptions_returns_expected_result(
    exception_type: type[Exception], attempt_count: int, *, expected: bool
) -> None:
    assert FailurePolicy(S2_PRODUCTION).should_retry(exception_type("Test message"), attempt_count) is expected


def test_s2_calculate_retry_delay_is_5_10_20_and_at_most_300_seconds() -> None:
    policy = FailurePolicy(S2_PRODUCTION)
    delays = [policy.calculate_retry_delay(attempt) for attempt in range(1, 9)]
    assert delays == [5, 10, 20, 40, 80, 160, 300, 300]


def test_s2_the_delay_is_told_before_jitter() -> None:
    policy = FailurePolicy(Retry(delays=exponential(jitter="full")), random=lambda: 0.0)
    assert policy.calculate_retry_delay(3) == 20


def test_s0_a_retry_waits_the_backoff_times_the_attempt() -> None:
    policy = FailurePolicy(Retry(attempts=3, delays=linear("100ms")))
    decisions = [decided(policy, ConnectionError(), attempt) for attempt in (1, 2, 3)]
    assert [each.delay for each in decisions[:2]] == pytest.approx([0.1, 0.2])
    assert isinstance(decisions[2], SendToDeadLetter)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError(), "permanent failure"),
        (Permanent("no"), "permanent failure"),
        (MemoryError(), "critical failure"),
        (RecursionError(), "critical failure"),
    ],
)
def test_what_retrying_cannot_mend_goes_to_the_dead_letters_at_once(error: Exception, reason: str) -> None:
    assert decided(FailurePolicy(Retry(immediate=3)), error) == SendToDeadLetter(reason)


def test_after_the_last_attempt_the_reason_says_how_many_there_were() -> None:
    assert decided(FailurePolicy(Retry(3)), TimeoutError(), 3) == SendToDeadLetter("failed 3 of 3 attempts")
    assert isinstance(decided(FailurePolicy(Retry(3)), TimeoutError(), 4), SendToDeadLetter)


def test_one_attempt_means_no_retry() -> None:
    assert isinstance(decided(FailurePolicy(Retry(attempts=1)), TimeoutError()), SendToDeadLetter)


@pytest.mark.parametrize("attempt", [1, 5, 99])
def test_a_handler_that_drops_the_message_is_obeyed_on_any_attempt(attempt: int) -> None:
    assert decided(FailurePolicy(), Drop("duplicate"), attempt) == DropDecision()


def test_a_handler_may_say_when_to_try_again() -> None:
    policy = FailurePolicy(Retry(immediate=2))
    assert decided(policy, Transient("busy", retry_after="30s")) == RetryAfter(30.0)
    assert decided(policy, Transient("busy", retry_after=timedelta(minutes=2))) == RetryAfter(120.0)
    assert decided(policy, Transient("busy")) == RetryAfter(0.1, in_place=True)


@pytest.mark.parametrize("passed", [0, -5, -0.5, timedelta(seconds=-5)])
def test_sd11_a_moment_that_has_passed_means_soon_and_neither_at_once_nor_never(passed: Any) -> None:
    assert decided(FailurePolicy(), Transient(retry_after=passed)) == RetryAfter(MIN_DELAY)


def test_an_absurd_wait_stays_a_date_that_can_be_stored() -> None:
    assert decided(FailurePolicy(), Transient(retry_after=1e300)) == RetryAfter(MAX_DELAY)
    policy = FailurePolicy(Retry(10**6, exponential("5s", factor=10, at_most=None, jitter="none")))
    assert decided(policy, TimeoutError(), 10**5) == RetryAfter(MAX_DELAY)


def test_a_wait_that_is_no_duration_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Transient(retry_after="soon")


def test_even_a_handlers_own_wait_does_not_outlast_the_attempts() -> None:
    assert isinstance(decided(FailurePolicy(Retry(2)), Transient(retry_after=1), 2), SendToDeadLetter)


def test_immediate_retries_come_first_and_the_schedule_starts_after_them() -> None:
    policy = FailurePolicy(Retry(6, ["10s", "20s"], immediate=2, immediate_delay="200ms"))
    assert [decided(policy, TimeoutError(), attempt) for attempt in range(1, 6)] == [
        RetryAfter(0.2, in_place=True),
        RetryAfter(0.2, in_place=True),
        RetryAfter(10.0),
        RetryAfter(20.0),
        RetryAfter(20.0),
    ]


def test_immediate_retries_may_hold_a_delivery_for_five_seconds_and_no_longer() -> None:
    assert MAX_IN_PLACE == 5
    assert Retry(immediate=5, immediate_delay="1s").immediate == 5
    with pytest.raises(ValueError, match="use fewer, or delayed ones"):
        Retry(immediate=6, immediate_delay="1s")
    with pytest.raises(ValueError, match="over 5 s"):
        Retry(immediate=1, immediate_delay="5001ms")


def test_no_attempt_is_started_after_the_time_budget() -> None:
    policy = FailurePolicy(Retry(100, fixed("10s"), budget="1m"))
    assert decided(policy, TimeoutError(), 2, elapsed=50) == RetryAfter(10.0)
    assert decided(policy, TimeoutError(), 2, elapsed=50.1) == SendToDeadLetter(
        "the time budget of 60 s is used up"
    )
    assert isinstance(decided(policy, Transient(retry_after="2m")), SendToDeadLetter)


def test_a_budget_of_nothing_is_not_no_budget() -> None:
    assert isinstance(decided(FailurePolicy(Retry(budget=0)), TimeoutError()), SendToDeadLetter)
    assert isinstance(decided(FailurePolicy(Retry(budget=None)), TimeoutError(), elapsed=1e9), RetryAfter)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"attempts": 0}, "at least once"),
        ({"attempts": -1}, "at least once"),
        ({"immediate": -1}, "cannot be negative"),
        ({"delays": []}, "at least one delay"),
        ({"delays": ["soon"]}, "is not a duration"),
        ({"budget": "-1s"}, "duration"),
        ({"immediate_delay": "x"}, "duration"),
    ],
)
def test_values_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Retry(**wrong)


@pytest.mark.parametrize("single", ["10s", 10, 10.0, timedelta(seconds=10)])
def test_one_duration_as_delays_means_always_that_long(single: Any) -> None:
    assert Retry(delays=single).delays == fixed("10s")


def test_the_rules_of_the_levels_are_weighed_from_the_nearest() -> None:
    policy = FailurePolicy(kinds=[{KeyError: "permanent"}, {KeyError: "critical", TimeoutError: "critical"}])
    assert decided(policy, KeyError()) == SendToDeadLetter("permanent failure")
    assert decided(policy, TimeoutError()) == SendToDeadLetter("critical failure")


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 4))
def test_jitter_uses_the_randomness_that_is_handed_in(random: float, attempt: int) -> None:
    policy = FailurePolicy(Retry(5, exponential("5s", jitter="full")), random=lambda: random)
    expected = max(MIN_DELAY, 5 * 2 ** (attempt - 1) * random)
    assert decided(policy, TimeoutError(), attempt).delay == pytest.approx(expected)


def test_the_same_question_has_the_same_answer() -> None:
    policy = FailurePolicy()
    assert decided(policy, TimeoutError(), 2) == decided(policy, TimeoutError(), 2)
