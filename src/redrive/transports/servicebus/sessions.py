"""A place that requires sessions: several of them side by side, each with a link of its own.

1. One link at a time waits for whatever session is free next; when it has one, another waits.
2. Within a session one message is in hand, and the next comes when it is settled.
3. The lock is the session's, and it is renewed for all; lost, everything of that session is.
4. A session in which nothing comes for a while is left, so that others get a turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from azure.core.exceptions import AzureError
from azure.servicebus.exceptions import OperationTimeoutError

from redrive.transports.servicebus.client_errors import LOST
from redrive.transports.servicebus.links import Link, Receipt
from redrive.transports.servicebus.locks import Lock
from redrive.transports.servicebus.patience import within

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.transports.servicebus.receiver import Taker

FREE_WITHIN = 8.0
"""Seconds that the broker waits for a session to become free, before it is asked again: less than the patience for
one attempt at anything (`Patience.attempt`)."""
_AT_ONCE = 8
"""Each has a connection of its own."""
_IDLE = 1.0


class SessionLink(Link):
    """For one session. Locks of messages cannot be renewed in it."""

    _lock: Lock | None = None
    """The session's."""

    async def open(self) -> None:
        await super().open()
        self._lock = Lock(self.clock, self._receiver.session.locked_until_utc)

    def lose(self) -> None:
        """Somebody else may have the session, with all its messages."""
        for receipt in list(self.held):
            receipt.lose()

    def _lose(self, receipt: Receipt) -> None:  # noqa: ARG002  one lock for all
        self.lose()

    async def _renew(self, receipt: Receipt) -> None:  # noqa: ARG002  one lock for all
        await self._renew_session()

    async def _renew_session(self) -> None:
        await within(self._patience.answer, self._receiver.session.renew_lock())
        if self._lock is not None:
            self._lock.renewed()

    async def renew_what_is_late(self) -> None:
        if self._lock is None or not self._lock.is_late():
            return
        try:
            async with self._turns:
                await self._renew_session()
        except (*LOST, ValueError):
            self.lose()
        except AzureError:
            return  # the next look may get through before the lock is over


class FromSessions:
    """`make` gives a link for the next session that is free, and tells when something of it is settled."""

    def __init__(self, make: Callable[[Callable[[], None]], SessionLink], prefetch: int) -> None:
        self._make = make
        self._most = min(prefetch, _AT_ONCE)
        self.links: list[Link] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._stopped = asyncio.Event()

    async def run(self, taker: Taker) -> None:
        try:
            while not self._stopped.is_set():
                self.links = [link for link in self.links if not link.finished]
                if len(self._serving) >= self._most:
                    await self._one_of(*self._serving)
                elif (link := await self._accepted()) is not None:
                    serving = asyncio.create_task(self._serve(link, taker))
                    self._serving.add(serving)
                    serving.add_done_callback(self._serving.discard)
        finally:
            self.stop()
            if self._serving:
                await asyncio.wait(self._serving)

    def stop(self) -> None:
        self._stopped.set()
        self._settled.set()

    async def _accepted(self) -> SessionLink | None:
        """None: no session is free, or it is stopped. Giving up an attach frees what it might have got."""
        link = self._make(self._settled.set)
        self.links.append(link)
        opening = asyncio.create_task(link.open())
        await self._one_of(opening)
        if not opening.done():
            opening.cancel()
        try:
            await opening
        except BaseException as error:
            link.leave()
            if isinstance(error, asyncio.CancelledError | OperationTimeoutError):
                return None
            raise
        return link

    async def _one_of(self, *tasks: asyncio.Task[None]) -> None:
        """Until one is done, or it is stopped."""
        stopping = asyncio.create_task(self._stopped.wait())
        await asyncio.wait({*tasks, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _serve(self, link: SessionLink, taker: Taker) -> None:
        try:
            while not self._stopped.is_set():
                fetched = await link.fetch(1, _IDLE)
                if not fetched:
                    return
                taker.take(fetched)
                await self._settled_in(link)
                if link.broken is not None:
                    return
        except (AzureError, ValueError):
            link.lose()  # the SDK never takes a session up again; whoever is free next will
        finally:
            link.leave()

    async def _settled_in(self, link: Link) -> None:
        while link.held and not self._stopped.is_set():
            self._settled.clear()
            await self._settled.wait()
