"""One queue as this process reads it: what was fetched, and who waits for it.

1. While those who take from it have room, one request waits at SQS for as many messages as fit, ten at most.
2. Such a request is never given up: SQS would go on answering it, and what it holds would be invisible to all
   until its lease runs out. Who stops reading leaves it behind for whoever reads next, or for `close`.
3. What comes and finds no room, because somebody has left, is given back at once.
4. `close` stops reading. What is held then is given back by whoever holds it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from redrive.transports.sqs.leases import Lease
    from redrive.transports.sqs.shelf import Shelf

_MOST = 10
_LINGER = 0.005
"""Seconds in which those who are about to settle something make room for more: a request costs as much."""
_LONGEST_LOOK = 60.0
"""Seconds: the wall clock, by which messages are due, may be set meanwhile."""


class Taker:
    """Who reads: at most `prefetch` unsettled."""

    def __init__(self, prefetch: int, mailbox: Mailbox) -> None:
        self.prefetch = prefetch
        self.unsettled = 0
        self.woken = asyncio.Event()
        self._mailbox = mailbox

    @property
    def room(self) -> int:
        return self.prefetch - self.unsettled

    def settled(self) -> None:
        self.unsettled -= 1
        self.woken.set()
        self._mailbox.stir()


class Mailbox:
    """`shelf` has what was fetched. `fetch` waits for at most so many messages; `give_back` makes them visible to
    others; `keeps` tells whether a lease holds, and forgets it if not; `sleep` lets time pass.
    """

    def __init__(
        self,
        shelf: Shelf,
        *,
        fetch: Callable[[int], Awaitable[list[Lease]]],
        give_back: Callable[[Iterable[Lease]], Awaitable[None]],
        keeps: Callable[[Lease], bool],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._shelf = shelf
        self._fetch = fetch
        self._give_back = give_back
        self._keeps = keeps
        self._sleep = sleep
        self._takers: set[Taker] = set()
        self._polling: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self._closed = False

    @property
    def _room(self) -> int:
        return sum(taker.room for taker in self._takers) - self._shelf.ready

    @property
    def _wants(self) -> bool:
        return self._room > 0 and not self._shelf.full

    def join(self, prefetch: int) -> Taker:
        taker = Taker(prefetch, self)
        self._takers.add(taker)
        self.stir()
        return taker

    def take(self, taker: Taker) -> Lease | None:
        """Raises what went wrong since it was asked last."""
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        while taker.room > 0 and not self._closed and (lease := self._shelf.take()) is not None:
            if self._keeps(lease):
                taker.unsettled += 1
                lease.holder = taker
                return lease
        return None

    async def wait(self, taker: Taker) -> bool:
        """Until there may be something to take; False: there never will."""
        self.stir()
        if not self._closed and self._failed is None and not (self._shelf.ready and taker.room > 0):
            taker.woken.clear()
            await self._woken(taker, self._shelf.due_in() if taker.room > 0 else None)
        return not self._closed

    async def leave(self, taker: Taker) -> None:
        self._takers.discard(taker)
        await self._give_back(self._surplus())

    async def close(self) -> None:
        """What is under way is waited for."""
        self._closed = True
        self._wake()
        if self._polling is not None and not self._polling.done():
            await asyncio.wait({self._polling})
        self._takers.clear()

    def stir(self) -> None:
        """Somebody came, or has more room: it is fetched for."""
        if self._closed or self._failed is not None or not self._wants:
            return
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while self._goes_on():
            if self._room < min(_MOST, sum(taker.prefetch for taker in self._takers)):
                await asyncio.sleep(_LINGER)
                if not self._goes_on():
                    return
            try:
                self._shelf.put(await self._fetch(min(self._room, _MOST)))
                await self._give_back(self._surplus())
            except Exception as error:  # noqa: BLE001  told to whoever takes next
                self._failed = error if self._takers else None
                self._wake()
                return
            self._wake()

    def _goes_on(self) -> bool:
        return not self._closed and self._wants

    async def _woken(self, taker: Taker, due_in: float | None) -> None:
        """Or until something is due."""
        if due_in is None:
            await taker.woken.wait()
            return
        either = [
            asyncio.ensure_future(taker.woken.wait()),
            asyncio.ensure_future(self._sleep(min(due_in, _LONGEST_LOOK))),
        ]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in either:
                each.cancel()

    def _wake(self) -> None:
        for taker in self._takers:
            taker.woken.set()

    def _surplus(self) -> list[Lease]:
        """The last ones of those for which nobody has room."""
        return self._shelf.spare(max(-self._room, 0)) if self._takers else self._shelf.rest()
