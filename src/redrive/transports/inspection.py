"""What a broker tells of itself, to `redrive doctor` and `redrive queues`. Nothing here moves a message.

Inspectors sit in `INSPECTORS` by the scheme of the broker's URL, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from redrive.registry import Driver, load_driver
from redrive.transports import Names

if TYPE_CHECKING:
    from collections.abc import Collection

    from redrive.finding import Finding
    from redrive.transports import Transport


class ExpectedQueue(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    longest: float | None = None
    """How long a message may be in hand, in seconds: every attempt in place. None: nothing ends it."""
    prefetch: int | None = None
    """How many of its messages one process has in memory at most."""
    waits: float = 0.0
    """The longest delay before a retry, in seconds."""
    handled: bool = True
    """Somebody works on it; else it is only looked at."""
    to_broker: bool = False
    """Its dead letters are put into the broker's own queue for them, whether or not they are in a store too."""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    queues: tuple[ExpectedQueue, ...] = ()
    """That have to be there; with what belongs to them they are all that is looked at. None: every queue is."""
    names: Names = Names()


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """None: the broker does not tell."""

    name: str
    type: str | None = None
    ready: int | None = None
    delayed: int | None = None
    unacked: int | None = None
    consumers: int | None = None
    incoming: float | None = None
    """Messages per second, as is `outgoing`."""
    outgoing: float | None = None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    queues: tuple[QueueFigures, ...] = ()
    """By name."""
    incomplete: str = ""
    """Why these may not be all queues, or not all there is to tell about them."""
    empty_too: bool = True
    """A queue that was asked for and is not here does not exist; False: it may hold nothing, no more."""


class Inspector(Protocol):
    """Changes and makes nothing. Every method raises Unreachable when the broker is away."""

    async def findings(self, expected: Expected) -> list[Finding]: ...

    async def figures(self, queues: Collection[str] = (), *, known: Collection[str] = ()) -> Figures:
        """Of these queues and what belongs to them, or of all. A broker that does not list its queues is asked for
        those `known`.
        """
        ...

    async def close(self) -> None: ...


_KAFKA = Driver("redrive.transports.kafka.inspector", "KafkaInspector", "kafka")
_RABBITMQ = Driver("redrive.transports.rabbitmq.inspector", "RabbitInspector", "rabbitmq")
_SERVICEBUS = Driver("redrive.transports.servicebus.inspector", "ServiceBusInspector", "servicebus")

INSPECTORS: dict[str, Driver] = {
    "embedded": Driver("redrive.transports.embedded_inspector", "EmbeddedInspector"),
    "amqp": _RABBITMQ,
    "amqps": _RABBITMQ,
    "kafka": _KAFKA,
    "kafkas": _KAFKA,
    "servicebus": _SERVICEBUS,
    "servicebus-emulator": _SERVICEBUS,
    "sqs": Driver("redrive.transports.sqs.inspector", "SqsInspector", "sqs"),
}


def open_inspector(url: str, transport: Transport, **options: Any) -> Inspector:
    """`transport` stays the caller's, who closes it."""
    inspector: Inspector = load_driver("inspector", url, INSPECTORS)(url, transport, **options)
    return inspector
