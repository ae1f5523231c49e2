"""Builds what `redrive doctor` and `redrive queues` look with, from settings and an app."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from redrive import wiring
from redrive.app import App
from redrive.encryption_wiring import key_source
from redrive.errors import RedriveError, Unreachable
from redrive.examined_retention import examine_copies
from redrive.examined_settings import Handled, examine_settings
from redrive.finding import WORST_FIRST, FoundAt, problem, unknown
from redrive.kept_files import broker_file, kept_by, store_file
from redrive.planning import plan
from redrive.retry_waits import waits_of
from redrive.threads import HandlerThreads
from redrive.transports.inspection import Expected, ExpectedQueue, open_inspector
from redrive.upkeep.doctor import (
    examine_broker,
    examine_journal,
    examine_keys,
    examine_server,
    examine_spool,
    examine_store,
)
from redrive.upkeep.doctor_parts import Part, bounded
from redrive.upkeep.examined_disk import examine_disks
from redrive.upkeep.examined_sqlite import examine_sqlite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from redrive.finding import Finding
    from redrive.rabbitmq_settings import RabbitSettings
    from redrive.settings import Settings
    from redrive.transports import Transport
    from redrive.transports.inspection import Figures, Inspector

    Aside = Callable[[Callable[[], list[Finding]]], Awaitable[list[Finding]]]


WITHIN = 30.0
"""Seconds for each part, all at the same time."""
_SHARE = 0.8
"""Of that time, for what tells by itself how far it came."""
_THREADS = 8
_RETRIES = 1000
_NOBODY = "nobody"
"""In the place of an app's name. Exchanges may be named after it, but who only looks has no use for them."""


async def examine(
    settings: Settings, *, app: App | None = None, queues: Sequence[str] = (), within: float = WITHIN
) -> list[Finding]:
    """Broker, store, disks and settings, the worst first. They are looked at side by side; whichever takes longer
    than `within` seconds is told as that. Without `queues`: those of the app and of the settings, else all.
    """
    expected = _expected(settings, app, queues)
    wiring.load_store_machinery(settings)  # here, where no other thread imports it
    threads = HandlerThreads(_THREADS)  # whose threads keep no process from ending, whatever they wait for
    aside: Aside = partial(asyncio.get_running_loop().run_in_executor, threads)
    try:
        parts = _parts(settings, app, expected, aside, within * _SHARE)
        found = await asyncio.gather(*(bounded(each, within) for each in parts))
    finally:
        threads.shutdown()
    return sorted((each for several in found for each in several), key=lambda each: WORST_FIRST.index(each.level))


def _parts(
    settings: Settings, app: App | None, expected: Expected, aside: Aside, within: float
) -> tuple[Part, ...]:
    place = str(settings.store.url)

    async def broker() -> list[Finding]:
        file = broker_file(settings)
        written = [] if file is None else await aside(partial(examine_sqlite, file, within=within))
        async with inspector(settings, app) as opened:
            return [*await examine_broker(opened, expected, place=str(settings.broker.url)), *written]

    async def server() -> list[Finding]:
        file = store_file(settings)
        if file is not None:  # its pages are looked at with its tables
            return await aside(partial(examine_sqlite, file, within=within, whole=False))
        look = partial(wiring.examine_store, settings, within=within)
        return await aside(partial(examine_server, look, place=place))

    async def tables() -> list[Finding]:
        look = partial(wiring.check_store, settings, within=within)
        return await aside(partial(examine_store, look, place=place))

    async def keys() -> list[Finding]:
        return await aside(partial(_examine_keys, settings))

    async def ours() -> list[Finding]:
        spool = partial(examine_spool, settings.spool.folder, max_bytes=settings.spool.max_size)
        return [*await aside(spool), *await aside(partial(examine_journal, settings.journal.path))]

    async def alerts() -> list[Finding]:
        from redrive.alerts_wiring import examine_undelivered  # noqa: PLC0415  only those who look load what tells

        return await examine_undelivered(settings)

    async def disks() -> list[Finding]:
        return await aside(lambda: [*examine_disks(list(kept_by(settings))), *examine_copies(settings)])

    async def values() -> list[Finding]:
        handled = [_handled(settings, app or App(""), each.name) for each in expected.queues if each.handled]
        return examine_settings(settings, handled)

    return (
        Part("broker", FoundAt.BROKER, "the broker", broker),
        Part("store", FoundAt.STORE, "the store's tables", tables),
        Part("postgres", FoundAt.STORE, "how the store is written", server),
        Part("encryption", FoundAt.STORE, "the keys of what is sealed", keys),
        Part("spool", FoundAt.DISK, "spool and journal", ours),
        Part("disk", FoundAt.DISK, "the disks", disks),
        Part("undelivered-alerts", FoundAt.DISK, "the outbox of alerts", alerts),
        Part("settings", FoundAt.SETTINGS, "the settings", values),
    )


