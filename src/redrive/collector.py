"""Brings in what others dead-lettered: out of the broker's dead-letter queues, into the store.

One `QueueCollector` per queue. Whatever uses the store asks by one `Availability`, so that a store that is away is
left alone by all.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import msgspec
import structlog

from redrive import garbage
from redrive.collecting import NOBODY, PREFETCH, Collected, QueueCollector
from redrive.errors import CorruptFile, Unreachable, UsageError
from redrive.pace import Pace
from redrive.transports import QueueDepth, capabilities_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from redrive.availability import Availability
    from redrive.clock import Clock
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport

__all__ = ["Collected", "Collector"]

log = structlog.get_logger("redrive.collector")

_TELL_EVERY = 10.0
_LOOK_EVERY = 0.1
_EMPTY_LOOKS, _HELD_LOOKS = 2, 30
"""So often in a row there is nothing to do before the queues are taken for empty; more often if messages are in
somebody's hands, for they may be on their way to us, or come back from the dead.
"""
_WINDOW = 1.0
"""Seconds of messages in hand, where there is a rate: what waits for its turn is nobody else's."""


class Collector:
    """`limit` messages in all, `rate` per second; None is all there are, as fast as it goes."""

    def __init__(
        self,
        queues: Sequence[str],
        *,
        transport: Transport,
        store: DeadLetterStore,
        availability: Availability,
        clock: Clock,
        rate: float | None = None,
        limit: int | None = None,
    ) -> None:
        if not queues or not all(queues):
            raise UsageError("no queue to collect from", remedy="name one, or set [collector] queues")
        self._transport = transport
        self._store = store
        self._clock = clock
        self._allowed = limit
        self._on_progress: Callable[[int], None] | None = None
        self._stopping = asyncio.Event()
        self._told: dict[str, dict[str, int]] = {}
        """By queue, so that nothing is told twice."""
        self.complete = False
        """Whether it came to its end: the queues were empty, or the limit was reached."""
        pace = Pace(rate, clock)
        window = pace.window(PREFETCH, within=_WINDOW)
        self._queues = [
            QueueCollector(
                queue,
                transport=transport,
                store=store,
                availability=availability,
                clock=clock,
                pace=pace,
                prefetch=window if limit is None else min(window, limit),
                may_take=self._may_take,
                on_settled=self._settled,
            )
            for queue in dict.fromkeys(queues)
        ]

    @property
    def store(self) -> DeadLetterStore:
        return self._store

    @property
    def collected(self) -> Mapping[str, Collected]:
        return {each.queue: each.collected for each in self._queues}

    def connected(self, queue: str) -> bool:
        """Whether broker and store are there for this queue."""
        return any(each.connected for each in self._queues if each.queue == queue)

    async def backlog(self) -> int:
        """How many messages wait to be collected."""
        return sum(depth.ready for depth in await self._depths())

    async def run(self, *, once: bool = False, on_progress: Callable[[int], None] | None = None) -> None:
        """Collects until it is stopped. Once: until the queues are empty; then a broker or a store that is away at
        the beginning is an error, and not waited for. `on_progress` is told how many more are in the store.
        """
        self._on_progress = on_progress
        if once:
            await self.backlog()
            await self._store.get(NOBODY)
        jobs = [asyncio.create_task(each.run()) for each in self._queues]
        jobs.append(asyncio.create_task(self._tell_now_and_then()))
        if once:
            jobs.append(asyncio.create_task(self._until_empty()))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            with garbage.seldom_looked_for():
                await asyncio.wait((stopping, *jobs), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await asyncio.gather(*(each.finish() for each in self._queues))
            for job in (stopping, *jobs):
                job.cancel()
            ended = await asyncio.gather(stopping, *jobs, return_exceptions=True)
            self._tell()
        for result in ended:
            if isinstance(result, Exception):
                raise result

    def stop(self) -> None:
        """Takes no more; `run` returns when what is in hand is recorded or given back."""
        self._stopping.set()

    def listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    def _may_take(self) -> bool:
        if self._allowed is None:
            return True
        if not self._allowed:
            return False
        self._allowed -= 1
        if not self._allowed:
            self.complete = True
            self.stop()
        return True

    def _settled(self) -> None:
        if self._on_progress is not None:
            self._on_progress(1)

    async def _until_empty(self) -> None:
        quiet, enough = 0, _EMPTY_LOOKS
        while quiet < enough:
            await self._clock.sleep(_LOOK_EVERY)
            left = await self._left_to_others()
            quiet = 0 if left is None else quiet + 1
            enough = _HELD_LOOKS if left else _EMPTY_LOOKS
        self.complete = True

    async def _left_to_others(self) -> int | None:
        """How many messages somebody else has in hand; None if there is something to do here, or nobody knows."""
        if not all(each.idle for each in self._queues):
            return None
        try:
            depths = await self._depths()
        except CorruptFile:
            raise
        except Unreachable:
            return None  # the broker is waited for
        if any(depth.ready for depth in depths):
            return None
        return sum(depth.leased for depth in depths) - sum(each.holding for each in self._queues)

    async def _depths(self) -> list[QueueDepth]:
        found = await self._transport.depths([each.queue for each in self._queues])
        return [self._reachable(found[each.queue], each) for each in self._queues if each.queue in found]

    def _reachable(self, depth: QueueDepth, queue: QueueCollector) -> QueueDepth:
        """Where messages come one by one, those behind one that is held are as good as in other hands."""
        if not queue.holding or capabilities_of(self._transport, queue.queue).side_by_side:
            return depth
        return QueueDepth(0, depth.delayed, depth.leased + depth.ready)

    async def _tell_now_and_then(self) -> None:
        while True:
            await self._clock.sleep(_TELL_EVERY)
            self._tell()

    def _tell(self) -> None:
        for each in self._queues:
            counts = msgspec.structs.asdict(each.collected)
            if any(counts.values()) and counts != self._told.get(each.queue):
                self._told[each.queue] = counts
                log.info("collected", queue=each.queue, **counts)
