"""The App: which handler takes which queue (S3's router), and the producer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from redrive import control
from redrive.clock import Clock, SystemClock, new_id
from redrive.duration import Duration, seconds
from redrive.errors import ConfigurationError
from redrive.handler import Handler, Middleware, from_class
from redrive.message import Headers, Message
from redrive.telemetry.spans import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from redrive.classification import Kinds
    from redrive.dead_letter import DeadLetter
    from redrive.inbox import Inbox
    from redrive.policy import Retry
    from redrive.settings import Settings
    from redrive.telemetry.spans import Spans
    from redrive.tracing_wiring import Opened
    from redrive.transports import Transport

M = TypeVar("M", bound=Middleware)
Hook = TypeVar("Hook", bound="Callable[[DeadLetter], object]")


class App:
    """Handlers on queues. What is not said here comes from settings (`redrive.toml`, `REDRIVE_*`).

    `retry` and `kinds` hold for every handler that does not say otherwise.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "",
        retry: Retry | None = None,
        kinds: Kinds | None = None,
        settings: Settings | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.retry = retry
        self.kinds = kinds
        self.handlers: dict[str, Handler] = {}
        self.middlewares: list[Middleware] = []
        self.critical_hook: Callable[[DeadLetter], object] | None = None
        self.settings = settings
        self._transport = transport
        self._spans: Spans | None = None
        self._followed: Opened | None = None
        self._clock = clock or SystemClock()

    def handler(
        self,
        queue: str,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        kinds: Kinds | None = None,
        timeout: Duration | None = None,
        concurrency: int | None = None,
        inbox: Inbox | None = None,
    ) -> Callable[[Callable[..., Any]], Handler]:
        """Decorator: this function takes the messages of this queue."""

        def register(function: Callable[..., Any]) -> Handler:
            return self._add(
                Handler(
                    queue,
                    function,
                    name=name,
                    retry=retry,
                    kinds=kinds,
                    timeout=None if timeout is None else seconds(timeout),
                    concurrency=concurrency,
                    inbox=inbox,
                )
            )

        return register

    def register(
        self,
        queue: str,
        handler: Any,
        *,
        retry: Retry | None = None,
        kinds: Kinds | None = None,
        timeout: Duration | None = None,
        concurrency: int | None = None,
        inbox: Inbox | None = None,
    ) -> Handler:
        """S3's way: a class (or an instance) with `process`, and perhaps `on_dead_letter` and `max_retries`.

        As in S3, `max_retries = 5` means that the fifth failure is the last one.
        """
        process, hook, max_retries, name = from_class(queue, handler)
        attempts = None if max_retries is None else max(1, max_retries)
        return self._add(
            Handler(
                queue,
                process,
                name=name,
                retry=retry,
                kinds=kinds,
                timeout=None if timeout is None else seconds(timeout),
                concurrency=concurrency,
                inbox=inbox,
                hook=hook,
                attempts=attempts,
            )
        )

    def middleware(self, function: M) -> M:
        """Decorator: `async def f(delivery, call_next)` around every handler, the first registered outermost."""
        self.middlewares.append(function)
        return function

    def on_critical(self, hook: Hook) -> Hook:
        """Decorator: told of every letter whose failure is critical, once it is durable."""
        self.critical_hook = hook
        return hook

    async def send(
        self,
        queue: str,
        data: Any,
        *,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        headers: Headers = (),
        key: bytes | None = None,
        delay: Duration = 0,
    ) -> Message:
        """Sends S3's envelope; durable when it returns. The message, for its id.

        Headers of a received message may be passed on: what of them says that it is a redrive is left out, for
        this one is none. A broker that detects duplicates by that id would throw the second of two away.
        """
        message = Message.create(
            id=new_id(),
            sent_at=self._clock.now(),
            queue=queue,
            data=data,
            source=self.name if source is None else source,
            metadata=dict(metadata or {}),
            headers=control.strip(headers),
            key=key,
        )
        transport = self.transport
        if self._spans is None:
            await transport.send(message, delay=seconds(delay))
            return message
        span, carried = self._spans.send(message, queue)
        followed = msgspec.structs.replace(message, headers=(*message.headers, *carried)) if carried else message
        with told(span):
            await transport.send(followed, delay=seconds(delay))
        return followed

    @property
    def transport(self) -> Transport:
        """The broker of the settings, opened on first use; `close` closes it."""
        if self._transport is None:
            from redrive import wiring  # noqa: PLC0415  settings and drivers load when they are needed

            self.settings = self.settings or wiring.load_settings()
            self._transport = wiring.transport(self.settings, app=self.name)
            self._followed = wiring.followers_of_sends(self.settings, app=self.name)
            self._spans = None if self._followed is None else self._followed.spans
        return self._transport

    @contextmanager
    def lent(self, transport: Transport, spans: Spans | None = None) -> Iterator[None]:
        """Meanwhile sends go through this connection, and are followed by these: a worker lends its own to its
        handlers.
        """
        own = self._transport, self._spans
        self._transport, self._spans = transport, spans
        try:
            yield
        finally:
            self._transport, self._spans = own

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()
            self._transport = None
        if self._followed is not None:
            followed, self._followed, self._spans = self._followed, None, None
            await followed.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _add(self, handler: Handler) -> Handler:
        if handler.queue in self.handlers:
            other = self.handlers[handler.queue].name
            raise ConfigurationError(
                f"queue {handler.queue!r} has a handler already: {other}",
                remedy="one handler per queue; let it call the others",
            )
        self.handlers[handler.queue] = handler
        return handler
