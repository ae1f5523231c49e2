"""How long a lock lasts, and when it is time to renew it.

Service Bus tells a lock's end by its own clock and never its length, and this machine's clock may be wrong. So the
length is estimated once, carefully, and time is measured by a clock that never jumps, from when the message came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.clock import Clock

_PARTS = 3
_SHORTEST, _USUAL = 5.0, 60.0
"""Seconds. Azure has no shorter locks; of longer ones a renewal every twenty seconds is not too many."""


class Lock:
    """`until`: its end, by the broker's clock. `not_before`: a moment of the past, by the same clock."""

    def __init__(self, clock: Clock, until: datetime | None, not_before: datetime | None = None) -> None:
        self._clock = clock
        now = clock.now()
        begun = now if not_before is None else max(now, not_before)  # later than now: our clock is behind
        told = _SHORTEST if until is None else (until - begun).total_seconds()
        self._length = min(max(told, _SHORTEST), _USUAL)
        self._since = clock.monotonic()

    def is_late(self) -> bool:
        """A third of it is over."""
        return self._clock.monotonic() - self._since >= self._length / _PARTS

    def renewed(self) -> None:
        self._since = self._clock.monotonic()
