"""The delays that delay queues exist for. One queue per delay: a message with its own TTL would wait behind the
head of its queue (SD13), so every message of one queue waits equally long.
"""

from __future__ import annotations

import math
from bisect import bisect_left

_SECONDS = (0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
_MINUTES = (1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
_HOURS = (1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)

LADDER: tuple[int, ...] = tuple(
    round(value * unit)
    for values, unit in ((_SECONDS, 1e3), (_MINUTES, 60e3), (_HOURS, 3600e3))
    for value in values
)
"""In milliseconds, rising."""


def rung(delay: float) -> int:
    """The shortest delay of the ladder that is not shorter, in milliseconds; of longer ones, the longest."""
    milliseconds = math.ceil(round(delay * 1e3, 3))  # 0.1 + 0.2 is not more than 0.3
    return LADDER[min(bisect_left(LADDER, milliseconds), len(LADDER) - 1)]


def rungs(shortest: float, longest: float) -> tuple[int, ...]:
    """Every delay of the ladder that something between these two is rounded up to."""
    return LADDER[LADDER.index(rung(shortest)) : LADDER.index(rung(longest)) + 1]
