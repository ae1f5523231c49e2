"""`redrive setup`: what the queues of an app need on a broker, looked at and made. And which queues are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from redrive.transports.setup import Examined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.app import App
    from redrive.settings import Settings


class BrokerExamined(msgspec.Struct, frozen=True):
    told: str
    """Which broker it is, and what about it matters here."""
    queues: tuple[Examined, ...]


class BrokerSetup(Protocol):
    """For these queues of one broker, whether the app handles them or not."""

    @property
    def name_in_code_alone(self) -> str:
        """The app's name, if things are named after it and the settings do not tell it; else nothing. Commands
        that do not load the app cannot know those things.
        """
        ...

    async def examine(self) -> BrokerExamined:
        """Changes nothing."""
        ...

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        """Makes what was missing; how it is then. `examined` is its own."""
        ...


def broker_setup(
    settings: Settings, app: App | None, queues: Sequence[str], *, delays: bool = False
) -> BrokerSetup:
    """`delays`: delay queues too, where they are else left to the retry that needs them first."""
    if settings.broker.on_kafka:
        from redrive.kafka_setup import KafkaSetup  # noqa: PLC0415  only those who use it

        return KafkaSetup(settings, app, queues)
    from redrive.rabbitmq_setup import RabbitSetup  # noqa: PLC0415  as above

    return RabbitSetup(settings, app, queues, delays=delays)


async def missing_queues(settings: Settings, queues: Sequence[str]) -> list[str]:
    """Those of them that are not on the broker."""
    if settings.broker.on_kafka:
        from redrive.kafka_setup import missing_topics  # noqa: PLC0415  only those who use it

        return await missing_topics(settings, queues)
    from redrive.rabbitmq_setup import missing  # noqa: PLC0415  as above

    return await missing(settings, queues)
