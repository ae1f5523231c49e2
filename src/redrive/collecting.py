"""Collects from one dead-letter queue, in an order that survives a kill at any point.

1. Messages are received; at most PREFETCH of one queue are in hand. Those that come together go on together.
2. The dialects read what each says of its failure. What nobody understands is kept in quarantine, never left out.
3. The store records them, all in one transaction.
4. They are durable: acknowledged. Killed in between, they are received again, and the store knows each by its
   identity.
5. The store is away: nothing is acknowledged, what is in hand goes back, nothing more is taken until it is there.
6. The store refuses them: each goes on alone, as one does that claims to be a redrive of ours. One that is refused
   alone is told, stays in hand for a while and is offered again; the others are not held up by it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from redrive import control, dialects, faults
from redrive.dead_letter import Entry, Recorded
from redrive.dialects import Arrival
from redrive.errors import LeaseLost, Unreachable
from redrive.fingerprint import fingerprint
from redrive.giving_back import GivingBack
from redrive.reconnection import Reconnection
from redrive.sinks import StoreSink
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from redrive.availability import Availability
    from redrive.clock import Clock
    from redrive.dialects import Reading
    from redrive.pace import Pace
    from redrive.stores import DeadLetterStore
    from redrive.transports import Delivery, Transport

    Answer = tuple[str | None, Recorded]

log = structlog.get_logger("redrive.collector")

PREFETCH = 1000
TOGETHER, TOGETHER_BYTES = 250, 4 * 2**20
"""So many messages at most, or as many as have so many bytes, go on together: a part of those in hand, so that
some are read here while the store has the others.
"""
NOBODY = "0" * 36
"""The id of no letter: asking for it is a sign of life."""

_REFUSED_AGAIN = 60.0
_LOOK_AT_STORE = 0.2
_SETTLING, _GIVING_BACK = 5.0, 5.0


class Collected(msgspec.Struct):
    """What became of the messages of one queue since the collector began."""

    new: int = 0
    again: int = 0
    """In the store already: the same message, collected or recorded before."""
    came_back: int = 0
    """Redrives of letters of the store that failed again."""
    quarantined: int = 0
    """Of the new ones: what no dialect understood."""
    refused: int = 0
    """By the store. They are still in the queue."""

    @property
    def settled(self) -> int:
        return self.new + self.again + self.came_back


class QueueCollector:
    """`may_take` is asked before each message; from its first no on nothing more is taken. `on_settled` is called
    after each acknowledgement.
    """

    def __init__(
        self,
        queue: str,
        *,
        transport: Transport,
        store: DeadLetterStore,
        availability: Availability,
        clock: Clock,
        pace: Pace,
        prefetch: int,
        may_take: Callable[[], bool],
        on_settled: Callable[[], None],
    ) -> None:
        self.queue = queue
        self.collected = Collected()
        self._transport = transport
        self._store = store
        self._sink = StoreSink(store, availability=availability)
        self._availability = availability
        self._clock = clock
        self._pace = pace
        self._prefetch = prefetch
        self._may_take = may_take
        self._on_settled = on_settled
        self._broker = Reconnection(queue, transport=transport, clock=clock)
        self._giving_back = GivingBack(transport)
        self._in_hand: dict[asyncio.Task[None], list[Delivery]] = {}
        """What each task has not settled yet."""
        self._gathering: list[Delivery] = []
        """Of those in hand: the latest, which more may join, for its task has not begun."""
        self._gathered_bytes = 0
        self._refused: set[asyncio.Task[None]] = set()
        """Of those in hand: what the store refused, and waits to be given back."""
        self._taking: asyncio.Task[None] | None = None
        self._waiting = False
        self._stopped = False
        self._told: set[str] = set()
        """Warnings; there are few texts of them."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do but wait for a message, or for the time to offer a refused one again."""
        busy = self._in_hand.keys() - self._refused
        return self._waiting and not busy and not self._giving_back.under_way

    @property
    def connected(self) -> bool:
        """Whether the broker and the store are there, as far as anybody knows."""
        return self._broker.connected and not self._availability.away

    @property
    def holding(self) -> int:
        """Messages that the store refused, and that stay in hand for a while."""
        return len(self._refused)

    async def run(self) -> None:
        """Collects until `stop`. Broker and store are waited for when they are away."""
        self._taking = asyncio.create_task(self._take())
        with contextlib.suppress(asyncio.CancelledError):
            await self._taking

    def stop(self) -> None:
        """Takes no more; `finish` waits for what is in hand. Safe to repeat."""
        if self._taking is not None and not self._stopped:
            self._taking.cancel()  # once: a second time would interrupt the giving back
        self._stopped = True

    async def finish(self) -> None:
        """What is being recorded is acknowledged if that takes no longer than a moment; the rest goes back."""
        self.stop()
        if recording := self._in_hand.keys() - self._refused:
            await asyncio.wait(recording, timeout=_SETTLING)
        for task in self._in_hand:
            task.cancel()
        if self._in_hand:
            await asyncio.wait(self._in_hand)
        if last := {*self._giving_back.under_way, *([self._taking] if self._taking else [])}:
            await asyncio.wait(last, timeout=_GIVING_BACK)

    async def _take(self) -> None:
        while not self._stopped:
            await self._broker.attempt(self._take_while_the_store_is_there)

    async def _take_while_the_store_is_there(self) -> None:
        await self._until_the_store_is_there()
        await self._broker.sign_of_life()
        receiving = self._transport.receive(self.queue, prefetch=self._prefetch)
        async with contextlib.aclosing(receiving) as deliveries:
            while not self._availability.away:
                await self._pace.turn()
                self._waiting = True
                try:
                    delivery = await anext(deliveries)
                finally:
                    self._waiting = False
                self._broker.connected = True
                if not self._may_take():
                    await asyncio.shield(self._giving_back.start(delivery))
                    return
                self._gather(delivery)
                if not self._gathering:  # they are complete: let them begin, before more are read
                    await asyncio.sleep(0)

    async def _until_the_store_is_there(self) -> None:
        if self._availability.away:
            log.warning("the store is away, nothing is collected until it is back", queue=self.queue)
        while self._availability.away:
            if self._availability.due:
                with contextlib.suppress(Exception):  # any answer, be it a refusal, is a sign of life
                    await self._availability.ask(lambda: self._store.get(NOBODY))
            else:
                await self._clock.sleep(_LOOK_AT_STORE)

    def _gather(self, delivery: Delivery) -> None:
        faults.point("collector.received")
        if not self._gathering:
            self._gathering, self._gathered_bytes = [], 0
            self._start(self._collect_together(self._gathering), self._gathering)
        self._gathering.append(delivery)
        self._gathered_bytes += len(delivery.message.body or b"")
        if len(self._gathering) >= TOGETHER or self._gathered_bytes >= TOGETHER_BYTES:
            self._gathering = []

    def _start(self, work: Coroutine[Any, Any, None], deliveries: list[Delivery]) -> None:
        task = asyncio.create_task(work)
        self._in_hand[task] = deliveries
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        deliveries = self._in_hand.pop(task)
        self._refused.discard(task)
        if deliveries is self._gathering:  # cancelled before it began
            self._gathering = []
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Unreachable):
            log.error("a delivery could not be settled", queue=self.queue, **error_facts(error))
        # Here and not in the task: one that is cancelled before its first step runs nothing of its own.
        if task.cancelled() or error is not None:
            for delivery in deliveries:
                self._giving_back.start(delivery)

    async def _collect_together(self, deliveries: list[Delivery]) -> None:
        if deliveries is self._gathering:
            self._gathering = []
        self._go_alone(deliveries, lambda delivery: control.carries_ticket(delivery.message.headers))
        readings = [self._read(delivery) for delivery in deliveries]
        try:
            answers = await self._recorded(deliveries, readings)
        except Unreachable:
            raise  # the pause is told once, not for each
        except Exception:  # noqa: BLE001  each alone finds out whose it is
            self._go_alone(deliveries, lambda _: True)
            return
        settling = map(self._settle, deliveries, readings, answers)
        outcomes = await asyncio.gather(*settling, return_exceptions=True)
        log.debug("dead letters collected", queue=self.queue, number=len(answers))
        deliveries[:] = [each for each, error in zip(deliveries, outcomes, strict=True) if error is not None]
        for error in filter(None, outcomes):
            raise error

    def _go_alone(self, together: list[Delivery], which: Callable[[Delivery], bool]) -> None:
        alone = [delivery for delivery in together if which(delivery)]
        together[:] = [delivery for delivery in together if not which(delivery)]
        for delivery in alone:
            self._start(self._collect_alone(delivery), [delivery])

    async def _recorded(self, deliveries: list[Delivery], readings: list[Reading]) -> Sequence[Answer]:
        entries = [self._entry(*each) for each in zip(deliveries, readings, strict=True)]
        if not entries:
            return []
        return await self._availability.ask(lambda: self._store.record_together(entries))

    async def _collect_alone(self, delivery: Delivery) -> None:
        reading = self._read(delivery)
        while (answer := await self._kept(delivery, reading)) is None:
            pass  # held, and offered again: giving back counts as a delivery, and some brokers allow only so many
        await self._settle(delivery, reading, answer)

    async def _kept(self, delivery: Delivery, reading: Reading) -> Answer | None:
        """None: the store would not have it, and some time has passed since."""
        try:
            kept = await self._sink.keep(self._entry(delivery, reading))
        except Unreachable:
            raise  # as above
        except Exception as error:  # noqa: BLE001  one letter's trouble is not the others'
            await self._wait_with(delivery, error)
            return None
        return kept.letter_id, kept.recorded

    async def _settle(self, delivery: Delivery, reading: Reading, answer: Answer) -> None:
        faults.point("collector.after_record")
        faults.point("collector.before_ack")
        with contextlib.suppress(LeaseLost):  # somebody else has it now, and will find it recorded
            await self._transport.ack(delivery)
        self._count(*answer, reading)

    def _read(self, delivery: Delivery) -> Reading:
        arrival = Arrival(
            message=delivery.message,
            queue=delivery.queue,
            home_of_dead=self._transport.names.home_of_dead,
            now=self._clock.now(),
            trail=delivery.trail,
        )
        return dialects.read(arrival)

    def _entry(self, delivery: Delivery, reading: Reading) -> Entry:
        faults.point("collector.before_record")
        return Entry(
            identity=reading.identity or f"{delivery.identity}/{reading.handler}",
            message=reading.message,
            queue=reading.home,
            handler=reading.handler,
            failures=reading.failures,
            fingerprint=fingerprint(reading.failures[-1], queue=reading.home),
            at=self._clock.now(),
            first_attempt_at=reading.first_attempt_at or reading.failures[0].at,
            quarantine=reading.quarantine,
            by="collector",
        )

    async def _wait_with(self, delivery: Delivery, error: Exception) -> None:
        """Given back at once, it would be the next to be received."""
        self.collected.refused += 1
        log.error(
            "a dead letter was not recorded and stays in its queue",
            queue=self.queue,
            message_id=delivery.message.id,
            again_in=_REFUSED_AGAIN,
            **error_facts(error),
        )
        if (task := asyncio.current_task()) is not None:
            self._refused.add(task)
            await self._clock.sleep(_REFUSED_AGAIN)
            self._refused.discard(task)
        self.collected.refused -= 1

    def _count(self, letter_id: str | None, recorded: Recorded, reading: Reading) -> None:
        counts = self.collected
        if recorded is Recorded.NEW:
            counts.new += 1
            counts.quarantined += reading.quarantine is not None
        elif recorded is Recorded.AGAIN:
            counts.again += 1
        else:
            counts.came_back += 1
        if reading.warnings or reading.quarantine:
            self._warn(letter_id, reading)
        self._on_settled()

    def _warn(self, letter_id: str | None, reading: Reading) -> None:
        for warning in (*reading.warnings, *([reading.quarantine] if reading.quarantine else [])):
            if warning not in self._told:  # once for a queue: it may hold a million of them
                self._told.add(warning)
                log.warning("a dead letter tells little", queue=self.queue, letter_id=letter_id, why=warning)
