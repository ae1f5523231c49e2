"""Numbers as a line of small bars: how something went, at a glance."""

from __future__ import annotations

from collections.abc import Sequence

_NOTHING, _BARS = "·", "▁▂▃▄▅▆▇█"


def sparkline(numbers: Sequence[int]) -> str:
    """One character each, the highest full; a dot for none, so that one letter is never taken for nothing."""
    highest = max(numbers, default=0)
    return "".join(_NOTHING if number <= 0 else _BARS[(number * len(_BARS) - 1) // highest] for number in numbers)
