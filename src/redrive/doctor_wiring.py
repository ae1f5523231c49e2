"""Builds what `redrive doctor` and `redrive queues` look with, from settings and an app."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from redrive import wiring
from redrive.app import App
from redrive.encryption_wiring import key_source
from redrive.errors import RedriveError, Unreachable
from redrive.finding import problem
from redrive.planning import plan
from redrive.retry_waits import waits_of
from redrive.transports.inspection import Expected, ExpectedQueue, open_inspector
from redrive.upkeep.doctor import examine_broker, examine_journal, examine_keys, examine_spool, examine_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from redrive.finding import Finding
    from redrive.rabbitmq_settings import RabbitSettings
    from redrive.settings import Settings
    from redrive.transports import Transport
    from redrive.transports.inspection import Figures, Inspector


_NOBODY = "nobody"
"""In the place of an app's name. Exchanges may be named after it, but who only looks has no use for them."""


async def examine(settings: Settings, *, app: App | None = None, queues: Sequence[str] = ()) -> list[Finding]:
    """Broker, store, spool and journal. Without `queues`: those of the app and of the settings, else all."""
    expected = _expected(settings, app, queues)
    async with inspector(settings, app) as opened:
        found = await examine_broker(opened, expected, place=str(settings.broker.url))
    found += await examine_store(partial(wiring.check_store, settings), place=str(settings.store.url))
    found += await _examine_keys(settings)
    found += examine_spool(settings.spool.folder, max_bytes=settings.spool.max_size)
    return found + examine_journal(settings.journal.path)


async def _examine_keys(settings: Settings) -> list[Finding]:
    """Whether everything that is sealed in the store can be opened here."""
    try:
        source, store = key_source(settings), wiring.store(settings)
    except RedriveError as error:
        return [problem("encryption", str(error), error.remedy)]
    try:
        wiring.require_store(settings)
        usage = await store.key_usage()
    except Unreachable:  # what is wrong with the store is told by the look at it
        return []
    finally:
        await store.close()
    known = () if source is None else source.known
    masked = settings.masking.enabled
    return examine_keys(usage, known, enabled=settings.encryption.enabled, masked=masked)


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
    ordered, competing = planned.ordered_by is not None, not settings.broker.on_kafka
    prefetch = options.in_hand(ordered=ordered, competing=competing)
    waits = max(waits_of(retry), default=0.0)
    if planned.timeout is None:
        return ExpectedQueue(name=name, longest=None, prefetch=prefetch, waits=waits, handled=handled)
    # Of those fetched together the last one waits until the others are done.
    rounds = math.ceil(prefetch / options.concurrency)
    attempts = planned.timeout * (1 + retry.immediate) + retry.immediate_delay * retry.immediate
    longest = rounds * attempts
    return ExpectedQueue(name=name, longest=longest, prefetch=prefetch, waits=waits, handled=handled)
