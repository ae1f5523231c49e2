"""How a queue with `ordered_by` is consumed: messages of one key in their order, also when one of them fails.

1. Messages of a lane are handled one at a time, in the order they were received.
2. One that is to be tried again later is not sent away for that: it is kept, and the next ones of its lane wait
   behind it. Crash: none of them was acknowledged, so all come again, in their order.
3. A dead one is a letter in the store before it is acknowledged. From then on whatever else of its lane arrives,
   here or in another process, is parked as a letter behind it. Only the store knows: while it is away, nothing of
   the queue is handled.
4. A redriven message is handled if no letter before it in its lane is open; else it goes back behind that one.

Two processes that consume the queue at the same time get the messages of one key side by side, which is nothing
that either could mend: order needs a queue with one active consumer, or a broker that gives each key to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.lanes import Lanes
from redrive.policy import RetryAfter, SendToDeadLetter

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from redrive.attempt import Attempts, Failed
    from redrive.clock import Clock
    from redrive.ordering import OrderedBy
    from redrive.settling import Settling
    from redrive.transports import Delivery

LONGEST_HOLD = 600.0
"""Seconds that a message is kept between two attempts: brokers take for dead who holds one for long."""
_TOO_LONG = f"it asks for more than {LONGEST_HOLD:g} s, and the messages behind it would wait as long"


class InOrder:
    def __init__(self, by: OrderedBy, *, settling: Settling, concurrency: int, clock: Clock) -> None:
        self._by = by
        self._settling = settling
        self._lanes = Lanes(concurrency, clock=clock)

    @property
    def waiting(self) -> set[asyncio.Task[object]]:
        return self._lanes.waiting

    async def run(self, delivery: Delivery, handle: Callable[[Delivery], Awaitable[object]]) -> None:
        """Handles the delivery when its turn has come, or parks it."""
        lane = self._by.lane(delivery.message, delivery.queue)
        async with self._lanes.turn(lane):
            ahead = None if lane is None else await self._settling.ahead(lane, delivery)
            if ahead is None:
                await handle(delivery)
            else:
                await self._settling.park(delivery, ahead)

    async def attempt(self, delivery: Delivery, attempts: Attempts) -> Failed | None:
        """As `Attempts.run`, and once more as long as it is only a matter of time."""
        stays = self._by.lane(delivery.message, delivery.queue) is not None
        failed: Failed | None = None
        while True:
            async with self._lanes.running():
                failed = await attempts.run(delivery, failed)
            if failed is None or not (stays and isinstance(failed.decision, RetryAfter)):
                return failed
            if failed.decision.delay > LONGEST_HOLD:  # a handler may ask for anything
                return msgspec.structs.replace(failed, decision=SendToDeadLetter(_TOO_LONG))
            await self._lanes.pause(failed.decision.delay)
