"""`redrive setup` on the broker: what the queues of an app need, looked at and made."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import msgspec

from redrive import wiring
from redrive.app import App
from redrive.planning import plan
from redrive.rabbitmq_wiring import topology
from redrive.transports.rabbitmq.delays import LADDER, rungs
from redrive.transports.rabbitmq.setting_up import Examined, complete, examine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from redrive.policy import Retry
    from redrive.settings import Settings
    from redrive.transports.rabbitmq.administration import Administration
    from redrive.transports.rabbitmq.transport import RabbitTransport

_FIRST_RETRIES = 1000
"""Later ones wait no differently: delays rise until they reach the longest."""


class BrokerExamined(msgspec.Struct, frozen=True):
    version: str
    queues: tuple[Examined, ...]


class BrokerSetup:
    """For these queues of RabbitMQ, whether the app handles them or not."""

    def __init__(self, settings: Settings, app: App | None, queues: Sequence[str]) -> None:
        self._settings = settings
        self._app = app or App(settings.app.name or "redrive")
        self._name = "" if app is None else app.name
        self._queues = queues

    async def examine(self) -> BrokerExamined:
        """Changes nothing."""
        async with self._administration() as administration:
            suited = topology(self._settings, app=self._name).for_version(administration.version)
            layouts = [suited.layout(queue, self._delays(queue)) for queue in self._queues]
            found = await examine(administration, layouts)
            return BrokerExamined(".".join(map(str, administration.version)), tuple(found))

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        """Makes what was missing; how it is then."""
        async with self._administration() as administration:
            made = await complete(administration, examined.queues)
            return BrokerExamined(examined.version, tuple(made))

    @asynccontextmanager
    async def _administration(self) -> AsyncIterator[Administration]:
        async with wiring.producer(self._settings, app=self._name) as transport:
            yield await cast("RabbitTransport", transport).administration()

    def _delays(self, queue: str) -> list[float]:
        """Those that retries of this queue can wait for; where nothing is made on demand, all."""
        if self._settings.broker.rabbitmq.declare == "never":
            return [milliseconds / 1e3 for milliseconds in LADDER]
        retry = plan(self._app, queue, self._settings).policy.retry
        return list(dict.fromkeys(_delays(retry)))


def _delays(retry: Retry) -> Iterator[float]:
    delayed = max(0, retry.attempts - 1 - retry.immediate)
    for number in range(1, min(delayed, _FIRST_RETRIES) + 1):
        shortest, longest = retry.delays.delay(number, 0.0), retry.delays.delay(number, 1.0)
        yield from (milliseconds / 1e3 for milliseconds in rungs(shortest, longest))
