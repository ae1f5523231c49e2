"""Deliveries that came back unsettled: the process that had them may have died of one of them.

1. Each is counted in the journal before its handler runs. The first time they run beside each other: most
   processes die of something else, and what they had in hand must not go through one by one.
2. What was in hand again when the next process died runs alone among its like, whatever its queue, so that the
   third death is blamed on the message that was running and not on its neighbours.
3. After three deaths a message is quarantined unrun. One that its process outlived is forgotten.
4. One that waits in memory for its next attempt has not killed at this one, and kills nobody while it waits: its
   last count is taken back. Those before it stay, for after a death it comes again at its first attempt, which its
   process may survive each time.

The journal is a safety net: while it cannot be written, messages are handled without it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import structlog

from redrive.dead_letter import MAX_DEATHS
from redrive.errors import RedriveError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.settling import Settling
    from redrive.transports import Delivery
    from redrive.upkeep.journal import Journal

    Handle = Callable[[Delivery], Awaitable[bool]]
    """True: it waits in this process for its next attempt."""

log = structlog.get_logger("redrive.consumer")


class Suspects:
    """`alone` is one lock for all queues of the process."""

    def __init__(self, journal: Journal, settling: Settling, alone: asyncio.Lock) -> None:
        self._journal = journal
        self._settling = settling
        self._alone = alone
        self._kinds: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, delivery: Delivery, handle: Handle) -> None:
        if delivery.alike is None:
            await self._suspect(delivery, handle)
            return
        # Those that nothing tells apart share one count, so one at a time: it counts deaths, not copies.
        async with self._kinds.setdefault(delivery.alike, asyncio.Lock()):
            await self._suspect(delivery, handle)

    async def _suspect(self, delivery: Delivery, handle: Handle) -> None:
        if await self._asked(self._journal.deaths(_mark_of(delivery))) == 0:
            await self._run(delivery, handle)
            return
        async with self._alone:
            await self._run(delivery, handle)

    async def _run(self, delivery: Delivery, handle: Handle) -> None:
        deaths = await self._asked(self._journal.begin(_mark_of(delivery)))
        if deaths >= MAX_DEATHS:
            await self._quarantine(delivery, deaths)
            await self._forget(delivery)
            return
        waits = False
        try:
            waits = await handle(delivery)
        finally:  # given back, failed or handled: its process has outlived it
            await self._forget(delivery, waits=waits)

    async def _quarantine(self, delivery: Delivery, deaths: int) -> None:
        log.critical(
            "message quarantined: its process died each time",
            queue=delivery.queue,
            message_id=delivery.message.id,
            deaths=deaths,
        )
        await self._settling.deadly(delivery, deaths)

    async def _asked(self, answer: Awaitable[int]) -> int:
        try:
            return await answer
        except RedriveError as error:
            log.warning("the journal cannot be used, deaths are not counted", error=str(error))
            return 0

    async def _forget(self, delivery: Delivery, *, waits: bool = False) -> None:
        mark = _mark_of(delivery)
        try:
            await (self._journal.take_back(mark) if waits else self._journal.clear(mark))
        except RedriveError as error:
            log.warning("the journal cannot be used, a death stays counted", error=str(error))


def _mark_of(delivery: Delivery) -> str:
    """Where a message has no identity that lasts, what it has in common with its next delivery."""
    return delivery.alike or delivery.identity
