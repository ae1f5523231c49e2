"""Metrics of a process, told as the settings say."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from redrive.errors import RedriveError, Unreachable
from redrive.telemetry.address import Address
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

    from prometheus_client import Metric

    from redrive.clock import Clock
    from redrive.collector import Collector
    from redrive.engine import RedriveEngine
    from redrive.settings import Settings
    from redrive.statistics import StoreNumbers
    from redrive.stores import DeadLetterStore
    from redrive.telemetry.exposition import Source
    from redrive.worker import Worker

log = structlog.get_logger("redrive.metrics")

_STORE_ANSWERS_WITHIN = 5.0
"""Seconds. Prometheus gives up after ten, and would then not be told that the store hangs."""
_KEPT = 1.0
"""Seconds that an answer is good for. Nobody scrapes more often."""


@asynccontextmanager
async def of_worker(worker: Worker, settings: Settings) -> AsyncIterator[int | None]:
    """Meanwhile they can be asked for, at this port; None if the settings name none, or others have it."""
    if settings.metrics.listen is None:
        yield None
        return
    from redrive.telemetry.worker_metrics import worker_metrics  # noqa: PLC0415  only those who tell load what does

    async with _told(settings, lambda: worker_metrics(worker), ready=lambda: worker.ready) as port:
        yield port


@asynccontextmanager
async def of_collector(collector: Collector, settings: Settings) -> AsyncIterator[int | None]:
    """As above."""
    if settings.metrics.listen is None:
        yield None
        return

    def ready() -> bool:
        return all(collector.connected(queue) for queue in collector.collected)

    async with _told(settings, _of_collector(collector), ready=ready) as port:
        yield port


@asynccontextmanager
async def of_engine(engine: RedriveEngine, settings: Settings) -> AsyncIterator[int | None]:
    """As above."""
    if settings.metrics.listen is None:
        yield None
        return
    async with _told(settings, _of_engine(engine), ready=lambda: True) as port:
        yield port


@asynccontextmanager
async def _told(settings: Settings, source: Source, *, ready: Callable[[], bool]) -> AsyncIterator[int | None]:
    from redrive.telemetry.exposition import Exposition  # noqa: PLC0415  as above
    from redrive.telemetry.listener import Listener  # noqa: PLC0415  as above

    listener = Listener(Exposition(source), ready, token=token_of(settings))
    port = await listener.open(Address.parse(settings.metrics.listen or ""))
    try:
        yield port
    finally:
        await listener.close()


def token_of(settings: Settings) -> str | None:
    return None if settings.metrics.token is None else settings.metrics.token.reveal()


def _of_collector(collector: Collector) -> Source:
    from redrive.telemetry.collector_metrics import collector_metrics  # noqa: PLC0415  as above

    return lambda: collector_metrics(collector)


def _of_engine(engine: RedriveEngine) -> Source:
    from redrive.telemetry.engine_metrics import engine_metrics  # noqa: PLC0415  as above

    return lambda: engine_metrics(engine)


class ServerMetrics:
    """The store's metrics, and those of the parts that run beside the server.

    Anybody who reaches the server may ask for them, and to ask the store and to write them down takes longer than
    most requests. So those who ask together, or shortly after, are told the same.
    """

    def __init__(self, store: DeadLetterStore, clock: Clock) -> None:
        from redrive.telemetry.exposition import Exposition  # noqa: PLC0415  as above

        self._store = store
        self._clock = clock
        self._numbers: StoreNumbers | None = None
        self._known = True
        self._undelivered: Callable[[], Awaitable[Mapping[str, int]]] | None = None
        self._given_up: Mapping[str, int] | None = None
        self._beside: dict[str, Source] = {}
        self._of_parts: list[Metric] = []
        self._exposition = Exposition(self._of_store, lambda: self._of_parts)
        self._telling: asyncio.Task[bytes] | None = None
        self._told_at = 0.0

    def engine(self, engine: RedriveEngine) -> None:
        """This one runs now; the one before it, if there was one, does not any more."""
        self._beside["engine"] = _of_engine(engine)

    def collector(self, collector: Collector) -> None:
        """As above."""
        self._beside["collector"] = _of_collector(collector)

    def alerts(self, undelivered: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
        """As above: how many alerts each channel could not be given."""
        self._undelivered = undelivered

    async def text(self) -> bytes:
        """At most a second old."""
        if self._telling is None or (self._telling.done() and self._is_old()):
            self._telling = asyncio.create_task(self._tell())
        # Shielded: whoever goes away does not take the answer from the others.
        return await asyncio.shield(self._telling)

    def _is_old(self) -> bool:
        return self._clock.monotonic() - self._told_at >= _KEPT

    async def _tell(self) -> bytes:
        try:
            self._numbers, self._given_up = await self._asked(), await self._asked_for_undelivered()
            self._of_parts = list(self._parts())
            # In a thread: five hundred queues take a fifth of a second, and the parts must not change meanwhile.
            return await asyncio.to_thread(self._exposition.text)
        finally:
            self._told_at = self._clock.monotonic()

    async def _asked(self) -> StoreNumbers | None:
        """None while the store does not tell. What is not known is not told: an old number would look true."""
        try:
            async with asyncio.timeout(_STORE_ANSWERS_WITHIN):
                numbers = await self._store.numbers()
        except Exception as error:  # noqa: BLE001  whatever it is: a scrape that fails would say nothing at all
            self._complain(error)
            return None
        self._known = True
        return numbers

    def _complain(self, error: Exception) -> None:
        """Once until it answers again, for Prometheus asks for ever. A store that is away is told of elsewhere."""
        if self._known and not isinstance(error, (Unreachable, TimeoutError)):
            log.warning("the store's numbers are not told", **error_facts(error))
        self._known = False

    async def _asked_for_undelivered(self) -> Mapping[str, int] | None:
        if self._undelivered is None:
            return None
        try:
            async with asyncio.timeout(_STORE_ANSWERS_WITHIN):
                return await self._undelivered()
        except (RedriveError, TimeoutError):
            return None  # as above

    def _of_store(self) -> Iterator[Metric]:
        from redrive.telemetry.exposition import gauge  # noqa: PLC0415  as above
        from redrive.telemetry.store_metrics import store_metrics  # noqa: PLC0415  as above

        answers = gauge("redrive_store_up", "1: the store answers. 0: it is away, and its numbers are not known.")
        answers.add_metric((), self._numbers is not None)
        yield answers
        if self._numbers is not None:
            yield from store_metrics(self._numbers, now=self._clock.now())

    def _parts(self) -> Iterable[Metric]:
        from redrive.telemetry.alert_metrics import alert_metrics  # noqa: PLC0415  as above

        if self._given_up is not None:
            yield from alert_metrics(self._given_up)
        for source in self._beside.values():
            yield from source()
