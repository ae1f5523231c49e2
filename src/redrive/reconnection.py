"""A broker that goes away is waited for, by whoever takes messages out of one of its queues."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog

from redrive.errors import CorruptFile, Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.clock import Clock
    from redrive.transports import Transport

log = structlog.get_logger("redrive.broker")

_FIRST, _LAST = 0.2, 5.0


class Reconnection:
    def __init__(self, queue: str, *, transport: Transport, clock: Clock) -> None:
        self.connected = True
        """Whether the broker is there, as far as anybody knows; whoever meets a message may say so."""
        self._queue = queue
        self._transport = transport
        self._clock = clock
        self._wait = _FIRST

    async def attempt(self, take: Callable[[], Awaitable[None]]) -> None:
        """Takes once. If the broker is away, or goes away meanwhile, it returns after a wait, each one longer than
        the one before. CorruptFile is raised: waiting does not mend a damaged file.
        """
        began = self._clock.monotonic()
        try:
            await take()
        except CorruptFile:
            raise
        except Unreachable as error:
            if _is_being_cancelled():  # the broker was away for what had to be given back: it ends all the same
                raise asyncio.CancelledError from error
            self.connected = False
            if self._clock.monotonic() - began > _LAST:  # it was there for a while
                self._wait = _FIRST
            wait = self._wait * (0.5 + random.random() / 2)  # noqa: S311  so that a fleet does not come at once (R26)
            log.warning("broker away", queue=self._queue, error=str(error), again_in=round(wait, 3))
            await self._clock.sleep(wait)
            self._wait = min(self._wait * 2, _LAST)

    async def sign_of_life(self) -> None:
        """Unreachable if the broker was away and still is."""
        if not self.connected:
            await self._transport.depths((self._queue,))  # an empty queue gives no other sign of life
            self.connected = True
            log.info("broker is back", queue=self._queue)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
