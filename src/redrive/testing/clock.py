"""Clocks for tests: time passes when the test says so, or as soon as somebody waits for it."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

from redrive.clock import new_id
from redrive.uptime import Uptime

_START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """Stands still until `advance` is called; `sleep` waits for that."""

    def __init__(self, start: datetime = _START) -> None:
        self._now = start
        self._boot = new_id()
        self._elapsed = timedelta()  # whole microseconds: ten tenths of a second are a second
        self._order = count()
        self._sleepers: list[tuple[timedelta, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed.total_seconds()

    def uptime(self) -> Uptime:
        return Uptime(self._boot, self.monotonic())

    def restart(self) -> None:
        """The machine is started anew."""
        self._boot = new_id()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        until = self._elapsed + timedelta(seconds=seconds)
        heapq.heappush(self._sleepers, (until, next(self._order), woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Time passes; whoever slept until then or earlier goes on, the earliest first."""
        self._now += timedelta(seconds=seconds)
        self._elapsed += timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    def set_wall(self, moment: datetime) -> None:
        """Somebody sets the wall clock, forwards or back; no time passes by it."""
        self._now = moment

    @property
    def sleeping(self) -> int:
        """How many wait for time to pass."""
        return sum(not woken.done() for _, _, woken in self._sleepers)


class InstantClock(ManualClock):
    """Whoever sleeps goes on at once, and the clock has moved by that much: no test waits."""

    async def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, 0.0))
        await asyncio.sleep(0)
