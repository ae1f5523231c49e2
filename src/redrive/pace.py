"""At most so many sends per second, evenly spread: a thousand letters must not arrive as one wave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.errors import UsageError

if TYPE_CHECKING:
    from redrive.clock import Clock


class Pace:
    """`rate` per second; None is as fast as it goes. One Pace may be shared by many tasks."""

    def __init__(self, rate: float | None, clock: Clock) -> None:
        if rate is not None and not 0 < rate < float("inf"):
            raise UsageError(f"a rate of {rate:g} per second is not possible", remedy="give a number above 0")
        self._interval = 0.0 if rate is None else 1 / rate
        self._clock = clock
        self._next = 0.0

    async def upcoming(self) -> None:
        """Returns when a turn is due, and does not take it: for whoever has to get hold of something first that
        does not keep. With one task, the next `turn` returns at once.
        """
        wait = self._next - self._clock.monotonic()
        if self._interval and wait > 0:
            await self._clock.sleep(wait)

    async def turn(self) -> None:
        """Returns when the caller may send."""
        if not self._interval:
            return
        now = self._clock.monotonic()
        mine = max(self._next, now)
        self._next = mine + self._interval
        if mine > now:
            await self._clock.sleep(mine - now)

    def window(self, at_most: int, *, within: float) -> int:
        """How many turns come up within so many seconds: at least 1, at most `at_most`."""
        if not self._interval:
            return at_most
        return max(1, min(at_most, int(within / self._interval)))
