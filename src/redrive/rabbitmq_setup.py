"""`redrive setup` on RabbitMQ: see `broker_setup`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from redrive import wiring
from redrive.app import App
from redrive.broker_setup import BrokerExamined
from redrive.errors import ConfigurationError
from redrive.planning import plan
from redrive.rabbitmq_wiring import topology
from redrive.retry_waits import waits_of
from redrive.transports.delays import LADDER
from redrive.transports.rabbitmq.setting_up import complete, examine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from redrive.settings import Settings
    from redrive.transports.rabbitmq.administration import Administration
    from redrive.transports.rabbitmq.setting_up import Examined
    from redrive.transports.rabbitmq.transport import RabbitTransport


class RabbitSetup:
    """Delay queues are left to the retry that needs them first, unless `delays` is true or nothing may be declared
    then.
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
        try:
            topology(self._settings)
        except ConfigurationError:
            return self._name
        return ""

    async def examine(self) -> BrokerExamined:
        async with self._administration() as administration:
            suited = topology(self._settings, app=self._name).for_version(administration.version)
            layouts = [suited.layout(queue, self._delays(queue)) for queue in self._queues]
            found = await examine(administration, layouts, defers_delays=not self._delays_now)
            version = ".".join(map(str, administration.version))
            told = f"RabbitMQ {version}, topology {self._settings.broker.rabbitmq.topology}"
            return BrokerExamined(told, tuple(found))

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        async with self._administration() as administration:
            made = await complete(administration, cast("tuple[Examined, ...]", examined.queues))
            return BrokerExamined(examined.told, tuple(made))

    def _administration(self) -> AbstractAsyncContextManager[Administration]:
        return _administration(self._settings, app=self._name)

    def _delays(self, queue: str) -> list[float]:
        """Those that retries of this queue can wait for; where nothing is made on demand, all."""
        if self._never_later:
            return [milliseconds / 1e3 for milliseconds in LADDER]
        return waits_of(plan(self._app, queue, self._settings).policy.retry)


async def missing(settings: Settings, queues: Sequence[str]) -> list[str]:
    async with _administration(settings) as administration:
        return [queue for queue in queues if await administration.look(queue) is None]


@asynccontextmanager
async def _administration(settings: Settings, *, app: str = "") -> AsyncIterator[Administration]:
    async with wiring.producer(settings, app=app) as transport:
        yield await cast("RabbitTransport", transport).administration()
