"""One process that works for an App: a consumer per queue, and the upkeep beside them.

Start: consumers, then the upkeep (spool into the store, search index, attempt counts, opt-in expiry). Stop, by
SIGTERM, Ctrl-C or `stop`: nothing more is taken, running handlers may finish within the grace, the counts are
handed over, everything is closed. A second signal does not wait for the handlers: their messages are given back.

Whatever of it uses the store asks by one `Availability`, so that a store that is away is left alone by all.
"""

from __future__ import annotations

import asyncio
import functools
import signal
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
import structlog

from redrive.attempt import Attempts
from redrive.availability import Availability
from redrive.clock import Clock, SystemClock, own_name
from redrive.consumer import Consumer, ConsumerOptions
from redrive.errors import ConfigurationError, CorruptFile, Unreachable
from redrive.handler import Handler, NoHandler
from redrive.message import Message  # noqa: TC001  binding reads it at run time
from redrive.ordering import OrderedBy
from redrive.policy import FailurePolicy
from redrive.settling import Settling
from redrive.sinks import BothSinks, NativeSink, QueueSink, Sink, SinkChain, SpoolSink, StoreSink
from redrive.suspects import Suspects
from redrive.tally import Tally
from redrive.telemetry.error_facts import error_facts
from redrive.threads import HandlerThreads
from redrive.transports import NativeDeadLetters, capabilities_of
from redrive.upkeep.expiry import LOOK_EVERY, QueueExpiry
from redrive.upkeep.indexing import BATCH, index_behind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping

    from redrive.app import App
    from redrive.failure import Host
    from redrive.stores import DeadLetterStore, Store
    from redrive.telemetry.counts import HandlerCounts
    from redrive.telemetry.spans import Spans
    from redrive.transports import Names, Transport
    from redrive.upkeep.journal import Journal
    from redrive.upkeep.spool import Spool, SpoolState

log = structlog.get_logger("redrive.worker")

_DRAIN_EVERY, _SPOOL_EVERY, _INDEX_EVERY, _TALLY_EVERY = 0.05, 1.0, 1.0, 5.0
_QUIET = 1.5
"""Seconds without a message after which a queue is taken for empty, if its broker may have one on its way."""
_NOBODY = "0" * 36
"""The id of no letter."""


class QueuePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything settings, app and handler say about one queue, already weighed against each other."""

    policy: FailurePolicy
    options: ConsumerOptions = ConsumerOptions()
    timeout: float | None = None
    sink: Literal["store", "queue", "both"] = "store"
    """Where dead letters go first: to the store, to the broker's dead-letter queue, or to both."""
    expire_after: float | None = None
    notify_critical: bool = True
    """Critical letters are logged as such, and the app's `on_critical` is called."""
    ordered_by: OrderedBy | None = None
    """Keeps messages of one key in their order."""


