"""Builds the real things from settings: the one place that knows settings, drivers and workers alike."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, cast

from redrive import metrics_wiring
from redrive.actions import Actions
from redrive.approvals import ApprovalRules
from redrive.clock import SystemClock
from redrive.configuration import load
from redrive.encryption_wiring import encryption_of, file_keys
from redrive.engine import RedriveEngine
from redrive.errors import ConfigurationError, Unreachable
from redrive.garbage import seldom_looked_for
from redrive.identity_wiring import access_policy
from redrive.ledger_keys import kept_key, key_of
from redrive.privacy_wiring import maskers_of, privacy_of
from redrive.run import Brakes, Canary
from redrive.run_policy import RunPolicy
from redrive.stores import open_store
from redrive.transports import check_installed, open_transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from redrive.access import Identity
    from redrive.app import App
    from redrive.clock import Clock
    from redrive.collector import Collector
    from redrive.failure import Host
    from redrive.finding import Finding
    from redrive.ledger import LedgerKey
    from redrive.secret_url import SecretUrl
    from redrive.settings import Settings
    from redrive.stores import RunStore, Store
    from redrive.stores.upgrade import Checkup
    from redrive.telemetry.spans import Spans
    from redrive.tracing_wiring import Opened
    from redrive.transports import Transport
    from redrive.worker import Worker


def load_settings() -> Settings:
    """From `redrive.toml` and `REDRIVE_*`, as the command line finds them."""
    return load().settings


def transport(settings: Settings, *, app: str = "") -> Transport:
    """`app`: the name that the app has in code, where it is known."""
    broker = settings.broker
    with _hiding(broker.url):
        check_installed(broker.url.reveal())
        return open_transport(broker.url.reveal(), **_broker_options(settings, app))


def _broker_options(settings: Settings, app: str) -> dict[str, Any]:
    if settings.broker.on_rabbitmq:
        from redrive import rabbitmq_wiring  # noqa: PLC0415  only those who use it

        return rabbitmq_wiring.transport_options(settings, app=app)
    if settings.broker.on_kafka:
        from redrive import kafka_wiring  # noqa: PLC0415  as above

        return kafka_wiring.transport_options(settings)
    if settings.broker.on_sqs:
        from redrive import sqs_wiring  # noqa: PLC0415  as above

        return sqs_wiring.transport_options(settings)
    if settings.broker.on_servicebus:
        from redrive import servicebus_wiring  # noqa: PLC0415  as above

        return servicebus_wiring.transport_options(settings)
    return {"names": settings.broker.names, "lease": settings.broker.lease}


def store(settings: Settings) -> Store:
    with _hiding(settings.store.url):
        options = _store_options(settings)
        given: dict[str, Any] = {"ledger_key": ledger_key(settings), "privacy": privacy_of(settings)}
        given["encryption"] = encryption_of(settings)
        opened = open_store(settings.store.url.reveal(), **given, **options)
    opened.belong_to(settings.app.environment)
    return opened


async def open_checked(settings: Settings, closing: AsyncExitStack) -> Store:
    """For those who work on their own: they do not begin at the store of another environment. One that is away is
    checked when it is back, before anything is done with it.
    """
    opened = store(settings)
    closing.push_async_callback(opened.close)
    if settings.app.environment:
        with suppress(Unreachable):
            await opened.environment()
    return opened


def ledger_key(settings: Settings) -> LedgerKey:
    """Of [audit]; where nothing is set, of a file that is made when the key is needed first."""
    given = settings.audit.key
    return kept_key(settings.audit.key_path) if given is None else key_of(given.reveal())


def upgrade_store(settings: Settings) -> str:
    """Makes the store's tables or brings them up to date; their version."""
    from redrive.stores.upgrade import upgrade  # noqa: PLC0415  Alembic is slow to import

    with _hiding(settings.store.url):
        return upgrade(settings.store.url.reveal(), **_store_options(settings))


def check_store(settings: Settings, *, within: float | None = None) -> Checkup:
    """What is wrong with the store, if anything. Changes nothing. Unfinished if it takes longer than `within`."""
    from redrive.stores.upgrade import check  # noqa: PLC0415  as above

    with _hiding(settings.store.url):
        return check(settings.store.url.reveal(), within=within, **_store_options(settings))


def examine_store(settings: Settings, *, within: float) -> list[Finding]:
    """How the store's server keeps what is written. Changes nothing."""
    from redrive.stores.upgrade import examine  # noqa: PLC0415  as above

    with _hiding(settings.store.url):
        return examine(settings.store.url.reveal(), within=within, **_store_options(settings))


def key_usage(settings: Settings) -> Mapping[str, int]:
    """How many data keys each key wraps, of the store as it is. Changes nothing; Unreachable if there is none."""
    from redrive.stores.upgrade import key_usage as usage  # noqa: PLC0415  as above

    with _hiding(settings.store.url):
        return usage(settings.store.url.reveal(), **_store_options(settings))


