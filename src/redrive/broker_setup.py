"""`redrive setup`: what the queues of an app need on a broker, looked at and made. And which queues are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from redrive.transports import check_installed
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
    check_installed(settings.broker.url.reveal())
    if settings.broker.on_kafka:
        from redrive.kafka_setup import KafkaSetup  # noqa: PLC0415  only those who use it

        return KafkaSetup(settings, app, queues)
    if settings.broker.on_sqs:
        from redrive.sqs_setup import SqsSetup  # noqa: PLC0415  as above

        return SqsSetup(settings, queues)
    if settings.broker.on_servicebus:
        from redrive.servicebus_setup import ServiceBusSetup  # noqa: PLC0415  as above

        return ServiceBusSetup(settings, queues)
    from redrive.rabbitmq_setup import RabbitSetup  # noqa: PLC0415  as above

    return RabbitSetup(settings, app, queues, delays=delays)


async def missing_queues(settings: Settings, queues: Sequence[str]) -> list[str]:
    """Those of them that are not on the broker."""
    check_installed(settings.broker.url.reveal())
    if settings.broker.on_kafka:
        from redrive.kafka_setup import missing_topics  # noqa: PLC0415  only those who use it

        return await missing_topics(settings, queues)
    if settings.broker.on_sqs:
        from redrive import sqs_setup  # noqa: PLC0415  as above

        return await sqs_setup.missing_queues(settings, queues)
    if settings.broker.on_servicebus:
        from redrive import servicebus_setup  # noqa: PLC0415  as above

        return await servicebus_setup.missing_queues(settings, queues)
    from redrive.rabbitmq_setup import missing  # noqa: PLC0415  as above

    return await missing(settings, queues)