class Worker:
    def __init__(
        self,
        app: App,
        plans: Mapping[str, QueuePlan],
        *,
        transport: Transport,
        store: DeadLetterStore,
        spool: Spool,
        journal: Journal,
        host: Host,
        random: Callable[[], float],
        clock: Clock | None = None,
        spans: Spans | None = None,
    ) -> None:
        """`spans`: who follows the messages, if anybody does."""
        _refuse_queues_of_queues({*plans, *app.handlers}, transport.names)
        self._app = app
        self._plans = plans
        self._transport = transport
        self._store = store
        self._spool = spool
        self._journal = journal
        self._host = host
        self._clock = clock or SystemClock()
        self._availability = Availability(clock=self._clock, random=random)
        self._store_sink = StoreSink(store, availability=self._availability)
        self._store_asked = False
        self._random = random
        self._spans = spans
        self._tally = Tally()
        self._executor = HandlerThreads(sum(plan.options.concurrency for plan in plans.values()) or 1)
        self._suspects_alone = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()
        self.consumers = [self._consumer(queue, plan) for queue, plan in plans.items()]

    @property
    def ready(self) -> bool:
        """Whether it consumes, and the store is there, unless all letters go to the broker's own queues first."""
        needed = not all(plan.sink == "queue" for plan in self._plans.values())
        return all(consumer.ready for consumer in self.consumers) and not (needed and self._availability.away)

    @property
    def store(self) -> DeadLetterStore:
        return self._store

    @property
    def counts(self) -> Collection[HandlerCounts]:
        """What its handlers did since it began."""
        return self._tally.counts

    @property
    def store_away(self) -> bool:
        return self._availability.away

    def spooled(self) -> SpoolState:
        return self._spool.pending()

    async def run(self, *, drain: bool = False, upkeep: bool = True) -> None:
        """Works until it is stopped, or with `drain` until its queues and their retries are empty."""
        jobs = [asyncio.create_task(consumer.run()) for consumer in self.consumers]
        if upkeep:
            jobs += [asyncio.create_task(job) for job in self._upkeep()]
        if drain:
            jobs.append(asyncio.create_task(self._stop_when_empty()))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((stopping, *jobs), return_when=asyncio.FIRST_COMPLETED)
            await self._finish()
        finally:
            for job in (stopping, *jobs):
                job.cancel()
            ended = await asyncio.gather(stopping, *jobs, return_exceptions=True)
            await self._finish_consumers(0)  # if this was cancelled
            await self._leave()
        for result in ended:
            if isinstance(result, Exception):
                raise result

    def stop(self) -> None:
        """The first call stops gracefully, the second does not wait for running handlers."""
        if self._stopping.is_set():
            self._forced.set()
        self._stopping.set()

    def listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    async def _finish(self) -> None:
        log.info("stopping", running=sum(consumer.busy for consumer in self.consumers))
        grace = max((plan.options.grace for plan in self._plans.values()), default=0.0)
        for consumer in self.consumers:
            consumer.stop()
        forced = asyncio.create_task(self._forced.wait())
        gentle = asyncio.create_task(self._finish_consumers(grace))
        await asyncio.wait((forced, gentle), return_when=asyncio.FIRST_COMPLETED)
        if not gentle.done():
            log.warning("not waiting for running handlers; their messages are given back")
            await self._finish_consumers(0)
            gentle.cancel()  # it would wait out the grace for a handler that does not end
            await asyncio.wait({gentle})
        forced.cancel()

    async def _finish_consumers(self, grace: float) -> None:
        await asyncio.gather(*(consumer.finish(grace) for consumer in self.consumers))

    async def _leave(self) -> None:
        self._executor.shutdown()
        if self._tally.pending:
            await self._quietly("attempt counts", self._hand_over_counts())

    def _upkeep(self) -> list[Coroutine[Any, Any, None]]:
        jobs = [
            self._every(_TALLY_EVERY, "attempt counts", self._hand_over_counts_if_due),
            self._every(_SPOOL_EVERY, "store and spool", self._tend_store),
            self._every(_INDEX_EVERY, "search index", self._index),
        ]
        for queue, plan in self._plans.items():
            if plan.expire_after is not None:
                job = functools.partial(self._expire, self._expiry_of(queue, plan.expire_after))
                jobs.append(self._every(LOOK_EVERY, "expiry", job))
        return jobs

    async def _every(self, seconds: float, what: str, job: Callable[[], Awaitable[object]]) -> None:
        while True:
            await self._quietly(what, job())
            await self._clock.sleep(seconds)

    async def _quietly(self, what: str, job: Awaitable[object]) -> None:
        try:
            await job
        except Exception as error:  # noqa: BLE001  whatever it was, consumption goes on
            log.warning("upkeep failed, will be tried again", what=what, **error_facts(error))

    async def _tend_store(self) -> None:
        """Brings what was spooled. If nothing was, the store is asked for a sign of life at the start and while it
        is away: nobody should have to wait for the next failure to know.
        """
        if self._availability.due and self._spool.pending().segments:
            await self._drain_spool()
        if self._availability.due and (self._availability.away or not self._store_asked):
            self._store_asked = True
            await self._availability.ask(lambda: self._store.get(_NOBODY))

    async def _index(self) -> None:
        if not self._availability.away:
            batch = functools.partial(self._store.index, at_most=BATCH)
            await index_behind(lambda: self._availability.ask(batch), clock=self._clock, random=self._random)

    async def _hand_over_counts_if_due(self) -> None:
        if self._tally.pending and self._availability.due:
            await self._hand_over_counts()

    async def _hand_over_counts(self) -> None:
        await self._availability.ask(lambda: self._tally.flush(self._store))

    async def _drain_spool(self) -> None:
        """What was spooled while the store was away goes into it, each letter once by its identity."""
        report = await self._spool.replay(self._store_sink.keep)
        if report.replayed or report.corrupt:
            log.warning("spool replayed", letters=report.replayed, corrupt=report.corrupt)

    def _expiry_of(self, queue: str, older_than: float) -> QueueExpiry:
        store = cast("Store", self._store)  # every driver of ours is one
        return QueueExpiry(queue, older_than, store=store, clock=self._clock, holder=own_name())

    async def _expire(self, expiry: QueueExpiry) -> None:
        if not self._availability.away:
            await self._availability.ask(expiry.look, patient=True)

    async def _stop_when_empty(self) -> None:
        names = self._transport.names
        watched = {name for queue in self._plans for name in (queue, names.retry_of(queue))}
        quiet_since: float | None = None
        exact = all(capabilities_of(self._transport, queue).exact_depths for queue in self._plans)
        patience = 0.0 if exact else _QUIET
        while True:
            if any(consumer.busy for consumer in self.consumers) or await self._anything_in(watched):
                quiet_since = None
            elif quiet_since is None:
                quiet_since = self._clock.monotonic()
            if quiet_since is not None and self._clock.monotonic() - quiet_since >= patience:
                return
            await self._clock.sleep(_DRAIN_EVERY)

    async def _anything_in(self, queues: set[str]) -> bool:
        try:
            depths = await self._transport.depths(self._plans.keys())
        except CorruptFile:
            raise
        except Unreachable:
            return True  # nobody knows; the consumers wait for the broker too
        busy = any(consumer.busy for consumer in self.consumers)  # one that ends its message now may send another
        return busy or any(depth.total for name, depth in depths.items() if name in queues)

    def _consumer(self, queue: str, plan: QueuePlan) -> Consumer:
        handler = self._app.handlers.get(queue) or _nobody(queue)
        counts = self._tally.of(handler.name, queue, handler.payload_type)
        settling = Settling(
            handler,
            transport=self._transport,
            store=self._store,
            availability=self._availability,
            sinks=SinkChain(self._sinks(queue, plan)),
            executor=self._executor,
            clock=self._clock,
            host=self._host,
            on_critical=self._app.critical_hook,
            notify_critical=plan.notify_critical,
            ordered_by=plan.ordered_by,
            counts=counts,
            spans=self._spans,
        )
        attempts = Attempts(
            handler,
            plan.policy,
            middleware=tuple(self._app.middlewares),
            threads=self._executor,
            timeout=plan.timeout,
            clock=self._clock,
            host=self._host,
            counts=counts,
            spans=self._spans,
        )
        return Consumer(
            queue,
            transport=self._transport,
            attempts=attempts,
            settling=settling,
            suspects=Suspects(self._journal, settling, self._suspects_alone),
            options=plan.options,
            clock=self._clock,
            ordered_by=plan.ordered_by,
            spans=self._spans,
        )

    def _sinks(self, name: str, plan: QueuePlan) -> list[Sink]:
        store, queue, spool = self._store_sink, self._queue_sink(name), SpoolSink(self._spool)
        if plan.ordered_by is not None:  # what lies elsewhere keeps nobody waiting
            return [store]
        if plan.sink == "both":
            return [BothSinks(SinkChain([store, spool]), queue)]
        return [queue, store, spool] if plan.sink == "queue" else [store, spool, queue]

    def _queue_sink(self, queue: str) -> Sink:
        driver: object = self._transport
        native = isinstance(driver, NativeDeadLetters) and driver.has_native_dead_letters(queue)
        return NativeSink() if native else QueueSink(self._transport)


def _refuse_queues_of_queues(queues: set[str], names: Names) -> None:
    """The retries and dead letters of one handler must not be the messages of another."""
    for queue in sorted(queues):
        for what, beside in (("retries", names.retry_of(queue)), ("dead letters", names.dead_of(queue))):
            if beside in queues:
                raise ConfigurationError(
                    f"queue {beside!r} has a handler, and is where the {what} of queue {queue!r} go",
                    remedy="rename one of the two queues, or set [broker] retry_queue and dead_letter_queue",
                )


def _nobody(queue: str) -> Handler:
    def refuse(_message: Message) -> None:
        raise NoHandler(f"no handler for queue {queue!r}")

    return Handler(queue, refuse, name="(none)")
