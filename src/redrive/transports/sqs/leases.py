"""What this process holds of SQS, and the heartbeat that keeps it.

1. A lease begins when its message is received and ends when the delivery is settled.
2. Every third of its time the heartbeat makes all that is held invisible for another whole one. It beats by the
   event loop's own time, for it shows that this process lives. It waits for no answer: a request that hangs would
   else cost the leases of all queues.
3. What one group of a FIFO queue is behind a lost lease is not ours either, see `lines`.
4. SQS deletes by an old receipt without a word, whoever has the message now. So a lease that was not renewed in
   time is lost by our own clock. Whoever handles it is told at the next beat, or when it is settled.
5. Nothing stays invisible for more than twelve hours: then SQS refuses to renew, and the lease is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Protocol

import structlog

from redrive.errors import LeaseLost
from redrive.transports.sqs.refusals import SqsRefusal, unusable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from redrive.transports import Delivery, LostLeases
    from redrive.transports.sqs.queue_facts import QueueFacts
    from redrive.transports.sqs.reading import Arrived


log = structlog.get_logger("redrive.sqs")


class Holder(Protocol):
    def settled(self) -> None:
        """One of its leases is settled: it may have another."""
        ...


class InLine(Protocol):
    """Those of its group, in their order."""

    def settled(self, lease: Lease) -> None: ...

    def lost(self, lease: Lease) -> None: ...

    def wait(self, lease: Lease, again: Lease) -> None: ...


_numbers = count()


@dataclass(slots=True, eq=False, kw_only=True)
class Lease:
    queue: QueueFacts
    arrived: Arrived
    handle: str
    since: float
    """By the clock that only goes ahead, as is `until`."""
    until: float
    group: str = ""
    """Of a FIFO queue's message."""
    due: int = 0
    """Microseconds since 1970: it waits here until then."""
    again: Delivery | None = None
    """What it is handed out as, if an attempt was made and it stayed in its place."""
    line: InLine | None = None
    number: int = field(default_factory=lambda: next(_numbers))
    """Of its reception: the order in which SQS gave them."""
    holder: Holder | None = None
    claimed: bool = False
    """Somebody settles it, or has."""
    deleted: bool = False
    lost: bool = False
    told: bool = False
    """Whoever has it in hand knows that it is lost."""
    replaced: bool = False
    """The message that takes its place is durable."""

    @property
    def place(self) -> dict[str, str]:
        return {"messaging.message.id": self.arrived.id}


class Leases:
    """Each for `span` seconds. `hide` makes a message invisible for so many seconds from now. `lost` is told of
    those that are in hand and no longer ours.
    """

    def __init__(
        self,
        span: int,
        *,
        now: Callable[[], float],
        hide: Callable[[Lease, int], Awaitable[None]],
        lost: LostLeases,
    ) -> None:
        self.span = span
        self._lost = lost
        self._now = now
        self._hide = hide
        self._held: set[Lease] = set()
        self._beating: asyncio.Task[None] | None = None
        self._renewing: set[asyncio.Task[None]] = set()
        self._refused: dict[str, str] = {}
        """By queue: why SQS renews no lease of it, which is told once."""

    @property
    def beat_every(self) -> float:
        """Seconds. Two more beats come before a lease runs out."""
        return self.span / 3

    def take(self, lease: Lease) -> None:
        self._held.add(lease)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())

    def claim(self, lease: Lease) -> None:
        """Only one may settle it. LeaseLost if it was settled, or is no longer ours."""
        if lease.claimed or not self.keeps(lease):
            raise LeaseLost(
                f"message {lease.arrived.id} is no longer held: it was settled before, or its lease ran out",
                remedy="broker.sqs.visibility should be longer than the event loop ever stands still",
            )
        lease.claimed = True

    @contextlib.contextmanager
    def settling(self, lease: Lease) -> Iterator[None]:
        """Claimed meanwhile, and settled behind it. What fails may be tried again, unless the lease is lost."""
        self.claim(lease)
        try:
            yield
        except LeaseLost:
            self.settle(lease)
            raise
        except BaseException:
            lease.claimed = False
            raise
        self.settle(lease)

    def settle(self, lease: Lease) -> None:
        """It is no longer ours to keep."""
        if lease in self._held:
            self._held.remove(lease)
            if lease.line is not None:
                lease.line.settled(lease)
            if lease.holder is not None:
                lease.holder.settled()

    def wait(self, lease: Lease, again: Delivery, due: int) -> None:
        """It is claimed, stays ours, and can be taken again then, as that delivery."""
        later = replace(lease, again=again, due=due, holder=None, claimed=False)
        self._held.remove(lease)
        self._held.add(later)
        if lease.line is not None:
            lease.line.wait(lease, later)
        if lease.holder is not None:
            lease.holder.settled()

    def is_ours(self, lease: Lease) -> bool:
        return not lease.lost and self._now() < lease.until

    def keeps(self, lease: Lease) -> bool:
        """Whether it is still ours; if not, it is forgotten."""
        if not self.is_ours(lease):
            self.settle(lease)
            return False
        return True

    def held(self) -> list[Lease]:
        return [lease for lease in self._held if self.is_ours(lease)]

    async def renew(self) -> None:
        for lease in [each for each in self._held if not each.claimed and not self.is_ours(each)]:
            self._lose(lease)
        await asyncio.gather(*(self._renew(lease) for lease in self.held()), return_exceptions=True)

    async def stop(self) -> None:
        under_way = {each for each in (self._beating, *self._renewing) if each is not None and not each.done()}
        for each in under_way:
            each.cancel()
        if under_way:
            await asyncio.wait(under_way)

    async def _renew(self, lease: Lease) -> None:
        if lease not in self._held:  # it was given back meanwhile, and must stay visible
            return
        until = self._now() + self.span
        try:
            await self._hide(lease, self.span)
        except SqsRefusal as refusal:
            if not refusal.is_of_receipt:
                self._tell(lease.queue.name, refusal)
            elif lease in self._held:
                self._lose(lease)
            return
        self._refused.pop(lease.queue.name, None)
        lease.until = max(lease.until, until)

    def _tell(self, queue: str, refusal: SqsRefusal) -> None:
        if self._refused.get(queue) != refusal.code:
            self._refused[queue] = refusal.code
            log.error(
                "SQS renews no lease: others get what takes longer than broker.sqs.visibility",
                queue=queue,
                error=str(refusal),
                remedy=unusable(refusal).remedy,
            )

    def _lose(self, lease: Lease) -> None:
        lease.lost = True
        if lease.holder is None:
            self.settle(lease)
            return
        if lease.line is not None:
            lease.line.lost(lease)
        if not lease.told and not lease.claimed:
            lease.told = True
            self._lost.tell(lease)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.beat_every)
            renewing = asyncio.create_task(self.renew())
            self._renewing.add(renewing)
            renewing.add_done_callback(self._renewing.discard)
