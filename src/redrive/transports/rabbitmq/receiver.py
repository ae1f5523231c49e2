"""One `receive` on RabbitMQ.

1. Each queue that is read for it (its retries may lie in another) has a channel of its own, so that a channel the
   broker closes takes nothing else with it.
2. What arrives waits as it came, and is made a Delivery when it is asked for.
3. Closed, it ends the consumers, gives back what was never handed out, and leaves the channels open until the last
   delivery handed out is settled: a delivery can be settled on its own channel only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from redrive.errors import Unreachable
from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.channel import Deaf
from redrive.transports.rabbitmq.methods import Basic, BasicConsume, ChannelClosed, ConnectionLost
from redrive.transports.rabbitmq.returning import Held
from redrive.transports.rabbitmq.settling import Receipt, Tags

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from redrive.transports import Delivery
    from redrive.transports.rabbitmq.channel import Channel
    from redrive.transports.rabbitmq.connection import Connection

    Content = tuple[bool, bytes, bytes, bytes]
    """Redelivered, exchange and routing key, properties, body."""
    Read = Callable[[str, Receipt, Content], Delivery | None]

log = structlog.get_logger("redrive.rabbitmq")

MAX_PREFETCH = 65535
_PRECONDITION = 406


class Tap(Deaf):
    """One consumer on one queue."""

    def __init__(self, name: str, receiver: Receiver) -> None:
        self.name = name
        self.tags: Tags | None = None
        self.channel: Channel | None = None
        self._receiver = receiver
        self._consumer = ""
        self._beginning = False

    async def open(self, connection: Connection, prefetch: int) -> None:
        self.channel = await connection.channel(self)
        self.tags = Tags(self.channel, self._receiver.settled)
        await self.channel.call(Basic.Qos(prefetch_count=prefetch))
        self._beginning = True
        answer = await self.channel.call(BasicConsume(queue=self.name))
        self._beginning, self._consumer = False, answer.consumer_tag

    async def end(self) -> None:
        """No more deliveries come after it."""
        if self.channel is None:
            return
        if self._beginning:
            # Not by Basic.Cancel: RabbitMQ 3.10 loses the whole connection over one that meets the first delivery
            # of a quorum queue. Nothing was handed out yet, and all of it goes back with the channel.
            self.channel.abandon(ChannelClosed(200, "given up while the consumer began"))
        elif self._consumer:
            consumer, self._consumer = self._consumer, ""
            with suppress(ChannelClosed, ConnectionLost):  # then none come either
                await self.channel.call(Basic.Cancel(consumer_tag=consumer))

    async def leave(self) -> None:
        """Closes the channel once nothing of it is unsettled."""
        if self.channel is not None and self.tags is not None and not self.tags:
            await self.tags.rest()  # the last acks must not come behind the close (R10)
            await self.channel.close()

    def delivered(self, method: bytes, properties: bytes, body: bytes) -> None:
        tag, redelivered, origin = wire.delivery(method)
        self.tags.take(tag)  # type: ignore[union-attr]  # nothing is delivered before it is open
        self._receiver.arrived(self, tag, (redelivered, origin, properties, body))

    def cancelled(self) -> None:
        self._consumer = ""
        self._receiver.broken(Unreachable(f"the broker ended the consumer of {self.name!r}: the queue is gone"))

    def closed(self, why: ChannelClosed | ConnectionLost) -> None:
        if isinstance(why, ChannelClosed) and why.code == _PRECONDITION:
            log.error("the broker closed a consumer's channel", queue=self.name, reason=why.text)
        self._receiver.broken(why)


class Receiver:
    """`read` makes a Delivery of what arrived, or None if it took care of it itself."""

    def __init__(self, queue: str, prefetch: int, read: Read) -> None:
        self.queue = queue
        self.taps: list[Tap] = []
        self._prefetch = prefetch
        self._read = read
        self._arrived: deque[tuple[Tap, int, Content]] = deque()
        self._woken = asyncio.Event()
        self._why: Exception | None = None
        self._stopped = False
        self._handed_out = 0
        self._held = Held(self._woken.set)
        self._leaving: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None

    async def deliveries(
        self, connect: Callable[[], AsyncGenerator[tuple[Connection, str]]]
    ) -> AsyncGenerator[Delivery]:
        """`connect` gives a connection and a name for each queue to be read."""
        try:
            async for connection, name in connect():
                tap = Tap(name, self)
                self.taps.append(tap)
                await tap.open(connection, min(self._prefetch, MAX_PREFETCH))
            while not self._stopped:
                while self._held.due and self._why is None:
                    yield self._held.next()
                while self._arrived and self._handed_out < self._prefetch and self._why is None:
                    tap, tag, content = self._arrived.popleft()
                    self._handed_out += 1
                    receipt = Receipt(tap.tags, tag)  # type: ignore[arg-type]  # open by now
                    delivery = self._read(tap.name, receipt, content)
                    if delivery is not None:
                        yield delivery
                if self._why is not None:
                    raise Unreachable(str(self._why)) from self._why
                self._woken.clear()
                if not (self._held.due or (self._arrived and self._handed_out < self._prefetch)):
                    await self._woken.wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Ends the iterator and gives back what was never handed out. Safe to repeat, and not interrupted: who is
        cancelled meanwhile does not hold messages for ever.
        """
        self._stopped = True
        self._woken.set()
        if self._ending is None or self._ending.done():
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        for tap in self.taps:
            await tap.end()
        while self._arrived:  # from the end: each takes its old place before the one behind it
            tap, tag, _ = self._arrived.pop()
            self._reject(tap, tag)
        self._held.give_back()
        for tap in self.taps:
            await tap.leave()

    def _reject(self, tap: Tap, tag: int) -> None:
        """One that was never handed out."""
        if tap.tags is not None and tap.tags.holds(tag):
            self._handed_out += 1  # `settled` counts it as one of those
            tap.tags.reject(tag, requeue=True)

    def hold(self, delivery: Delivery) -> bool:
        """Hands it out again in a while, in the place of giving it back. False: it is in no hand of this one, or
        this one has ended.
        """
        receipt: Receipt = delivery.receipt
        ours = any(tap.tags is receipt.tags for tap in self.taps) and receipt.tags.holds(receipt.tag)
        if ours and not self._stopped:
            self._held.add(delivery)
        return ours and not self._stopped

    def unsettled(self, name: str) -> int:
        return sum(len(tap.tags) for tap in self.taps if tap.tags is not None and tap.name == name)

    def late(self) -> list[tuple[str, int]]:
        """Queues, and how many of their deliveries have now been unsettled for half of the broker's time."""
        counts = [(tap.name, tap.tags.late()) for tap in self.taps if tap.tags is not None]
        return [(name, count) for name, count in counts if count]

    @property
    def finished(self) -> bool:
        """Nothing of it is left on the broker."""
        return self._stopped and all(
            tap.channel is None or tap.channel.why_closed is not None for tap in self.taps
        )

    async def give_back(self) -> None:
        await self.stop()
        for tap in self.taps:
            if tap.tags is not None and tap.channel is not None and tap.channel.why_closed is None:
                await tap.tags.rest()
                tap.tags.give_back()
                await tap.channel.close()

    # What the taps and their tags tell.

    def arrived(self, tap: Tap, tag: int, content: Content) -> None:
        if self._stopped:  # behind everything that was given back
            self._reject(tap, tag)
            return
        self._arrived.append((tap, tag, content))
        self._woken.set()

    def settled(self) -> None:
        self._handed_out -= 1
        if self._stopped:
            self._leave_soon()
        else:
            self._woken.set()

    def broken(self, why: Exception) -> None:
        if self._why is None:
            self._why = why
        self._woken.set()

    def _leave_soon(self) -> None:
        for tap in self.taps:
            if tap.channel is not None and tap.channel.why_closed is None and not tap.tags:
                task = asyncio.create_task(tap.leave())
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
