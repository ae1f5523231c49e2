"""What a worker has done since it began, in plain numbers: whoever is asked for metrics reads them (`exposition`).

The hot path pays for an addition, not for a metrics library: nothing here locks, and nothing knows Prometheus.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redrive.failure import FailureKind

HANDLER_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
LETTER_SECONDS = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)


class Histogram:
    """How many values were at most so large, for each of the bounds."""

    __slots__ = ("_bounds", "_numbers", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._numbers = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self._numbers[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Each bound with the number of values up to it; the last one is infinity, with all of them."""
        so_far = 0
        for bound, number in zip((*self._bounds, float("inf")), self._numbers, strict=True):
            so_far += number
            yield bound, so_far


class HandlerCounts:
    """Of one handler on one queue."""

    __slots__ = (
        "dead_lettered",
        "dropped",
        "failed",
        "handler",
        "payload_type",
        "queue",
        "retried",
        "seconds",
        "succeeded",
        "time_to_dead_letter",
    )

    def __init__(self, handler: str, queue: str, payload_type: str = "") -> None:
        self.handler = handler
        self.queue = queue
        self.payload_type = payload_type
        self.succeeded = 0
        self.failed = 0
        self.dropped = 0
        """Attempts that ended with the handler's word that the message is none of its concern."""
        self.retried = 0
        self.dead_lettered: Counter[tuple[str, str]] = Counter()
        """By kind of failure and the sink that took the letter."""
        self.seconds = Histogram(HANDLER_SECONDS)
        self.time_to_dead_letter = Histogram(LETTER_SECONDS)

    def count_success(self, seconds: float) -> None:
        self.succeeded += 1
        self.seconds.add(seconds)

    def count_failure(self, seconds: float, *, dropped: bool) -> None:
        if dropped:
            self.dropped += 1
        else:
            self.failed += 1
        self.seconds.add(seconds)

    def count_letter(self, kind: FailureKind, sink: str, seconds: float) -> None:
        """`seconds`: since its first attempt."""
        self.dead_lettered[str(kind), sink] += 1
        self.time_to_dead_letter.add(max(seconds, 0.0))
