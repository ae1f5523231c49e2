"""How long to wait before the next attempt. Pure: randomness comes in as a number in [0, 1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import msgspec

from redrive.duration import Duration, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

Jitter = Literal["none", "full", "equal"]

MIN_DELAY = 0.1
"""A delayed retry never comes back sooner, unless its own schedule says less: no hot loop (SD11)."""

MAX_DELAY = 366 * 86400.0
"""Nor later: a schedule without a cap, or a server's absurd Retry-After, must stay a date that can be stored."""


class Schedule(msgspec.Struct, frozen=True):
    """Made by `fixed`, `linear`, `exponential` and `explicit` below."""

    first: float
    factor: float = 1.0
    step: float = 0.0
    at_most: float | None = None
    jitter: Jitter = "none"
    explicit: tuple[float, ...] = ()

    def base(self, retry: int) -> float:
        """The wait before retry number `retry` (from 1), without jitter."""
        if self.explicit:
            return min(self.explicit[min(retry, len(self.explicit)) - 1], MAX_DELAY)
        try:
            delay = self.first * self.factor ** (retry - 1) + self.step * (retry - 1)
        except OverflowError:
            delay = MAX_DELAY
        return min(delay, MAX_DELAY) if self.at_most is None else min(delay, self.at_most, MAX_DELAY)

    def delay(self, retry: int, random: float) -> float:
        base = self.base(retry)
        floor = min(MIN_DELAY, base) if base else MIN_DELAY
        return max(floor, _jittered(base, self.jitter, random))


def _jittered(base: float, jitter: Jitter, random: float) -> float:
    if jitter == "full":
        return base * random
    if jitter == "equal":
        return base / 2 + base / 2 * random
    return base


def fixed(delay: Duration, *, jitter: Jitter = "none") -> Schedule:
    """The same wait every time."""
    return Schedule(first=seconds(delay), jitter=_known(jitter))


def linear(step: Duration, *, at_most: Duration | None = None, jitter: Jitter = "none") -> Schedule:
    """S0's: the step times the number of the attempt."""
    return Schedule(first=seconds(step), step=seconds(step), at_most=_limit(at_most), jitter=_known(jitter))


def exponential(
    first: Duration = "5s", *, factor: float = 2.0, at_most: Duration | None = "5m", jitter: Jitter = "full"
) -> Schedule:
    """S2's: 5, 10, 20 s … and never over `at_most`."""
    if not 1 <= factor < math.inf:
        raise ValueError(f"factor {factor} would make the waits shorter, or endless: use 1 or more")
    return Schedule(first=seconds(first), factor=float(factor), at_most=_limit(at_most), jitter=_known(jitter))


def explicit(delays: Sequence[Duration], *, jitter: Jitter = "none") -> Schedule:
    """These waits, and the last one from then on."""
    if not delays:
        raise ValueError("an explicit schedule needs at least one delay")
    waits = tuple(seconds(delay) for delay in delays)
    return Schedule(first=waits[0], explicit=waits, jitter=_known(jitter))


def _limit(at_most: Duration | None) -> float | None:
    return None if at_most is None else seconds(at_most)


def _known(jitter: Jitter) -> Jitter:
    if jitter not in {"none", "full", "equal"}:
        raise ValueError(f"jitter {jitter!r} is not known: use 'none', 'full' or 'equal'")
    return jitter