def _examine_keys(settings: Settings) -> list[Finding]:
    """Whether everything that is sealed in the store can be opened here."""
    try:
        source = key_source(settings)
        usage = wiring.key_usage(settings)
    except Unreachable as error:
        return [unknown("encryption", f"whether what is sealed can be opened is not known: {error}", error.remedy)]
    except RedriveError as error:
        return [problem("encryption", str(error), error.remedy)]
    known = () if source is None else source.known
    masked = settings.masking.enabled
    return examine_keys(usage, known, enabled=settings.encryption.enabled, masked=masked)


def _handled(settings: Settings, app: App, name: str) -> Handled:
    planned = plan(app, name, settings)
    retry = planned.policy.retry
    delayed = max(0, min(retry.attempts, _RETRIES) - 1 - retry.immediate)
    return Handled(
        name=name,
        timeout=planned.timeout,
        waits=tuple(retry.delays.delay(number, 1.0) for number in range(1, delayed + 1)),
        budget=retry.budget,
    )


async def figures(settings: Settings, *, app: App | None = None, queues: Sequence[str] = ()) -> Figures:
    """Without `queues`: of all that the broker tells of, else of those that the settings name."""
    async with inspector(settings, app) as opened:
        return await opened.figures(queues, known=known_queues(settings, app))


def known_queues(settings: Settings, app: App | None) -> list[str]:
    """Of the app and of the settings."""
    return list(dict.fromkeys((*(app.handlers if app else ()), *settings.queues)))


@asynccontextmanager
async def inspector(settings: Settings, app: App | None = None) -> AsyncIterator[Inspector]:
    transport = wiring.transport(settings, app=app.name if app else _NOBODY)
    try:
        opened = inspector_of(settings, transport)
        try:
            yield opened
        finally:
            await opened.close()
    finally:
        await transport.close()


def inspector_of(settings: Settings, transport: Transport) -> Inspector:
    """`transport` stays the caller's, who closes it behind the inspector."""
    return open_inspector(settings.broker.url.reveal(), transport, **_options(settings))


def _options(settings: Settings) -> dict[str, Any]:
    if settings.broker.on_rabbitmq:
        return _rabbitmq_options(settings.broker.rabbitmq)
    if settings.broker.on_kafka:
        from redrive.kafka_wiring import is_group_named  # noqa: PLC0415  only those who use it

        declares = settings.broker.kafka.declare == "missing"
        return {"declares": declares, "named": is_group_named(settings)}
    if settings.broker.on_sqs:
        return {"declares": settings.broker.sqs.declare == "missing"}
    if settings.broker.on_servicebus:
        return {"sessions": settings.broker.servicebus.sessions}
    return {}


def _rabbitmq_options(rabbit: RabbitSettings) -> dict[str, Any]:
    from redrive.transports.rabbitmq.address import security  # noqa: PLC0415  only those who use it

    files = {"ca": rabbit.tls_ca, "certificate": rabbit.tls_certificate, "key": rabbit.tls_key}
    return {
        "management_url": rabbit.management_url and rabbit.management_url.reveal(),
        "security": security(**files) if any(files.values()) else None,
        "consumer_timeout": rabbit.consumer_timeout,
    }


def _expected(settings: Settings, app: App | None, queues: Sequence[str]) -> Expected:
    known = known_queues(settings, app)
    weighed = app or App("")
    looked_at = [_expected_queue(settings, weighed, name, handled=name in known) for name in queues or known]
    return Expected(queues=tuple(looked_at), names=settings.broker.names)


def _expected_queue(settings: Settings, app: App, name: str, *, handled: bool) -> ExpectedQueue:
    planned = plan(app, name, settings)
    retry, options = planned.policy.retry, planned.options
    broker, ordered = settings.broker, planned.ordered_by is not None
    by_requests = broker.on_sqs or broker.on_servicebus
    prefetch = options.in_hand(ordered=ordered, competing=not broker.on_kafka, by_requests=by_requests)
    waits = max(waits_of(retry), default=0.0)
    told = ExpectedQueue(
        name=name, prefetch=prefetch, waits=waits, handled=handled, to_broker=planned.sink != "store"
    )
    if planned.timeout is None:
        return told
    # Of those fetched together the last one waits until the others are done.
    rounds = math.ceil(prefetch / options.concurrency)
    attempts = planned.timeout * (1 + retry.immediate) + retry.immediate_delay * retry.immediate
    return msgspec.structs.replace(told, longest=rounds * attempts)
