"""The seam to one broker: seven methods, each with its promise. Drivers sit in `DRIVERS`, imported on first use.

A driver passes `redrive.testing.transport_contract` by declaring its `Capabilities`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from redrive.message import Message
from redrive.registry import Driver, load_driver

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping


class Names(msgspec.Struct, frozen=True):
    """Templates for the queues beside a queue."""

    retry: str = "{queue}_retry"
    dead: str = "{queue}_dlq"
    expired: str | None = None
    """Where dead letters go that lay too long in `dead`, if they leave it."""
    ending: str = ""
    """What a broker has at the end of some names, and then at the end of those beside them: `orders.fifo` has its
    dead letters in `orders_dlq.fifo`.
    """

    def retry_of(self, queue: str) -> str:
        return self._beside(self.retry, queue)

    def dead_of(self, queue: str) -> str:
        return self._beside(self.dead, queue)

    def home_of_retry(self, name: str) -> str | None:
        """The queue whose retries are in the queue of this name; None if no such queue could exist."""
        return self._home(self.retry, name)

    def home_of_dead(self, name: str) -> str | None:
        """The queue whose dead letters, expired ones included, are in the queue of this name; None if no such
        queue could exist.
        """
        home = None if self.expired is None else self._home(self.expired, name)
        return self._home(self.dead, name) if home is None else home

    def _beside(self, template: str, queue: str) -> str:
        own = queue.removesuffix(self.ending)
        return template.format(queue=own) + queue[len(own) :]

    def _home(self, template: str, name: str) -> str | None:
        own = name.removesuffix(self.ending)
        home = filled_with(template, own)
        return None if home is None else home + name[len(own) :]


def filled_with(template: str, name: str) -> str | None:
    """The queue for which the template gives this name; None if there is none."""
    before, _, after = template.partition("{queue}")
    long_enough = len(name) > len(before) + len(after)
    if not (long_enough and name.startswith(before) and name.endswith(after)):
        return None
    return name[len(before) : len(name) - len(after)]


class Capabilities(msgspec.Struct, frozen=True):
    """What a broker can do; the contract suite asks for no more."""

    durable: bool = True
    """A message sent survives the death of every process of ours."""
    delays: bool = True
    delays_apart: bool = True
    """A message that is sent with a delay waits apart, and is counted as delayed. Else it lies where it was sent
    to, those of its key wait behind it, and those of other keys do not.
    """
    several_processes: bool = True
    lease_expiry: bool = True
    """A delivery that is neither acked nor released comes back by itself while its process lives."""
    ordered: bool = True
    """Without failures and with one consumer, messages arrive in the order they were sent."""
    lasting_identity: bool = True
    """A retried message keeps its source identity."""
    exact_depths: bool = True
    """A message is always counted somewhere: none is between two queues where nobody sees it."""
    clean_release: bool = True
    """A message that was given back is not marked as redelivered."""
    competing: bool = True
    """Several processes share a queue message by message; else each has parts of it to itself."""
    by_requests: bool = False
    """Messages are not pushed but fetched, a batch at a time: who asks for more only when all are settled waits
    for an answer each time.
    """
    durable_retries: bool = True
    """A message that is retried is durable with its attempt, and others pass it. Else it stays where it is, waits
    in this process with those behind it, and after a death comes again at its first attempt.
    """
    side_by_side: bool = True
    """As many messages are in hand as `prefetch` says. Else a queue, or each part of it, such as what has one key,
    comes one by one: the next when the one before is settled.
    """


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One reception of a message."""

    message: Message
    queue: str
    """The queue it was received for: a retry of `orders` is received for `orders`."""
    identity: str
    """The source identity (G3): the same for every delivery of this message from this place."""
    attempt: int
    """1 for the first. Counts handler attempts that ended in a retry, not deliveries."""
    redelivered: bool
    """It was delivered before and neither acked, retried nor released: its process may have died. Where a broker
    cannot tell a release from a death (`Capabilities.clean_release`), a released one is marked too.
    """
    first_attempt_at: datetime | None
    """When attempt 1 was made; None before that."""
    trail: bytes | None
    """What `send` or `retry` was given the last time, untouched."""
    receipt: Any
    """The driver's own. Its `place`, if it has one, tells a trace where on the broker that was: attributes in the
    words of OpenTelemetry's conventions, nothing that a producer wrote.
    """
    alike: str | None = None
    """Where nothing tells this message from another with the same content, so that its identity is of this
    delivery alone: what all such have in common. None: its identity lasts.
    """
    due_since: datetime | None = None
    """Since when it could be received, by the clock of whoever put it there; None where a broker does not tell."""


class QueueDepth(msgspec.Struct, frozen=True):
    ready: int
    delayed: int
    leased: int

    @property
    def total(self) -> int:
        return self.ready + self.delayed + self.leased

    def plus(self, other: QueueDepth | None) -> QueueDepth:
        if other is None:
            return self
        return QueueDepth(self.ready + other.ready, self.delayed + other.delayed, self.leased + other.leased)


