"""`redrive setup` on Service Bus: see `broker_setup`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from redrive import wiring
from redrive.broker_setup import BrokerExamined
from redrive.transports.servicebus.setting_up import complete, examine, steps_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from redrive.settings import Settings
    from redrive.transports.servicebus.administration import Administration
    from redrive.transports.servicebus.transport import ServiceBusTransport
    from redrive.transports.setup import PlainExamined, PlainStep


class ServiceBusSetup:
    name_in_code_alone = ""

    def __init__(self, settings: Settings, queues: Sequence[str]) -> None:
        self._settings = settings
        self._queues = queues

    async def examine(self) -> BrokerExamined:
        async with _entities(self._settings) as entities:
            found = tuple([await examine(entities, name, self._steps(name)) for name in self._queues])
        return BrokerExamined("Azure Service Bus", found)

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        async with _entities(self._settings) as entities:
            own = cast("tuple[PlainExamined, ...]", examined.queues)
            return BrokerExamined(examined.told, tuple([await complete(entities, each) for each in own]))

    def _steps(self, name: str) -> Iterator[PlainStep]:
        broker = self._settings.broker
        return steps_for(
            name,
            broker.names,
            max_delivery_count=broker.servicebus.max_delivery_count,
            lock_duration=broker.servicebus.lock_duration,
            sessions=name.casefold() in {each.casefold() for each in broker.servicebus.sessions},
        )


async def missing_queues(settings: Settings, names: Sequence[str]) -> list[str]:
    """A subqueue is there with its queue."""
    async with _entities(settings) as entities:
        return [name for name in names if await entities.facts(name) is None]


@asynccontextmanager
async def _entities(settings: Settings) -> AsyncIterator[Administration]:
    async with wiring.producer(settings) as transport:
        yield cast("ServiceBusTransport", transport).entities
