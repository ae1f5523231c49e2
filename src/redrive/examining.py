"""The doctor behind the desk: one look at a time, kept for a while, not made because somebody opens a page."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from redrive.errors import RedriveError
from redrive.finding import Finding, FoundAt, problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.clock import Clock

KEPT = 60.0
"""Seconds for which a look is what everybody is told who asks for one."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when it was looked last."""

    running: bool = False
    """Somebody has asked for a look, and it is under way."""
    at: datetime | None = None
    """When it was looked last; null: not since the server was started."""
    findings: tuple[Finding, ...] = ()
    """The worst first."""


class Doctor:
    """Of one process. `look` is bounded by itself."""

    def __init__(self, look: Callable[[], Awaitable[list[Finding]]], clock: Clock) -> None:
        self._look = look
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None
        self._last = Examination()
        self._until = float("-inf")

    @property
    def told(self) -> Examination:
        """Without looking."""
        running = self._looking is not None and not self._looking.done()
        return msgspec.structs.replace(self._last, running=running)

    def ask(self) -> Examination:
        """Begins a look, unless one is under way or is not older than a minute. Does not wait for it."""
        if not self.told.running and self._clock.monotonic() >= self._until:
            self._looking = asyncio.ensure_future(self._examine())
        return self.told

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _examine(self) -> None:
        try:
            found = await self._look()
        except RedriveError as error:  # settings with which nobody can look
            told = problem("settings", str(error), error.remedy)
            found = [msgspec.structs.replace(told, place=FoundAt.SETTINGS)]
        self._last = Examination(at=self._clock.now(), findings=tuple(found))
        self._until = self._clock.monotonic() + KEPT
