"""Who comes in, and the desk they stand at."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec

from redrive.actions import Actions
from redrive.api.problems import TooMany
from redrive.denials import Denials
from redrive.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from redrive.access import Identity
    from redrive.account_actions import AccessPolicy
    from redrive.clock import Clock
    from redrive.examining import Doctor
    from redrive.loaded import Loaded
    from redrive.privacy.maskers import Maskers
    from redrive.run_policy import RunPolicy
    from redrive.stores import RunStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport
    from redrive.transports.inspection import Inspector


class Doorkeeper(Protocol):
    async def identity_of(self, request: Request) -> Identity:
        """Unauthenticated if nobody known asks, TooMany if somebody tries too often."""
        ...


class Door:
    def __init__(
        self,
        *,
        store: RunStore,
        transport: Transport,
        clock: Clock,
        policy: RunPolicy,
        inspector: Inspector | None = None,
        keeper: Doorkeeper,
        masks: Maskers,
        access: AccessPolicy | None = None,
        loaded: Loaded | None = None,
        doctor: Doctor | None = None,
        read_only: bool = False,
        concurrency: int = 16,
        spans: Spans | None = None,
    ) -> None:
        self.clock = clock
        self._store = store
        self._transport = transport
        self._policy = policy
        self._inspector = inspector
        self._keeper = keeper
        self.read_only = read_only
        self._concurrency = concurrency
        self._denials = Denials(clock)
        self._masks = masks
        self._access = access
        self._loaded = loaded
        self._doctor = doctor
        self._spans = spans
        self._asking: Counter[str] = Counter()

    async def desk(self, request: Request) -> Actions:
        who = await self._keeper.identity_of(request)
        signed = msgspec.structs.replace(who, request_id=request.scope["redrive.request_id"])
        return Actions(
            store=self._store,
            transport=self._transport,
            clock=self.clock,
            who=signed,
            policy=self._policy,
            inspector=self._inspector,
            denials=self._denials,
            masks=self._masks,
            access=self._access,
            loaded=self._loaded,
            doctor=self._doctor,
            spans=self._spans,
        )

    @contextmanager
    def counted(self, who: Identity) -> Iterator[None]:
        """While a request of theirs is answered. TooMany if others of theirs are as many as may be."""
        name = who.token or who.name
        if self._asking[name] >= self._concurrency:
            raise TooMany("too many requests at the same time", retry_after=1)
        self._asking[name] += 1
        try:
            yield
        finally:
            self._asking[name] -= 1
            if not self._asking[name]:
                del self._asking[name]

    def check_writable(self) -> None:
        if self.read_only:
            raise Refused("this server only shows", remedy="it was started with --read-only: ask one that was not")