def load_store_machinery(settings: Settings) -> None:
    """Imports what the looks above need. Two threads that import SQLAlchemy for the first time at the same moment
    may find half of it: whoever looks in threads calls this before. What cannot be loaded the look itself tells.
    """
    from redrive.stores.upgrade import load  # noqa: PLC0415  as above

    with suppress(ConfigurationError):
        load(settings.store.url.reveal())


def require_store(settings: Settings) -> None:
    """Unreachable if there is no store yet: what only looks should not make one and call it empty."""
    from redrive.stores.upgrade import require  # noqa: PLC0415  as above

    with _hiding(settings.store.url):
        require(settings.store.url.reveal(), **_store_options(settings))


def _store_options(settings: Settings) -> dict[str, Any]:
    """What a server has to be told; a file has no use for it."""
    if settings.store.url.reveal().startswith("sqlite:"):
        return {}
    return {name: getattr(settings.store, name) for name in type(settings.store).model_fields if name != "url"}


@asynccontextmanager
async def followers(settings: Settings, *, app: str = "") -> AsyncIterator[Spans | None]:
    """Who follows the messages, as [tracing] and [log] say; None: nobody. What is left of spans is exported at its
    end.
    """
    if not _is_followed(settings):
        yield None
        return
    from redrive import tracing_wiring  # noqa: PLC0415  only those who use it

    opened = tracing_wiring.opened(settings, app=app)
    try:
        yield opened.spans
    finally:
        await opened.close()


def followers_of_sends(settings: Settings, *, app: str) -> Opened | None:
    """Who follows what an app sends from a process of its own, as [tracing] says; None: nobody."""
    if not settings.tracing.enabled:
        return None
    from redrive import tracing_wiring  # noqa: PLC0415  only those who use it

    return tracing_wiring.opened(settings, app=app)


def _is_followed(settings: Settings) -> bool:
    return settings.tracing.enabled or settings.log.level == "debug"


@contextmanager
def _hiding(url: SecretUrl) -> Iterator[None]:
    """A driver may quote the URL that it cannot use; nobody else may see its password."""
    try:
        yield
    except ConfigurationError as error:
        told = str(error).replace(url.reveal(), str(url))
        if told == str(error):
            raise
        raise ConfigurationError(told, remedy=error.remedy) from None


@asynccontextmanager
async def producer(settings: Settings, *, app: str = "") -> AsyncIterator[Transport]:
    """The broker alone, for sending: no store is opened or made."""
    opened = transport(settings, app=app)
    try:
        yield opened
    finally:
        await opened.close()


class _Unopened:
    """In the place of a broker that cannot be opened: whoever uses it is told why."""

    def __init__(self, why: ConfigurationError) -> None:
        self._why = why

    def __getattr__(self, _name: str) -> NoReturn:
        raise self._why

    async def close(self) -> None:
        """There is nothing to close."""


