"""One receiver of the SDK, and what it holds locked.

1. The SDK's receivers are for one task at a time: two that find their connection broken reopen it over each
   other. Fetching, settling and renewing take turns, and fetching does not begin while somebody settles.
2. What is asked to be settled while others are goes together, in one turn. If one fails for another reason than a
   lost lock, the link is broken: it settles what it holds one by one, and nothing more is fetched with it.
3. The lock of whatever is fetched and not settled is renewed when a third of its time is over: all that are late
   in one turn, by a task, and by whoever wants to fetch, before that, for fetching takes long.
4. A message that comes when nobody has asked is given back by the SDK, when it next listens. A link that is only
   kept for what it holds renews a lock at every look, for that listens.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import structlog
from azure.core.exceptions import AzureError

from redrive.clock import SystemClock
from redrive.errors import LeaseLost, RedriveError
from redrive.transports.servicebus import times
from redrive.transports.servicebus.client_errors import LOST, of_settling
from redrive.transports.servicebus.locks import Lock
from redrive.transports.servicebus.patience import NoAnswer, Patience, within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from azure.servicebus import ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusReceiver

    from redrive.clock import Clock
    from redrive.transports import LostLeases

log = structlog.get_logger("redrive.servicebus")

POLL = 0.02
"""Seconds that the SDK reads from a line on which nothing comes, before it looks at the time."""
_TOGETHER = 50
_LOOK_EVERY = 1.0


class Receipt:
    """One fetched message, until it is settled."""

    def __init__(self, link: Link, message: ServiceBusReceivedMessage) -> None:
        self.link = link
        self.message = message
        self.replaced = False
        """The message that takes its place is durable."""
        self._claimed = False
        self._lost = False
        self.lock = Lock(link.clock, times.locked_until(message), times.enqueued(message))

    @property
    def place(self) -> dict[str, str | int]:
        return {"messaging.message.id": str(self.message.sequence_number)}

    def claim(self) -> None:
        """LeaseLost if somebody has settled it, or its lock is over."""
        if self._claimed or self._lost:
            raise LeaseLost("this delivery is settled already, or its lock is over")
        self._claimed = True

    def unclaim(self) -> None:
        self._claimed = False

    def is_to_be_renewed(self) -> bool:
        return not self._claimed and self.lock.is_late()

    def lose(self) -> None:
        """Somebody else may have it."""
        handled = not self._claimed and not self._lost
        self._lost = True
        self.link.forget(self)
        if handled:  # who settles it is told by that
            self.link.lost.tell(self)


class _Wish(NamedTuple):
    receipt: Receipt
    settle: Coroutine[Any, Any, None]
    told: asyncio.Future[None]


class Link:
    """`changed` is called when there is room for more. `lost` is told of what is handled and no longer locked."""

    def __init__(
        self,
        entity: str,
        receiver: ServiceBusReceiver,
        changed: Callable[[], None],
        lost: LostLeases,
        *,
        patience: Patience | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.entity = entity
        self.lost = lost
        self.clock = clock or SystemClock()
        self._patience = patience or Patience()
        self.held: set[Receipt] = set()
        """All that is fetched, handed out or not."""
        self._receiver = receiver
        self._changed = changed
        self.broken: Exception | None = None
        """What has happened to it."""
        self._turns = asyncio.Lock()
        self._wishes: list[_Wish] = []
        self._settling: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._leaving = False

    async def open(self) -> None:
        await within(self._patience.answer, self._receiver.__aenter__())
        self._renewing = asyncio.create_task(self._renew_again_and_again())

    async def fetch(self, most: int, wait: float) -> list[Receipt]:
        """Never to be cancelled: what it has locked nobody would see."""
        await self.renew_what_is_late()
        async with self._turns:
            asked = self._receiver.receive_messages(max_message_count=most, max_wait_time=wait)
            fetched = await within(wait + self._patience.answer, asked)
        receipts = [Receipt(self, message) for message in fetched]
        self.held.update(receipts)
        return receipts

    @property
    def settles(self) -> bool:
        return self._settling is not None and not self._settling.done()

    @property
    def finished(self) -> bool:
        """Nothing of it is left on the broker."""
        return self._closing is not None and self._closing.done()

    async def complete(self, receipt: Receipt) -> None:
        await self._settle(receipt, self._receiver.complete_message(receipt.message))

    async def abandon(self, receipt: Receipt) -> None:
        await self._settle(receipt, self._receiver.abandon_message(receipt.message))

    async def dead_letter(self, receipt: Receipt, reason: str, description: str) -> None:
        settle = self._receiver.dead_letter_message(receipt.message, reason=reason, error_description=description)
        await self._settle(receipt, settle)

    async def check(self, receipt: Receipt) -> None:
        """LeaseLost if the lock is over."""
        try:
            async with self._turns:
                await self._renew(receipt)
        except (AzureError, ValueError) as error:
            raise self._explained(error, receipt) from error

    def forget(self, receipt: Receipt) -> None:
        self.held.discard(receipt)
        self._changed()
        if self._leaving and not self.held:
            self._close()

    def leave(self) -> None:
        """Nothing more will be fetched. It closes behind the last that is settled."""
        self._leaving = True
        if not self.held:
            self._close()

    async def close(self) -> None:
        """Whatever it holds: that must have been given back."""
        await self._close()

    # Locks.

    def _explained(self, error: Exception, receipt: Receipt) -> RedriveError:
        explained = of_settling(error)
        if isinstance(explained, LeaseLost):
            self._lose(receipt)
        return explained

    def _lose(self, receipt: Receipt) -> None:
        receipt.lose()

    async def _renew(self, receipt: Receipt) -> None:
        """In somebody's turn."""
        await within(self._patience.answer, self._receiver.renew_message_lock(receipt.message))
        receipt.lock.renewed()

    async def renew_what_is_late(self) -> None:
        while any(each.is_to_be_renewed() for each in self.held):
            async with self._turns:
                late = [each for each in self.held if each.is_to_be_renewed()][: self._at_once]
                renewed = await asyncio.gather(*(self._renew_or_lose(each) for each in late))
            if not all(renewed):
                return  # the next look may get through before the lock is over

    async def _renew_or_lose(self, receipt: Receipt) -> bool:
        """False: it is as it was."""
        try:
            await self._renew(receipt)
        except (*LOST, ValueError):
            self._lose(receipt)
        except AzureError:
            return False
        return True

    async def _renew_again_and_again(self) -> None:
        while self._closing is None:  # the SDK swallows cancellations while it opens a connection anew
            await self.clock.sleep(_LOOK_EVERY)
            try:
                await self.renew_what_is_late()
                if self._leaving and self.held:
                    await self._listen(next(iter(self.held)))
            except Exception as error:  # noqa: BLE001  without it every lock would be lost, unnoticed
                log.warning("locks could not be renewed", queue=self.entity, error=type(error).__name__)

    async def _listen(self, receipt: Receipt) -> None:
        async with self._turns:
            await self._renew_or_lose(receipt)

    # Settling.

    async def _settle(self, receipt: Receipt, settle: Coroutine[Any, Any, None]) -> None:
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wishes.append(_Wish(receipt, settle, told))
        if not self.settles:
            self._settling = asyncio.create_task(self._settle_all())
        await asyncio.shield(told)

    async def _settle_all(self) -> None:
        while self._wishes:
            async with self._turns:
                wishes, self._wishes = self._wishes[: self._at_once], self._wishes[self._at_once :]
                asked = (within(self._patience.answer, wish.settle) for wish in wishes)
                results = await asyncio.gather(*asked, return_exceptions=True)
            for wish, result in zip(wishes, results, strict=True):
                self._settled(wish, result)
        self._settling = None
        self._changed()

    def _settled(self, wish: _Wish, result: BaseException | None) -> None:
        """Whoever asked may be gone: what has become of it is noted here."""
        if result is None:
            self.forget(wish.receipt)
            wish.told.set_result(None)
            return
        error = result if isinstance(result, Exception) else NoAnswer(type(result).__name__)
        if not isinstance(error, LOST):
            self.broken = error
        explained = self._explained(error, wish.receipt)
        wish.receipt.unclaim()  # behind it: whoever settles hears of a lost lock by this error alone
        explained.__cause__ = error
        wish.told.set_exception(explained)
        wish.told.exception()

    @property
    def _at_once(self) -> int:
        return _TOGETHER if self.broken is None else 1

    # The end.

    def _close(self) -> asyncio.Task[None]:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_receiver())
        return self._closing

    async def _close_receiver(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait({self._renewing}, timeout=self._patience.end)
        with suppress(AzureError, OSError, ValueError):
            await within(self._patience.end, self._receiver.close())
