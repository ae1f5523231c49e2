"""A dead-letter queue of the broker, and how its messages go home: each at most once, none lost.

1. The caller counts what lies there now (`backlog`): no more than that is received.
2. Each message: send to its own queue with `error` and `retry_count` reset, then remove the copy; IN_FLIGHT of
   them at a time. Crash between the two: the copy comes back when its lease has run out, a duplicate with its id.
3. A message that is met again and was put there after the cut-off came straight back from a failing handler
   (SD10). It is left where it is. One that lay there from the start is a second copy, as a crash in step 2 and a
   second failure leave it: it is sent like any other, for only its consumer can tell whether it was handled.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import msgspec

from redrive import faults
from redrive.dialects import Arrival, read
from redrive.errors import LeaseLost, PublishRefused, UsageError
from redrive.redriving import sender
from redrive.transports import capabilities_of
from redrive.volley import Volley

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from datetime import datetime

    from redrive.message import Message
    from redrive.pace import Pace
    from redrive.telemetry.spans import Spans
    from redrive.transports import Delivery, Names, Transport

IN_FLIGHT = 100
_PATIENCE = 1.0
"""Seconds without a delivery after which the depth is looked at again: somebody else may be draining too."""
_EMPTY_LOOKS = 2
"""So often in a row nothing is ready before the rest is taken for gone: what our own fetch has just leased is not
ready either, and is about to be handed out.
"""


class Drained(msgspec.Struct, frozen=True):
    """What became of the messages of a dead-letter queue."""

    sent: int = 0
    came_back: int = 0
    """Met a second time, put there since the command began, and left in the dead-letter queue."""
    refused: int = 0
    """The broker would not have them in their own queue; left in the dead-letter queue."""
    untried: int = 0
    """Behind so many that had to be left that the command stopped: they are held, and must be few (G7). Where a
    queue comes one by one, behind any.
    """
    not_met: int = 0
    """Counted at the start and never received: somebody else took them, or has them in hand."""


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

    def __init__(self, name: str, *, transport: Transport, spans: Spans | None = None) -> None:
        self._name = name
        self._spans = spans
        self._transport = transport
        self.home = home_of(name, transport.names)

    async def backlog(self) -> Backlog:
        depth = (await self._transport.depths((self._name,))).get(self._name)
        return Backlog(0, 0) if depth is None else Backlog(depth.ready, depth.leased)

    async def drain(
        self,
        at_most: int,
        *,
        pace: Pace,
        cut_off: datetime | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Drained:
        """Sends `at_most` messages home, as many as lay there at `cut_off`. What was sent and is met again is left
        if it was put there later than that; where the broker or the caller gives no time, it is sent.
        """
        passage = _Passage(self._transport, cut_off, on_progress, self._spans)
        async with aclosing(self._transport.receive(self._name, prefetch=IN_FLIGHT)) as receiving:
            taking = asyncio.create_task(passage.take_all(receiving, at_most, pace))
            try:
                await self._until_all_or_gone(taking, passage)
            finally:
                taking.cancel()
                await asyncio.wait({taking})
                await passage.end()
        if not taking.cancelled():
            taking.result()
        passage.check()
        left = at_most - passage.met
        untried, not_met = (left, 0) if passage.full or self._is_held_up(passage) else (0, left)
        return Drained(passage.sent, passage.came_back, passage.refused, untried, not_met)

    async def _until_all_or_gone(self, taking: asyncio.Task[None], passage: _Passage) -> None:
        """Gone: somebody else has taken the rest, or it waits behind what is kept."""
        empty, begun = 0, -1
        while empty < _EMPTY_LOOKS and not (await asyncio.wait({taking}, timeout=_PATIENCE))[0]:
            nothing_came = passage.expecting and passage.begun == begun and not passage.busy
            begun = passage.begun
            gone = nothing_came and (self._is_held_up(passage) or (await self.backlog()).ready == 0)
            empty = empty + 1 if gone else 0

    def _is_held_up(self, passage: _Passage) -> bool:
        """What comes one by one does not come while one before it is kept."""
        return bool(passage.kept) and not capabilities_of(self._transport, self._name).side_by_side


class _Passage:
    """The messages of one command on their way home, several at a time."""

    def __init__(
        self,
        transport: Transport,
        cut_off: datetime | None,
        on_progress: Callable[[int], None] | None,
        spans: Spans | None,
    ) -> None:
        follow = None if spans is None else spans.redrive
        self._transport = transport
        self._send_home = sender(transport, to_origin=False, follow=follow)
        self._cut_off = cut_off
        self._on_progress = on_progress
        self._seen: set[tuple[str, bytes]] = set()
        self._volley = Volley(transport, follow)
        self._flying: dict[int, Delivery] = {}
        self._by_themselves: set[asyncio.Task[None]] = set()
        self._settling = asyncio.create_task(self._settle())
        self._moved = asyncio.Event()
        self._error: Exception | None = None
        self.begun = 0
        self.expecting = False
        """The next one is waited for, and nothing else."""
        self.kept: list[Delivery] = []
        self.sent = self.came_back = self.refused = 0

    @property
    def met(self) -> int:
        return self.sent + self.came_back + self.refused

    @property
    def busy(self) -> bool:
        return self._under_way > 0

    @property
    def _under_way(self) -> int:
        return len(self._flying) + len(self._by_themselves)

    @property
    def full(self) -> bool:
        """So many are kept that no other can be received."""
        return len(self.kept) >= IN_FLIGHT

    async def take_all(self, receiving: AsyncGenerator[Delivery], at_most: int, pace: Pace) -> None:
        """What has arrived is begun in one go, so that it goes out in one go."""
        while self.begun < at_most and await self._room():
            await pace.turn()  # before the message is in hand: its lease must not run out meanwhile
            self.expecting = True
            delivery = await anext(receiving, None)
            self.expecting = False
            if delivery is None:
                return
            self.begun += 1
            self._begin(delivery)
        await self._until(lambda: not self.busy)

    async def _room(self) -> bool:
        """Whether there is any, once it is known."""
        await self._until(lambda: not self.busy or self._under_way + len(self.kept) < IN_FLIGHT)
        return not self.full

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Raises what went wrong with one of those under way."""
        self.check()
        while not reached():
            self._moved.clear()
            await self._moved.wait()
            self.check()

    def _begin(self, delivery: Delivery) -> None:
        faults.point("reprocess.received")
        mark = _mark_of(delivery.message)
        if mark in self._seen and self._later(delivery):
            self.came_back += 1
            self.kept.append(delivery)
            self._progress()
            return
        self._seen.add(mark)
        message, home = delivery.message.with_reset(), self._destination(delivery)
        if self._volley.send(self.begun, message, queue=home):
            self._flying[self.begun] = delivery
        else:
            task = asyncio.create_task(self._send(delivery, message, home))
            self._by_themselves.add(task)
            task.add_done_callback(self._ended)

    async def _send(self, delivery: Delivery, message: Message, home: str) -> None:
        try:
            await self._send_home(message, queue=home)
        except PublishRefused as refused:
            await self._became(delivery, refused)
        else:
            await self._became(delivery, None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._by_themselves.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._error = self._error or error
        self._moved.set()

    async def _settle(self) -> None:
        """For ever: what was sent at once is removed as soon as the broker has confirmed it."""
        while True:
            await self._volley.word()
            for place, error in self._volley.landed().items():
                try:
                    await self._became(self._flying[place], error)
                except Exception as met:  # noqa: BLE001  told by `check`; the others are settled all the same
                    self._error = self._error or met
                del self._flying[place]
            self._moved.set()

    async def _became(self, delivery: Delivery, error: Exception | None) -> None:
        if isinstance(error, PublishRefused):
            self.refused += 1
            self.kept.append(delivery)
        elif error is not None:
            raise error
        else:
            faults.point("reprocess.after_send")
            await self._remove(delivery)
            self.sent += 1
        self._progress()

    def _progress(self) -> None:
        if self._on_progress is not None:
            self._on_progress(1)

    def _later(self, delivery: Delivery) -> bool:
        # Of a redelivered one the time tells only when a dead process' lease ran out.
        if self._cut_off is None or delivery.due_since is None or delivery.redelivered:
            return False
        return delivery.due_since > self._cut_off

    async def end(self) -> None:
        """What is under way ends first: sent and not removed, it would be sent again. What was kept is given back
        only now: given back at once, it would have been the next to be received.
        """
        while self.busy:
            self._moved.clear()
            await self._moved.wait()
        self._settling.cancel()
        for delivery in self.kept:
            with suppress(LeaseLost):
                await self._transport.release(delivery)

    def check(self) -> None:
        """Raises what went wrong with one of them."""
        if self._error is not None:
            raise self._error

    async def _remove(self, delivery: Delivery) -> None:
        with suppress(LeaseLost):  # somebody else has the copy now and will send it once more, under the same id
            await self._transport.ack(delivery)

    def _destination(self, delivery: Delivery) -> str:
        """The queue that the message was made for, else the one that it failed in."""
        own = delivery.message.queue
        if own and self._transport.names.home_of_dead(own) is None:
            return own
        arrival = Arrival(
            message=delivery.message,
            queue=delivery.queue,
            home_of_dead=self._transport.names.home_of_dead,
            now=delivery.message.sent_at,  # times do not matter here
            trail=delivery.trail,
        )
        return read(arrival).home


def _mark_of(message: Message) -> tuple[str, bytes]:
    # With the body: a producer that gives two messages one id must not hide the second.
    return message.id, hashlib.sha256(message.body or b"").digest()