class _Unbegun:
    """In the place of whoever follows messages, until one is sent: looking at letters needs no exporter."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: Opened | None = None

    def __getattr__(self, name: str) -> Any:
        from redrive import tracing_wiring  # noqa: PLC0415  only those who use it

        opened = self._opened = self._opened or tracing_wiring.opened(self._settings)
        return getattr(opened.spans, name)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()


@asynccontextmanager
async def desk(settings: Settings, who: Identity) -> AsyncIterator[Actions]:
    """The desk of the configured store and broker; both are closed behind it. Where the settings do not tell
    enough to open the broker, that is the error of what needs the broker: letters can be looked at without.
    """
    async with AsyncExitStack() as closing:
        opened_store = store(settings)
        closing.push_async_callback(opened_store.close)
        try:
            opened_transport = transport(settings)
        except ConfigurationError as error:
            opened_transport = cast("Transport", _Unopened(error))
        closing.push_async_callback(opened_transport.close)
        spans = _Unbegun(settings)
        closing.push_async_callback(spans.close)
        yield Actions(
            store=opened_store,
            transport=opened_transport,
            clock=SystemClock(),
            who=who,
            policy=run_policy(settings),
            masks=maskers_of(settings),
            access=access_policy(settings.access),
            spans=cast("Spans", spans) if _is_followed(settings) else None,
        )


def run_policy(settings: Settings) -> RunPolicy:
    runs, approval = settings.runs, settings.approval
    queues = settings.queues.items()
    return RunPolicy(
        rate=runs.rate,
        in_flight=settings.engine.in_flight,
        canary=Canary(steps=runs.canary, wait=runs.canary_wait, at_most_back=runs.at_most_back),
        brakes=Brakes(
            came_back=runs.pause_when_back, publish_errors=runs.publish_errors, backlog=runs.max_backlog
        ),
        ceilings={name: queue.redrive_rate for name, queue in queues if queue.redrive_rate is not None},
        expire_after=lambda queue: settings.for_queue(queue).dead_letters.expire_after,
        approval=ApprovalRules(
            more_than=approval.more_than,
            queues=frozenset(approval.queues),
            edits=approval.edits,
            quarantined=approval.asks_about_quarantined,
            rules=approval.rules,
            expires_after=approval.expires_after,
        ),
    )


def engine(
    settings: Settings,
    *,
    store: RunStore,
    transport: Transport,
    clock: Clock,
    called: str,
    spans: Spans | None = None,
) -> RedriveEngine:
    """Of this process, under a name that no other has."""
    return RedriveEngine(
        store=store,
        transport=transport,
        clock=clock,
        owner=f"{called} {socket.gethostname()} {os.getpid()}",
        in_flight=settings.engine.in_flight,
        spans=spans,
    )


async def run_engine(settings: Settings) -> None:
    """`redrive engine`: runs, automatic rules and what is assumed after silence, until it is cancelled. What is
    being sent is finished first; store and broker are closed behind it.
    """
    from redrive.automatic_wiring import serve_beside  # noqa: PLC0415  only engines load what rules need

    async with AsyncExitStack() as closing:
        opened_store = await open_checked(settings, closing)
        opened_transport = transport(settings)
        closing.push_async_callback(opened_transport.close)
        parts: dict[str, Any] = {"store": opened_store, "transport": opened_transport, "clock": SystemClock()}
        spans = await closing.enter_async_context(followers(settings))
        beside = asyncio.create_task(serve_beside(settings, **parts, policy=run_policy(settings)))
        try:
            serving = engine(settings, **parts, called="engine", spans=spans)
            async with metrics_wiring.of_engine(serving, settings):
                await serving.serve()
        finally:
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)


@asynccontextmanager
async def worker(app: App, settings: Settings, *, queues: Sequence[str] = ()) -> AsyncIterator[Worker]:
    """A worker for these queues of the app (none named: all), with everything it needs; closed behind it."""
    from redrive.planning import plan  # noqa: PLC0415  only those who work load what works
    from redrive.upkeep.journal import Journal  # noqa: PLC0415  as above
    from redrive.upkeep.spool import Spool  # noqa: PLC0415  as above
    from redrive.worker import Worker  # noqa: PLC0415  as above

    async with AsyncExitStack() as closing:
        opened_store = await open_checked(settings, closing)
        opened_transport = transport(settings, app=app.name)
        closing.push_async_callback(opened_transport.close)
        journal = Journal(settings.journal.path)
        closing.push_async_callback(journal.close)
        spool = Spool(settings.spool.folder, max_bytes=settings.spool.max_size, keys=file_keys(settings))
        closing.push_async_callback(spool.close)
        spans = await closing.enter_async_context(followers(settings, app=app.name))
        closing.enter_context(app.lent(opened_transport, spans))
        yield Worker(
            app,
            {queue: plan(app, queue, settings) for queue in queues or app.handlers},
            transport=opened_transport,
            store=opened_store,
            spool=spool,
            journal=journal,
            host=_host(app, settings),
            random=random.random,
            spans=spans,
        )


@asynccontextmanager
async def collector(
    settings: Settings,
    queues: Sequence[str],
    *,
    rate: float | None = None,
    limit: int | None = None,
) -> AsyncIterator[Collector]:
    """A collector for these queues (none named: those of the settings); store and broker are closed behind it."""
    from redrive.availability import Availability  # noqa: PLC0415  only those who collect load what collects
    from redrive.collector import Collector  # noqa: PLC0415  as above

    async with AsyncExitStack() as closing:
        opened_store = await open_checked(settings, closing)
        opened_transport = transport(settings)
        closing.push_async_callback(opened_transport.close)
        clock = SystemClock()
        yield Collector(
            queues or settings.collector.queues,
            transport=opened_transport,
            store=opened_store,
            availability=Availability(clock=clock, random=random.random),
            clock=clock,
            rate=rate,
            limit=limit,
        )


async def run_collector(collecting: Collector, settings: Settings) -> None:
    """`redrive collect`: until it is stopped."""
    from redrive import reporting  # noqa: PLC0415  only those who go on working report

    async with metrics_wiring.of_collector(collecting, settings), reporting.of_collector(collecting):
        await collecting.run()


async def run_worker(app: App, settings: Settings, *, queues: Sequence[str] = (), drain: bool = False) -> None:
    """`redrive work`: until a signal, or with `drain` until the queues are empty."""
    from redrive import reporting  # noqa: PLC0415  as above

    async with worker(app, settings, queues=queues) as running:
        running.listen_to_signals()
        async with metrics_wiring.of_worker(running, settings), reporting.of_worker(running):
            with seldom_looked_for():
                await running.run(drain=drain)


def _host(app: App, settings: Settings) -> Host:
    from redrive.failure import Host  # noqa: PLC0415  as above

    return Host(
        name=socket.gethostname(),
        process=os.getpid(),
        app=settings.app.name or app.name,
        app_version=settings.app.version or app.version,
        environment=settings.app.environment,
    )
