"""Deliveries that came back unsettled: the process that had them may have died of one of them.

Each is counted in the journal before its handler runs, and they run one at a time, so that a death is blamed on
the message that was running and not on its neighbours. After three deaths a message is quarantined unrun.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from redrive.dead_letter import MAX_DEATHS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.settling import Settling
    from redrive.transports import Delivery
    from redrive.upkeep.journal import Journal

log = structlog.get_logger("redrive.consumer")


class Suspects:
    def __init__(self, journal: Journal, settling: Settling) -> None:
        self._journal = journal
        self._settling = settling
        self._one_at_a_time = asyncio.Lock()

    async def run(self, delivery: Delivery, handle: Callable[[Delivery], Awaitable[None]]) -> None:
        async with self._one_at_a_time:
            deaths = await self._journal.begin(delivery.identity)
            if deaths >= MAX_DEATHS:
                log.critical(
                    "message quarantined: its process died each time",
                    queue=delivery.queue,
                    message_id=delivery.message.id,
                    deaths=deaths,
                )
                await self._settling.deadly(delivery, deaths)
            else:
                await handle(delivery)
            await self._journal.clear(delivery.identity)
