"""What to do about a failure. Pure: no clock, no randomness of its own; decisions are values."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive import errors
from redrive.classification import Classifier, Kinds
from redrive.duration import Duration, seconds
from redrive.failure import FailureKind
from redrive.schedule import MAX_DELAY, MIN_DELAY, Schedule, explicit, exponential, fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_IN_PLACE = 5.0
"""Seconds a delivery may wait in place for its immediate retries, all together: longer waits go to the broker."""


class Retry:
    """How often and when.

    `attempts` counts every run of the handler, the first included. The first `immediate` retries happen in
    place, `immediate_delay` apart; the others by `delays` (a single duration: always that long). `budget` is the
    time from the first attempt after which no further one is started (None: no limit).
    """

    __slots__ = ("attempts", "budget", "delays", "immediate", "immediate_delay")

    def __init__(
        self,
        attempts: int = 5,
        delays: Schedule | Duration | Sequence[Duration] | None = None,
        *,
        immediate: int = 0,
        immediate_delay: Duration = "100ms",
        budget: Duration | None = None,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts={attempts}: a handler runs at least once")
        if immediate < 0:
            raise ValueError(f"immediate={immediate} cannot be negative")
        pause = seconds(immediate_delay)
        if immediate * pause > MAX_IN_PLACE:
            raise ValueError(
                f"{immediate} immediate retries {pause:g} s apart would hold the delivery over "
                f"{MAX_IN_PLACE:g} s: use fewer, or delayed ones"
            )
        self.attempts = attempts
        self.delays = _schedule(delays)
        self.immediate = immediate
        self.immediate_delay = pause
        self.budget = None if budget is None else seconds(budget)

    def __repr__(self) -> str:
        return (
            f"Retry(attempts={self.attempts}, delays={self.delays!r}, immediate={self.immediate}, "
            f"immediate_delay={self.immediate_delay:g}, budget={self.budget})"
        )


def _schedule(delays: Schedule | Duration | Sequence[Duration] | None) -> Schedule:
    if delays is None:
        return exponential()
    if isinstance(delays, str | int | float | timedelta):
        return fixed(delays)
    return delays if isinstance(delays, Schedule) else explicit(delays)


class RetryAfter(msgspec.Struct, frozen=True):
    delay: float
    in_place: bool = False


class SendToDeadLetter(msgspec.Struct, frozen=True):
    reason: str


class Drop(msgspec.Struct, frozen=True):
    """The handler said that nothing need be kept."""


Decision = RetryAfter | SendToDeadLetter | Drop


class FailurePolicy:
    """`random` gives numbers in [0, 1); without it the middle is taken, so that decisions repeat exactly."""

    def __init__(
        self,
        retry: Retry | None = None,
        *,
        kinds: Sequence[Kinds] = (),
        random: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.retry = retry or Retry()
        self._classifier = Classifier(*kinds)
        self._random = random

    def classify(self, error: BaseException) -> FailureKind:
        return self._classifier.classify(error)

    def decide(self, error: BaseException, kind: FailureKind, *, attempt: int, elapsed: float = 0.0) -> Decision:
        """`attempt` is the one that failed, from 1; `elapsed` the seconds since the first one began."""
        if isinstance(error, errors.Drop):
            return Drop()
        if kind is not FailureKind.TRANSIENT:
            return SendToDeadLetter(f"{kind} failure")
        if attempt >= self.retry.attempts:
            return SendToDeadLetter(f"failed {attempt} of {self.retry.attempts} attempts")
        after = self._next(error, attempt)
        if self.retry.budget is not None and elapsed + after.delay > self.retry.budget:
            return SendToDeadLetter(f"the time budget of {self.retry.budget:g} s is used up")
        return after

    def _next(self, error: BaseException, attempt: int) -> RetryAfter:
        if isinstance(error, errors.Transient) and error.retry_after is not None:
            return RetryAfter(min(max(error.retry_after, MIN_DELAY), MAX_DELAY))
        if attempt <= self.retry.immediate:
            return RetryAfter(self.retry.immediate_delay, in_place=True)
        return RetryAfter(self.retry.delays.delay(attempt - self.retry.immediate, self._random()))

    def should_retry(self, error: BaseException, attempt: int) -> bool:
        """S2's question: whether an attempt that failed with this error may be followed by another."""
        return isinstance(self.decide(error, self.classify(error), attempt=attempt), RetryAfter)

    def calculate_retry_delay(self, attempt: int) -> float:
        """S2's answer in seconds, before jitter."""
        return self.retry.delays.base(attempt)
