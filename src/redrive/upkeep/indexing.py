"""Makes new letters searchable behind the work that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.clock import Clock

BATCH = 25
"""Letters at once: some milliseconds in which nothing else runs in this process."""

_REST = 2.0


async def index_behind(index: Callable[[], Awaitable[int]], *, clock: Clock, random: Callable[[], float]) -> None:
    """Batch after batch until none waits. In between it rests for two or three times as long as a batch took, so
    that most of the time is for the handlers; not the same each time, so that processes do not go in step.
    """
    while True:
        begun = clock.monotonic()
        if not await index():
            return
        await clock.sleep((clock.monotonic() - begun) * (_REST + random()))