class Transport(Protocol):
    """Moves messages on one broker. Connects on first use; safe to use from many tasks of one event loop.

    Every method raises `Unreachable` when the broker is away, and leaves nothing half done that a repetition
    would not mend.
    """

    capabilities: Capabilities
    """Of its queues. A driver whose queues differ tells more, see `capabilities_of`."""
    names: Names

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        """Durable when it returns. To `queue`, else to the message's own; never before `delay` seconds. `trail`
        comes with its deliveries. Raises PublishRefused when the broker will not have it, TrailTooLong when it
        would with a shorter trail.
        """
        ...

    def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        """The deliveries of a queue, its due retries included, for ever; at most `prefetch` unsettled.
        Closing the iterator gives back what was fetched and not yet handed out.
        """
        ...

    async def ack(self, delivery: Delivery) -> None:
        """The message is gone for good when it returns, or will be with what the driver writes next: a broker that
        does not answer acks may deliver it again after a crash. LeaseLost: somebody else has it, nothing is
        changed.
        """
        ...

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        """The message is durable in the retry queue and no longer here when it returns: never in neither.
        It comes back for the same queue, same identity where the broker can, `attempt` one higher, with
        `message.overlay` and `trail` as given, not before `delay` seconds. LeaseLost as for `ack`, PublishRefused
        and TrailTooLong as for `send`. Without `Capabilities.durable_retries` it is durable where and as it was.
        """
        ...

    async def release(self, delivery: Delivery) -> None:
        """Give it back untouched, at once, not counted as an attempt and not marked as redelivered."""
        ...

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        """What lies in these queues, their retries and their dead letters, by name, as far as they hold anything.
        Without names: in every queue the driver knows of; not every broker can list its queues.
        """
        ...

    async def close(self) -> None:
        """Releases what is unsettled, waits until the broker has it, disconnects. Safe to repeat."""
        ...


@runtime_checkable
class OriginSending(Protocol):
    """A driver whose broker routes: a message can go where its producer sent it, and not only to one queue."""

    readers_are: str
    """What those are called that `readers_of_origin` names."""

    async def send_to_origin(self, message: Message) -> None:
        """As `send`, to every queue that the message's first exchange has for it, or to everybody who reads its
        first topic. PublishRefused if that is not known or gone.
        """
        ...

    async def readers_of_origin(self, queues: Collection[str]) -> tuple[str, ...] | None:
        """Who gets messages of these queues that are sent to their origin; None: the broker does not tell."""
        ...


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message really goes."""

    place: str
    """The queue or topic that takes it."""
    readers: tuple[str, ...] | None = None
    """Of a topic: who gets it there. None: it is a queue, or nobody can tell."""
    impossible: str = ""
    """Why nothing would take it."""


@runtime_checkable
class Detouring(Protocol):
    """A driver with names that can be read from and not sent to."""

    async def landing_of(self, queue: str) -> Landing | None:
        """Of somebody's message that is sent to this name. None: there."""
        ...


@runtime_checkable
class ImmediateSending(Protocol):
    """A driver that can send without a task of the caller's for each message: of thousands, they cost the most."""

    def send_at_once(self, message: Message, *, queue: str, done: Callable[[Exception | None], None]) -> bool:
        """As `send`, where nothing has to be waited for before the message is on its way. True: `done`, which must
        not raise, is called once, later, with what `send` would have raised, or None. False: nothing has
        happened, and `send` says why or waits.
        """
        ...


@runtime_checkable
class NativeDeadLetters(Protocol):
    """A driver whose broker may have a place for dead letters that nothing can be sent to: a delivery is settled
    into it.
    """

    def has_native_dead_letters(self, queue: str) -> bool:
        """Whether `Names.dead_of` this queue is such a place."""
        ...

    async def dead_letter(self, delivery: Delivery, *, reason: str, text: str, trail: bytes) -> None:
        """As `ack`, but the message is not gone: it is there, with these words, as far as there is room. `trail`
        comes with its deliveries from there. TrailTooLong as for `send`.
        """
        ...


class LostLeases:
    """Tells of deliveries that are no longer held, by their receipts: each once, as soon as the driver knows, and
    none that somebody is settling, who is told by LeaseLost.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[object], None]] = []

    def listen(self, listener: Callable[[object], None]) -> None:
        """It must not raise."""
        self._listeners.append(listener)

    def tell(self, receipt: object) -> None:
        for listener in self._listeners:
            listener(receipt)


@runtime_checkable
class TellingOfLosses(Protocol):
    """A driver that learns by itself that somebody else may have a delivery, while it is being handled."""

    @property
    def lost(self) -> LostLeases: ...


@runtime_checkable
class VariedQueues(Protocol):
    """A driver whose broker has queues of several kinds, which can do different things."""

    def capabilities_of(self, queue: str) -> Capabilities: ...


def capabilities_of(transport: Transport, queue: str) -> Capabilities:
    """What the broker can do with this queue, whatever its driver."""
    driver: object = transport
    return driver.capabilities_of(queue) if isinstance(driver, VariedQueues) else transport.capabilities


_KAFKA = Driver("redrive.transports.kafka.transport", "KafkaTransport", extra="kafka")
_RABBITMQ = Driver("redrive.transports.rabbitmq.transport", "RabbitTransport", extra="rabbitmq")
_SERVICEBUS = Driver("redrive.transports.servicebus.transport", "ServiceBusTransport", extra="servicebus")

DRIVERS: dict[str, Driver] = {
    "embedded": Driver("redrive.transports.embedded", "EmbeddedTransport"),
    "amqp": _RABBITMQ,
    "amqps": _RABBITMQ,
    "kafka": _KAFKA,
    "kafkas": _KAFKA,
    "servicebus": _SERVICEBUS,
    "servicebus-emulator": _SERVICEBUS,
    "sqs": Driver("redrive.transports.sqs.transport", "SqsTransport", extra="sqs"),
}


def check_installed(url: str) -> None:
    """MissingExtra if its driver needs a package that is not there. For whoever imports a part of that driver: it
    is asked for first, and nobody else has to tell one missing module from another.
    """
    load_driver("transport", url, DRIVERS)


def open_transport(url: str, *, names: Names | None = None, **options: Any) -> Transport:
    transport: Transport = load_driver("transport", url, DRIVERS)(url, names=names or Names(), **options)
    return transport
