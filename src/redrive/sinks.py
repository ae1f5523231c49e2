"""Where a dead letter is made durable: the first sink that takes it, or nobody, and then nothing is acknowledged.

With the store as the primary: store, spool, dead-letter queue. The spool comes before the queue because it keeps
the whole story and drains into the store by itself. With the queue as the primary: queue, store, spool. With both:
store, else spool, and the queue beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import structlog

from redrive import control, faults
from redrive.dead_letter import Entry, Recorded
from redrive.errors import NotDurable, PublishRefused, TrailTooLong
from redrive.failure import encode_trail
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redrive.availability import Availability
    from redrive.failure import Failure
    from redrive.message import Message
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport
    from redrive.upkeep.spool import Spool

log = structlog.get_logger("redrive.sinks")

TRAIL_BUDGET = 64 * 1024


class Kept(NamedTuple):
    """Where the letter is now."""

    sink: str
    letter_id: str | None
    recorded: Recorded
    entry: Entry
    """As it was kept: the store's has its ticket verified."""
    natively: bool = False
    """Its delivery has to be settled into the broker's own dead letters, in the place of an ack."""


class Sink(Protocol):
    name: str

    async def keep(self, entry: Entry) -> Kept:
        """Durable when it returns. If it raises anything, it is not."""
        ...


class StoreSink:
    """The store, left alone while it is away."""

    name = "store"

    def __init__(self, store: DeadLetterStore, *, availability: Availability) -> None:
        self._store = store
        self._availability = availability

    async def keep(self, entry: Entry) -> Kept:
        return await self._availability.ask(lambda: self._record(entry))

    async def _record(self, entry: Entry) -> Kept:
        verified = await self._verified(entry)
        letter_id, recorded = await self._store.record(verified)
        return Kept(self.name, letter_id, recorded, verified)

    async def _verified(self, entry: Entry) -> Entry:
        """With the redrive that came back, if its ticket is ours. Only the store has the key, so it is looked at
        here, where a letter from the spool passes as well.
        """
        headers = entry.message.headers
        if entry.ticket is not None or not control.carries_ticket(headers):
            return entry
        ticket = control.read_ticket(headers, entry.queue, await self._store.signing_key())
        if ticket is None:
            return entry
        stripped = entry.message.with_headers(control.strip(headers))
        return msgspec.structs.replace(entry, ticket=ticket, message=stripped)


class QueueSink:
    """The broker's own dead-letter queue, in S3's layout: the message with its last error. All its failures travel
    with it, as far as the broker has room for them.
    """

    name = "queue"

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def keep(self, entry: Entry) -> Kept:
        message = with_failure(entry.message, entry.failures[-1])
        dead = self._transport.names.dead_of(entry.queue)
        await with_trail(
            entry.failures,
            lambda trail: self._transport.send(message, queue=dead, trail=trail),
            identity=entry.identity,  # if the store has the letter too, whoever collects the copy finds it there
        )
        return Kept(self.name, None, Recorded.NEW, entry)


class NativeSink:
    """The broker's own dead letters, to which nothing can be sent. The letter is durable where it is, in its
    queue, until its delivery is settled into them: one step, which the broker makes or does not.
    """

    name = "queue"

    async def keep(self, entry: Entry) -> Kept:
        return Kept(self.name, None, Recorded.NEW, entry, natively=True)


async def with_trail(
    failures: tuple[Failure, ...], send: Callable[[bytes], Awaitable[None]], *, identity: str = ""
) -> None:
    """Sends with as much of the failures' story as the broker takes: all of it, what the broker says it has room
    for, or nothing. PublishRefused: it has no room for nothing either, and never will.
    """
    room = TRAIL_BUDGET
    for _ in range(2):
        try:
            return await send(encode_trail(failures, room, identity=identity))
        except TrailTooLong as error:
            room = error.room
    try:
        return await send(b"")
    except TrailTooLong as error:
        raise PublishRefused(str(error), permanent=True, remedy="make the message smaller") from None


def with_failure(message: Message, last: Failure) -> Message:
    """In S3's layout: the last error, and the number of attempts made, those in place included."""
    attempts = max(message.retry_count + 1, last.attempt)
    return message.with_failure(last.text, last.type, last.trace, retry_count=attempts)


class SpoolSink:
    name = "spool"

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    async def keep(self, entry: Entry) -> Kept:
        await self._spool.append(entry)
        return Kept(self.name, None, Recorded.NEW, entry)


class BothSinks:
    """The store, or what stands in for it, and the dead-letter queue. Where one of them does not take a letter,
    the other one is enough.
    """

    name = "both"

    def __init__(self, store: SinkChain, queue: Sink) -> None:
        self._store = store
        self._queue = queue

    async def keep(self, entry: Entry) -> Kept:
        try:
            kept = await self._store.keep(entry)
        except NotDurable:
            return await self._queue.keep(entry)
        faults.point("worker.between_sinks")
        try:
            copy = await self._queue.keep(entry)
        except Exception as error:  # noqa: BLE001  whatever it was, the letter is durable
            log.warning(
                "dead letter not in the dead-letter queue as well",
                sink=kept.sink,
                queue=entry.queue,
                **error_facts(error),
            )
            return kept
        return kept._replace(sink=f"{kept.sink} and queue", natively=copy.natively)


class SinkChain:
    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks

    async def keep(self, entry: Entry) -> Kept:
        """Raises NotDurable, with what each sink said, if none took it."""
        said: list[str] = []
        for sink in self._sinks:
            try:
                return await sink.keep(entry)
            except Exception as error:  # noqa: BLE001  whatever it was, the letter is not there
                facts = error_facts(error)
                said.append(f"{sink.name}: {facts['error']}")
                log.warning("dead letter sink failed", sink=sink.name, queue=entry.queue, **facts)
        raise NotDurable("; ".join(said), remedy="free disk space or bring the store back; work goes on by itself")
