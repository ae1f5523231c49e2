"""Where a dead letter is made durable: the first sink that takes it, or nobody, and then nothing is acknowledged.

With the store as the primary: store, spool, dead-letter queue. The spool comes before the queue because it keeps
the whole story and drains into the store by itself. With the queue as the primary: queue, store, spool.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from redrive.dead_letter import Entry, Recorded
from redrive.errors import NotDurable, PublishRefused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redrive.clock import Clock
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport
    from redrive.upkeep.spool import Spool

log = structlog.get_logger("redrive.sinks")

STORE_DEADLINE = 15.0
_FIRST_PROBE, _LAST_PROBE = 0.5, 10.0


class Kept(NamedTuple):
    """Where the letter is now."""

    sink: str
    letter_id: str | None
    recorded: Recorded


class Sink(Protocol):
    name: str

    async def keep(self, entry: Entry) -> Kept:
        """Durable when it returns. Raises Unreachable, NotDurable or PublishRefused, and then it is not."""
        ...


class StoreSink:
    """The store, left alone while it is away: one probe at a time, each a little later (R26)."""

    name = "store"

    def __init__(self, store: DeadLetterStore, *, clock: Clock, random: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._wait = 0.0
        self._again_at = 0.0

    @property
    def away(self) -> bool:
        return self._wait > 0

    async def keep(self, entry: Entry) -> Kept:
        if self.away and self._clock.monotonic() < self._again_at:
            raise Unreachable("the store was away a moment ago")
        try:
            async with asyncio.timeout(STORE_DEADLINE):
                letter_id, recorded = await self._store.record(entry)
        except (Unreachable, TimeoutError) as error:
            self._postpone()
            raise Unreachable(f"the store is away: {error}") from error
        self._wait = 0.0
        return Kept(self.name, letter_id, recorded)

    def _postpone(self) -> None:
        # Decorrelated jitter: processes that lost the store together do not come back together.
        span = max(_FIRST_PROBE, self._wait * 3) - _FIRST_PROBE
        self._wait = min(_LAST_PROBE, _FIRST_PROBE + self._random() * span)
        self._again_at = self._clock.monotonic() + self._wait


class QueueSink:
    """The broker's own dead-letter queue, in S3's layout: the message with its last error."""

    name = "queue"

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def keep(self, entry: Entry) -> Kept:
        last = entry.failures[-1]
        message = entry.message.with_error(last.text, last.type, last.trace)
        await self._transport.send(message, queue=self._transport.names.dead_of(entry.queue))
        return Kept(self.name, None, Recorded.NEW)


class SpoolSink:
    name = "spool"

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    async def keep(self, entry: Entry) -> Kept:
        await self._spool.append(entry)
        return Kept(self.name, None, Recorded.NEW)


class SinkChain:
    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks

    async def keep(self, entry: Entry) -> Kept:
        """Raises NotDurable, with what each sink said, if none took it."""
        said: list[str] = []
        for sink in self._sinks:
            try:
                return await sink.keep(entry)
            except (Unreachable, NotDurable, PublishRefused, OSError) as error:
                said.append(f"{sink.name}: {error}")
                log.warning("dead letter sink failed", sink=sink.name, error=str(error), queue=entry.queue)
        raise NotDurable("; ".join(said), remedy="free disk space or bring the store back; work goes on by itself")
