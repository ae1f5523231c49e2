"""`redrive serve`: the API in one process with the engine, the upkeep and the collector, as the settings say."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import signal
import socket
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import structlog
import uvicorn

from redrive import identity_wiring, reporting, wiring
from redrive.api.app import create_app
from redrive.api.door import Door
from redrive.api.keeper import AccountKeeper
from redrive.api.metrics import Told
from redrive.api.sign_in import Reception
from redrive.api.slow_clients import Patience, PatientProtocol
from redrive.clock import SystemClock, own_name
from redrive.doctor_wiring import examine, inspector_of
from redrive.errors import ConfigurationError, Unreachable
from redrive.examining import Doctor
from redrive.identity.bootstrap import Bootstrap
from redrive.identity.failures import Failures, Limit
from redrive.identity.passwords import Passwords
from redrive.identity.sign_ins import SignIns
from redrive.identity.tokens import Tokens
from redrive.ledger_wiring import keep_checkpoints
from redrive.loaded_wiring import loaded_of
from redrive.metrics_wiring import ServerMetrics, token_of
from redrive.privacy_wiring import maskers_of
from redrive.retention_wiring import serve_retention
from redrive.telemetry.error_facts import error_facts
from redrive.upkeep.expiry import LOOK_EVERY, QueueExpiry
from redrive.upkeep.indexing import BATCH, index_behind
from redrive.upkeep.sealing import seal_behind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from fastapi import FastAPI

    from redrive.server_settings import ServerSettings
    from redrive.settings import Settings
    from redrive.stores import Store
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport
    from redrive.transports.inspection import Inspector

log = structlog.get_logger("redrive.serve")

_AGAIN = 5.0
_BACKLOG = 2048
_CONNECTIONS = 1000
_INDEX_EVERY = 1.0
_FORGET_EVERY = 3600.0
_SEAL_EVERY = 3600.0


@dataclass(frozen=True)
class Parts:
    """What the process works with; closed behind it."""

    settings: Settings
    store: Store
    transport: Transport
    inspector: Inspector
    doctor: Doctor
    clock: SystemClock
    metrics: ServerMetrics
    spans: Spans | None


def check_address(server: ServerSettings) -> None:
    """ConfigurationError if passwords and payloads could be read on the way."""
    if (server.tls_certificate is None) != (server.tls_key is None):
        raise ConfigurationError("tls_certificate and tls_key belong together", remedy="give both, or none")
    if not (_is_own(server.host) or server.tls_certificate is not None or server.behind_proxy):
        raise ConfigurationError(
            f"{server.host} can be reached by others, and what is sent there can be read on the way",
            remedy="give --tls-cert and --tls-key, or --behind-proxy if a proxy ends TLS",
        )


def _is_own(host: str) -> bool:
    """Whether nobody but this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(settings: Settings, *, on_ready: Callable[[str], None], on_code: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `on_ready` is told the URL; `on_code` the one-time code of a first start."""
    server = settings.server
    check_address(server)
    async with AsyncExitStack() as closing:
        parts = await _opened(settings, closing)
        listening = await asyncio.to_thread(_listen, server)
        config = uvicorn.Config(
            _app(parts),
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=server.behind_proxy,
            forwarded_allow_ips=list(server.trusted_proxies),
            root_path=server.root_path,
            ssl_certfile=server.tls_certificate,
            ssl_keyfile=server.tls_key,
            http=_protocol(server),
            ws="none",
            timeout_keep_alive=5,
            timeout_graceful_shutdown=10,
            limit_concurrency=_CONNECTIONS,
            h11_max_incomplete_event_size=64 * 1024,
        )
        serving = _Server(config)
        serving.listen_to_signals()  # before anybody is told of it: who is told may end it at once
        jobs = [asyncio.create_task(each) for each in _jobs(parts, on_code)]
        on_ready(_url(server, listening))
        try:
            await serving.serve(sockets=[listening])
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)


class _Server(uvicorn.Server):
    """A signal is an end like any other: uvicorn itself would die of it afterwards. The second one does not wait
    for answers that are under way.
    """

    def listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._end)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def _end(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _protocol(server: ServerSettings) -> type[asyncio.Protocol]:
    # The application has answered whoever is too slow before their connection is ended.
    body = server.request_timeout + server.header_timeout
    patience = Patience(headers=server.header_timeout, body=body, connections=_CONNECTIONS)
    return cast("type[asyncio.Protocol]", partial(PatientProtocol, patience=patience))


def _listen(server: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    # Of a socket that does not say TCP, asyncio would not switch off Nagle's algorithm: 40 ms for each answer.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((server.host, server.port))
        found.listen(_BACKLOG)  # who is told the URL can come at once
    except OSError as error:
        found.close()
        raise ConfigurationError(
            f"cannot listen on {server.host}:{server.port}: {error.strerror}",
            remedy="give another --port or --host",
        ) from None
    return found


def _url(server: ServerSettings, listening: socket.socket) -> str:
    scheme = "http" if server.tls_certificate is None else "https"
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{scheme}://{host}:{listening.getsockname()[1]}{server.root_path}"


async def _opened(settings: Settings, closing: AsyncExitStack) -> Parts:
    store = await wiring.open_checked(settings, closing)
    transport = wiring.transport(settings)
    closing.push_async_callback(transport.close)
    inspector = inspector_of(settings, transport)
    closing.push_async_callback(inspector.close)
    clock = SystemClock()
    doctor = Doctor(partial(examine, settings), clock)
    closing.push_async_callback(doctor.close)
    spans = await closing.enter_async_context(wiring.followers(settings))
    return Parts(settings, store, transport, inspector, doctor, clock, ServerMetrics(store, clock), spans)


def _app(parts: Parts) -> FastAPI:
    settings, server, clock = parts.settings, parts.settings.server, parts.clock
    sessions, failures = identity_wiring.sessions(settings.access, parts.store, clock), _failures(settings, clock)
    provider = identity_wiring.oidc(settings.oidc, clock)
    keeper = AccountKeeper(
        tokens=Tokens(parts.store, clock), sessions=sessions, failures=failures, provider=provider
    )
    reception = Reception(
        sessions=sessions,
        passwords=Passwords(parts.store),
        bootstrap=Bootstrap(parts.store, clock),
        failures=failures,
        starts=Failures(clock),
        provider=None if provider is None else SignIns(parts.store, provider, clock),
    )
    policy = wiring.run_policy(settings)
    door = Door(
        store=parts.store,
        transport=parts.transport,
        clock=clock,
        policy=policy,
        inspector=parts.inspector,
        keeper=keeper,
        masks=maskers_of(settings),
        access=identity_wiring.access_policy(settings.access),
        loaded=loaded_of(settings, policy),
        doctor=parts.doctor,
        read_only=server.read_only,
        concurrency=server.concurrency,
        spans=parts.spans,
    )

    async def ask_store() -> None:
        await parts.store.has_accounts()

    async def ask_broker() -> None:
        await parts.transport.depths()

    checks = {"store": ask_store, "broker": ask_broker}
    return create_app(
        door,
        reception=reception,
        checks=checks,
        told=Told(parts.metrics.text, token=token_of(settings)),
        request_timeout=server.request_timeout,
    )


def _failures(settings: Settings, clock: SystemClock) -> Failures:
    return Failures(clock, per_address=Limit(settings.access.failed_attempts, 60.0))


def _jobs(parts: Parts, on_code: Callable[[str], None]) -> list[Coroutine[Any, Any, None]]:
    settings, server = parts.settings, parts.settings.server
    jobs = [_first_code(parts, on_code)]
    if server.engine and not server.read_only:
        jobs += [_kept_up("engine", lambda: _engine(parts)), _kept_up("rules", lambda: _beside(parts))]
    if server.upkeep and not server.read_only:
        jobs += _upkeep(parts)
    if server.collector and settings.collector.queues and not server.read_only:
        jobs.append(_kept_up("collector", lambda: _collect(parts)))
    return jobs


async def _kept_up(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Whatever ends it but the end of the process, it begins anew."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  the API goes on, and so do the others
            log.warning("a part has failed and begins anew", part=what, **error_facts(error))
            await asyncio.sleep(_AGAIN)
        else:
            return


async def _engine(parts: Parts) -> None:
    given: dict[str, Any] = {"store": parts.store, "transport": parts.transport, "clock": parts.clock}
    engine = wiring.engine(parts.settings, **given, called="serve", spans=parts.spans)
    parts.metrics.engine(engine)
    await engine.serve()


async def _beside(parts: Parts) -> None:
    from redrive.automatic_wiring import serve_beside  # noqa: PLC0415  only engines load what rules need

    await serve_beside(
        parts.settings,
        store=parts.store,
        transport=parts.transport,
        clock=parts.clock,
        policy=wiring.run_policy(parts.settings),
    )


async def _collect(parts: Parts) -> None:
    async with wiring.collector(parts.settings, ()) as collector:
        parts.metrics.collector(collector)
        async with reporting.of_collector(collector, parts.clock):
            await collector.run()


def _upkeep(parts: Parts) -> list[Coroutine[Any, Any, None]]:
    async def index() -> None:
        await index_behind(lambda: parts.store.index(at_most=BATCH), clock=parts.clock, random=random.random)

    async def forget() -> None:
        await identity_wiring.sessions(parts.settings.access, parts.store, parts.clock).forget_old()

    async def sign() -> None:
        await keep_checkpoints(parts.settings, parts.store, parts.clock)

    async def alert() -> None:
        from redrive.alerts_wiring import serve_alerts  # noqa: PLC0415  only those who tell load what tells

        await serve_alerts(parts.settings, parts.store, parts.clock, on_undelivered=parts.metrics.alerts)

    async def retain() -> None:
        await serve_retention(parts.settings, parts.store, parts.clock)

    jobs = [
        _every(_INDEX_EVERY, "search index", index),
        _every(_FORGET_EVERY, "old sessions", forget),
        _kept_up("checkpoints of the ledger", sign),
        _kept_up("retention", retain),
        _kept_up("alerts", alert),
    ]
    if parts.settings.encryption.enabled:
        jobs.append(_every(_SEAL_EVERY, "encryption", lambda: seal_behind(parts.store, clock=parts.clock)))
    for name in parts.settings.queues:
        after = parts.settings.for_queue(name).dead_letters.expire_after
        if after is not None:
            expiry = QueueExpiry(name, after, store=parts.store, clock=parts.clock, holder=own_name())
            jobs.append(_every(LOOK_EVERY, "expiry", expiry.look))
    return jobs


async def _every(seconds: float, what: str, job: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await job()
        except Exception as error:  # noqa: BLE001  the next time may be better
            log.warning("upkeep failed, will be tried again", what=what, **error_facts(error))
        await asyncio.sleep(seconds)


async def _first_code(parts: Parts, on_code: Callable[[str], None]) -> None:
    """As soon as the store answers."""
    bootstrap = Bootstrap(parts.store, parts.clock)
    while True:
        try:
            code = await bootstrap.code()
        except Unreachable:
            await asyncio.sleep(_AGAIN)
            continue
        if code is not None:
            on_code(code)
        return
