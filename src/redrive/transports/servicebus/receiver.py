"""One `receive` on Service Bus.

1. A task of its own fetches from each place: the SDK's call is never cancelled halfway, with messages locked that
   nobody sees. It asks for no more than `prefetch` allows beside what is unsettled there.
2. The SDK waits 0.2 s for more when it has some of what was asked for. So the first message is asked for alone,
   and what lies behind it with a short wait.
3. Credit that a call has not used stays with the link. The last call asks for one message: then it is one at most.
4. Closed, it gives back what was never handed out. Links stay until their last delivery is settled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from redrive.errors import LeaseLost, Unreachable
from redrive.transports.servicebus.client_errors import of_asking
from redrive.transports.servicebus.links import POLL, Link, Receipt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection

    from redrive.transports import Delivery
    from redrive.transports.servicebus.patience import Patience

_WAIT = 0.2
"""Seconds of one call to the SDK while nothing comes, and so how long closing may take."""
_WAIT_FOR_MORE = 0.1
"""Behind a message that came: longer than a round trip, for what comes when nobody asks is given back at once."""
_WAIT_IN_HAND = 0.05
"""While something is in hand: so long its settling may have to wait."""


class Taker(Protocol):
    def take(self, receipts: list[Receipt]) -> None: ...

    def wake(self) -> None:
        """Something is settled."""
        ...


class Fetching(Protocol):
    """Where deliveries come from: one place, or its sessions."""

    @property
    def links(self) -> Collection[Link]:
        """Those that are open, or may be."""
        ...

    async def run(self, taker: Taker) -> None:
        """Until it is stopped. Raises what makes it useless."""
        ...

    def stop(self) -> None:
        """`run` shall end soon."""
        ...


class FromPlace:
    """`make` opens a link that tells when it has room."""

    def __init__(self, make: Callable[[Callable[[], None]], Link], prefetch: int) -> None:
        self._link = make(self._stir)
        self.links: Collection[Link] = (self._link,)
        self._taker: Taker | None = None
        self._prefetch = prefetch
        self._room = asyncio.Event()
        self._stopped = False

    async def run(self, taker: Taker) -> None:
        self._taker = taker
        await self._link.open()
        unused = 0
        idle = True
        while not self._stopped:
            if self._link.broken is not None:
                raise self._link.broken
            room = self._prefetch - len(self._link.held)
            if room <= 0 or self._link.settles:
                self._room.clear()
                await self._room.wait()
                continue
            asked, wait = (1, _WAIT_IN_HAND if self._link.held else _WAIT) if idle else (room, _WAIT_FOR_MORE)
            fetched = await self._link.fetch(asked, wait)
            unused = asked - len(fetched)
            idle = not fetched
            if fetched:
                taker.take(fetched)
        if unused > 1:
            taker.take(await self._link.fetch(1, POLL))

    def stop(self) -> None:
        self._stopped = True
        self._room.set()

    def _stir(self) -> None:
        self._room.set()
        if self._taker is not None:
            self._taker.wake()


class Receiver:
    """`from_where`: a queue, or a subscription and the queue of its retries."""

    def __init__(
        self,
        queue: str,
        prefetch: int,
        from_where: Collection[Fetching],
        read: Callable[[str, Receipt], Delivery],
        patience: Patience,
    ) -> None:
        self.queue = queue
        self._prefetch = prefetch
        self._from_where = from_where
        self._read = read
        self._patience = patience
        self._arrived: deque[Receipt] = deque()
        self._woken = asyncio.Event()
        self._why: Exception | None = None
        self._stopped = False
        self._fetching: list[asyncio.Task[None]] = []
        self._ending: asyncio.Task[None] | None = None

    async def deliveries(self) -> AsyncGenerator[Delivery]:
        self._fetching = [asyncio.create_task(self._fetch(each)) for each in self._from_where]
        try:
            while not self._stopped:
                while self._arrived and self.unsettled - len(self._arrived) < self._prefetch:
                    yield self._read(self.queue, self._arrived.popleft())
                if self._why is not None:
                    raise of_asking(self._why, self.queue) from self._why
                self._woken.clear()
                await self._woken.wait()
        finally:
            await self.stop()

    @property
    def links(self) -> list[Link]:
        return [link for each in self._from_where for link in each.links]

    @property
    def unsettled(self) -> int:
        return sum(len(link.held) for link in self.links)

    @property
    def finished(self) -> bool:
        """Nothing of it is left on the broker."""
        return self._ending is not None and self._ending.done() and all(link.finished for link in self.links)

    def take(self, receipts: list[Receipt]) -> None:
        self._arrived.extend(receipts)
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    async def stop(self) -> None:
        """Ends the iterator and gives back what was never handed out. Safe to repeat, and not interrupted."""
        self._stopped = True
        self._woken.set()
        for each in self._from_where:
            each.stop()
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def close(self) -> None:
        """Gives everything back."""
        await self.stop()
        links = self.links
        await self._give_back([receipt for link in links for receipt in link.held])
        await asyncio.gather(*(link.close() for link in links))

    async def _fetch(self, place: Fetching) -> None:
        try:
            await place.run(self)
        except Exception as error:  # noqa: BLE001  the iterator raises it
            self._why = error
            self._woken.set()

    async def _end(self) -> None:
        if self._fetching:
            _, stuck = await asyncio.wait(self._fetching, timeout=self._patience.end)
            for each in stuck:
                each.cancel()  # what it may have locked comes again when the lock is over
            if stuck:
                await asyncio.wait(stuck, timeout=self._patience.end)
        arrived, self._arrived = list(self._arrived), deque()
        await self._give_back(arrived)
        for link in self.links:
            link.leave()

    async def _give_back(self, receipts: list[Receipt]) -> None:
        await asyncio.gather(*(_abandon(receipt) for receipt in receipts))


async def _abandon(receipt: Receipt) -> None:
    with suppress(LeaseLost, Unreachable):
        receipt.claim()
        await receipt.link.abandon(receipt)
