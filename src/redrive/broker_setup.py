"""`redrive setup` on RabbitMQ: what the queues of an app need, looked at and made. And which queues are there."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import msgspec

from redrive import wiring
from redrive.app import App
from redrive.errors import ConfigurationError
from redrive.planning import plan
from redrive.rabbitmq_wiring import topology
from redrive.transports.rabbitmq.delays import LADDER, rungs
from redrive.transports.rabbitmq.setting_up import Examined, complete, examine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

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
    """For these queues of RabbitMQ, whether the app handles them or not. Delay queues are left to the retry that
    needs them first, unless `delays` is true or nothing may be declared then.
    """

    def __init__(
        self, settings: Settings, app: App | None, queues: Sequence[str], *, delays: bool = False
    ) -> None:
        self._settings = settings
        self._never_later = settings.broker.rabbitmq.declare == "never"
        self._delays_now = delays or self._never_later
        self._app = app or App(settings.app.name or "redrive")
        self._name = "" if app is None else app.name
        self._queues = queues

    @property
    def name_in_code_alone(self) -> str:
        """The app's name, if exchanges are named after it and the settings do not tell it; else nothing. Commands
        that do not load the app cannot know those exchanges.
        """
        try:
            topology(self._settings)
        except ConfigurationError:
            return self._name
        return ""

    async def examine(self) -> BrokerExamined:
        """Changes nothing."""
        async with self._administration() as administration:
            suited = topology(self._settings, app=self._name).for_version(administration.version)
            layouts = [suited.layout(queue, self._delays(queue)) for queue in self._queues]
            found = await examine(administration, layouts, defers_delays=not self._delays_now)
            return BrokerExamined(".".join(map(str, administration.version)), tuple(found))

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        """Makes what was missing; how it is then."""
        async with self._administration() as administration:
            made = await complete(administration, examined.queues)
            return BrokerExamined(examined.version, tuple(made))

    def _administration(self) -> AbstractAsyncContextManager[Administration]:
        return _administration(self._settings, app=self._name)

    def _delays(self, queue: str) -> list[float]:
        """Those that retries of this queue can wait for; where nothing is made on demand, all."""
        if self._never_later:
            return [milliseconds / 1e3 for milliseconds in LADDER]
        retry = plan(self._app, queue, self._settings).policy.retry
        return list(dict.fromkeys(_delays(retry)))


async def missing_queues(settings: Settings, queues: Sequence[str]) -> list[str]:
    """Those of them that are not on the broker."""
    async with _administration(settings) as administration:
        return [queue for queue in queues if await administration.look(queue) is None]


@asynccontextmanager
async def _administration(settings: Settings, *, app: str = "") -> AsyncIterator[Administration]:
    async with wiring.producer(settings, app=app) as transport:
        yield await cast("RabbitTransport", transport).administration()


def _delays(retry: Retry) -> Iterator[float]:
    delayed = max(0, retry.attempts - 1 - retry.immediate)
    for number in range(1, min(delayed, _FIRST_RETRIES) + 1):
        shortest, longest = retry.delays.delay(number, 0.0), retry.delays.delay(number, 1.0)
        yield from (milliseconds / 1e3 for milliseconds in rungs(shortest, longest))
