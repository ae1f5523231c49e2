"""A dead-letter queue of the broker, and how its messages go home: each at most once, none lost.

1. The caller counts what lies there now (`backlog`): no more than that is received.
2. Each message: send to its own queue with `error` and `retry_count` reset, then remove the copy.
   Crash between the two: the copy comes back when its lease has run out, one duplicate with the same id.
3. A message that is met again came straight back from a failing handler (SD10). It is left where it is.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import msgspec

from redrive import faults
from redrive.errors import LeaseLost, PublishRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from redrive.message import Message
    from redrive.pace import Pace
    from redrive.transports import Delivery, Names, Transport

_PREFETCH = 20
_PATIENCE = 1.0
"""Seconds without a delivery after which the depth is looked at again: somebody else may be draining too."""


class Drained(msgspec.Struct, frozen=True):
    """What became of the messages of a dead-letter queue."""

    sent: int = 0
    came_back: int = 0
    """Met a second time and left in the dead-letter queue."""
    refused: int = 0
    """The broker would not have them in their own queue; left in the dead-letter queue."""
    untried: int = 0
    """Behind so many that had to be left that the command stopped: they are held, and must be few (G7)."""


class Backlog(msgspec.Struct, frozen=True):
    ready: int
    in_other_hands: int


def home_of(name: str, names: Names) -> str:
    """The queue whose dead-letter queue this is. UsageError tells how such a name looks (S3)."""
    home = names.home_of_dead(name)
    if home is None:
        raise UsageError(
            f"{name!r} is not the name of a dead-letter queue",
            remedy=f"ordinary and retry queues cannot be reprocessed; did you mean {names.dead_of(name)!r}?",
        )
    return home


class DeadLetterQueue:
    """One dead-letter queue of the broker."""

    def __init__(self, name: str, *, transport: Transport) -> None:
        self._name = name
        self._transport = transport
        self.home = home_of(name, transport.names)

    async def backlog(self) -> Backlog:
        depth = (await self._transport.depths()).get(self._name)
        return Backlog(0, 0) if depth is None else Backlog(depth.ready, depth.leased)

    async def drain(
        self, at_most: int, *, pace: Pace, on_progress: Callable[[int], None] | None = None
    ) -> Drained:
        """Sends each message home once. `at_most` is the cut-off: what came later is not touched."""
        receiving = self._transport.receive(self._name, prefetch=_PREFETCH)
        passage = _Passage(self._transport, self.home)
        async with aclosing(receiving):
            try:
                while passage.met < at_most and not passage.full:
                    await pace.turn()  # before the message is in hand: its lease must not run out meanwhile
                    delivery = await self._next(receiving)
                    if delivery is None:
                        break
                    await passage.take(delivery)
                    if on_progress is not None:
                        on_progress(1)
            finally:
                await passage.give_back()
        untried = at_most - passage.met if passage.full else 0
        return Drained(passage.sent, passage.came_back, passage.refused, untried)

    async def _next(self, receiving: AsyncGenerator[Delivery]) -> Delivery | None:
        """The next delivery, or None if somebody else has taken the rest."""
        waiting = asyncio.ensure_future(anext(receiving, None))
        try:
            while not (await asyncio.wait({waiting}, timeout=_PATIENCE))[0]:
                if (await self.backlog()).ready == 0:
                    return None
            return waiting.result()
        finally:
            waiting.cancel()
            await asyncio.wait({waiting})


class _Passage:
    """The messages of one command on their way home."""

    def __init__(self, transport: Transport, home: str) -> None:
        self._transport = transport
        self._home = home
        self._seen: set[tuple[str, bytes]] = set()
        self.kept: list[Delivery] = []
        self.sent = self.came_back = self.refused = 0

    @property
    def met(self) -> int:
        return self.sent + self.came_back + self.refused

    @property
    def full(self) -> bool:
        return len(self.kept) >= _PREFETCH

    async def take(self, delivery: Delivery) -> None:
        faults.point("reprocess.received")
        mark = _mark_of(delivery.message)
        if mark in self._seen:
            self.came_back += 1
            self.kept.append(delivery)
            return
        self._seen.add(mark)
        try:
            await self._transport.send(delivery.message.with_reset(), queue=self._destination(delivery.message))
        except PublishRefused:
            self.refused += 1
            self.kept.append(delivery)
            return
        faults.point("reprocess.after_send")
        await self._remove(delivery)
        self.sent += 1

    async def give_back(self) -> None:
        """Only at the end: given back at once, they would be the next to be received."""
        for delivery in self.kept:
            with suppress(LeaseLost):
                await self._transport.release(delivery)

    async def _remove(self, delivery: Delivery) -> None:
        with suppress(LeaseLost):  # somebody else has the copy now and will send it once more, under the same id
            await self._transport.ack(delivery)

    def _destination(self, message: Message) -> str:
        dead = self._transport.names.home_of_dead(message.queue) is not None
        return self._home if dead or not message.queue else message.queue


def _mark_of(message: Message) -> tuple[str, bytes]:
    # With the body: a producer that gives two messages one id must not hide the second.
    return message.id, hashlib.sha256(message.body or b"").digest()
