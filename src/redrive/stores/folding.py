"""Adds up a store's counters behind its work: not so often that it costs much, not so late that reading does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from redrive.errors import RedriveError
from redrive.stores.sql_counters import FOLDED_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.clock import Clock

_LETTERS = 1000
_PAUSE = 5.0
_LEAVING = 5.0


class Folding:
    """`fold` is one transaction that gives the number of deltas it took."""

    def __init__(self, fold: Callable[[], Awaitable[int]], clock: Clock) -> None:
        self._fold = fold
        self._clock = clock
        self._letters = 0
        self._not_before = 0.0
        self._task: asyncio.Task[None] | None = None

    def note(self, letters: int) -> None:
        """So many letters were changed."""
        self._letters += letters
        if self._task is None and self._letters >= _LETTERS and self._clock.monotonic() >= self._not_before:
            self._task = asyncio.create_task(self._add_up(), name="redrive-fold")

    async def close(self) -> None:
        """Whoever comes and goes, as the command line does, leaves no heap behind."""
        if self._task is None and self._letters:
            self._task = asyncio.create_task(self._add_up(), name="redrive-fold")
        if (task := self._task) is not None:
            await asyncio.wait({task}, timeout=_LEAVING)
            task.cancel()  # if the store does not answer: the next who comes does it
            await asyncio.gather(task, return_exceptions=True)

    async def _add_up(self) -> None:
        self._letters = 0
        try:
            with contextlib.suppress(RedriveError):  # the numbers are right without it, and the next one does it
                while await self._fold() == FOLDED_AT_ONCE:
                    pass
        finally:
            self._not_before = self._clock.monotonic() + _PAUSE
            self._task = None
