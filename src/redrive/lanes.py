"""Who may go when: messages of one lane one after the other, in the order they came; others beside them.

Whoever waits, for the one before it or for its next attempt, holds its lane and its delivery and no place among
those that run, so a key that fails does not keep the others from being handled.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.clock import Clock


class Lanes:
    """Of one consumer; at most `concurrency` of its messages run at a time."""

    def __init__(self, concurrency: int, *, clock: Clock) -> None:
        self._running = asyncio.Semaphore(concurrency)
        self._clock = clock
        self._turns: dict[str, _Turn] = {}
        self._waiting: set[asyncio.Task[object]] = set()

    @property
    def waiting(self) -> set[asyncio.Task[object]]:
        """Tasks that have nothing to finish: they wait for a turn, or for the time of their next attempt."""
        return set(self._waiting)

    @asynccontextmanager
    async def turn(self, lane: str | None) -> AsyncIterator[None]:
        """While it is entered, nobody else of the lane is. None: of no lane."""
        if lane is None:
            yield
            return
        turn = self._turns.setdefault(lane, _Turn())
        turn.users += 1
        try:
            with self._idle():
                await turn.lock.acquire()
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[lane]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with self._idle():
            await self._running.acquire()
        try:
            yield
        finally:
            self._running.release()

    async def pause(self, seconds: float) -> None:
        with self._idle():
            await self._clock.sleep(seconds)

    def _idle(self) -> _Idle:
        return _Idle(self._waiting)


class _Turn:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class _Idle:
    """The current task waits for nothing of its own while this is entered."""

    def __init__(self, waiting: set[asyncio.Task[object]]) -> None:
        self._waiting = waiting
        self._task = asyncio.current_task()

    def __enter__(self) -> None:
        if self._task is not None:
            self._waiting.add(self._task)

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._waiting.discard(self._task)
