"""What a worker or a collector tells the store of itself now and then, for whoever watches over all of them.

A process that ends in good order takes its report away; one that is killed leaves it, and is missed. What it says
of a spool with letters in it stays in either case: they are there still.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import structlog
from msgspec.structs import replace

from redrive.alerts.observed import ProcessReport, ProcessRole
from redrive.clock import SystemClock, new_id
from redrive.errors import RedriveError
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from redrive.clock import Clock
    from redrive.collector import Collector
    from redrive.stores.alert_store import AlertStore
    from redrive.worker import Worker

log = structlog.get_logger("redrive.reporting")

REPORT_EVERY = 15.0
_PATIENCE = 5.0
"""Seconds that the last word may take: a store that is away holds up nobody's end."""


class Seen:
    """What a process looks like at a moment."""

    def __init__(self, ready: Mapping[str, bool], spooled_bytes: int = 0, spool: str = "") -> None:
        self.ready = ready
        """By queue."""
        self.spooled_bytes = spooled_bytes
        self.spool = spool
        """Its folder."""


class Reporter:
    def __init__(self, role: ProcessRole, look: Callable[[], Seen], *, store: AlertStore, clock: Clock) -> None:
        self._role = role
        self._look = look
        self._store = store
        self._clock = clock
        self._id = new_id()
        self._unready: dict[str, float] = {}
        self._spooled: float | None = None
        self._away = False

    async def serve(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._send()
            await self._clock.sleep(REPORT_EVERY)

    async def _send(self) -> None:
        try:
            await self._store.report(self.report())
        except RedriveError as error:
            if not self._away:  # once: the store's absence is told by those who need it
                log.warning("a report was not taken, it will be tried again", **error_facts(error))
            self._away = True
        except Exception as error:  # noqa: BLE001  whatever it is, work goes on
            log.error("a report was not sent", **error_facts(error))  # noqa: TRY400  no payloads
        else:
            self._away = False

    def report(self) -> ProcessReport:
        now, seen = self._clock.monotonic(), self._look()
        waiting = [queue for queue, ready in seen.ready.items() if not ready]
        self._unready = {queue: self._unready.get(queue, now) for queue in waiting}
        if not seen.spooled_bytes:
            self._spooled = None
        elif self._spooled is None:
            self._spooled = now
        return ProcessReport(
            id=self._id,
            role=self._role,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=tuple(seen.ready),
            unready={queue: now - since for queue, since in self._unready.items()},
            spool=seen.spool,
            spooled_bytes=seen.spooled_bytes,
            spooled_for=None if self._spooled is None else now - self._spooled,
        )

    async def say_goodbye(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                last = self.report()
                if last.spooled_for is None:
                    await self._store.say_goodbye(self._id)
                else:
                    await self._store.report(replace(last, queues=(), unready={}))
        except (RedriveError, TimeoutError) as error:
            log.warning("the store was not told that this process ends", **error_facts(error))


@asynccontextmanager
async def of_worker(worker: Worker, clock: Clock | None = None) -> AsyncIterator[None]:
    """Meanwhile it reports."""

    def look() -> Seen:
        spooled = worker.spooled()
        return Seen({each.queue: each.ready for each in worker.consumers}, spooled.bytes, spooled.folder)

    async with _reporting(ProcessRole.WORKER, look, cast("AlertStore", worker.store), clock):
        yield


@asynccontextmanager
async def of_collector(collector: Collector, clock: Clock | None = None) -> AsyncIterator[None]:
    """As above."""

    def look() -> Seen:
        return Seen({queue: collector.connected(queue) for queue in collector.collected})

    async with _reporting(ProcessRole.COLLECTOR, look, cast("AlertStore", collector.store), clock):
        yield


@asynccontextmanager
async def _reporting(
    role: ProcessRole, look: Callable[[], Seen], store: AlertStore, clock: Clock | None
) -> AsyncIterator[None]:
    reporter = Reporter(role, look, store=store, clock=clock or SystemClock())
    serving = asyncio.create_task(reporter.serve(), name="redrive-report")
    failed = False
    try:
        yield
    except Exception:
        failed = True  # no end in good order: it shall be missed
        raise
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        if not failed:
            await reporter.say_goodbye()
