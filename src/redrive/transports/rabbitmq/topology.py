"""Which queues and exchanges stand beside a queue, as plain data: nothing here talks to a broker.

`Topology` is the default: delay queues `{queue}_retry.5000` that return into the queue, and `{queue}_dlq`. The
other topologies are this one with a few answers of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from redrive.duration import short
from redrive.transports import Names, filled_with
from redrive.transports.delays import LADDER, rung
from redrive.transports.rabbitmq.queue_arguments import DeadLetterTarget, QueueType, Version, queue_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULT_EXCHANGE = ""
OLDEST: Version = (3, 10)
_RUNGS = {str(milliseconds): milliseconds for milliseconds in LADDER}


class QueueSpec(msgspec.Struct, frozen=True):
    """A durable queue."""

    name: str
    arguments: dict[str, Any] = {}


class ExchangeSpec(msgspec.Struct, frozen=True):
    """A durable exchange."""

    name: str
    kind: str = "direct"


class BindingSpec(msgspec.Struct, frozen=True):
    exchange: str
    queue: str
    routing_key: str


class Route(msgspec.Struct, frozen=True):
    """How a message is published."""

    exchange: str
    routing_key: str


class Extras(msgspec.Struct, frozen=True):
    """What one queue needs around it: `exchanges` and `queues` before it is declared, `bindings` behind it."""

    exchanges: tuple[ExchangeSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    bindings: tuple[BindingSpec, ...] = ()


class Step(msgspec.Struct, frozen=True):
    role: str
    """What it is for, for people."""
    thing: QueueSpec | ExchangeSpec | BindingSpec
    delays: bool = False
    """A queue where messages wait for one delay. There may be many of them."""


class Layout(msgspec.Struct, frozen=True):
    """Everything of one queue, in the order in which it can be declared: what dead letters need comes first, so
    that no message dies into nothing.
    """

    queue: str
    steps: tuple[Step, ...]


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """Made by `topology_choice.choose`; `for_version` once the broker has told its version."""

    names: Names = Names()
    queue_type: QueueType | None = None
    """None: the topology's own."""
    max_priority: int | None = None
    """Of queues that are consumed. Classic ones only."""
    version: Version = OLDEST

    templates: ClassVar[Names] = Names()
    writes_envelope: ClassVar[bool] = False
    """Error and number of retries are written into the body of S3's JSON."""
    rejects: ClassVar[bool] = False
    """A message can go to its `names.retry_of` by basic.reject, see `TtlLoop`."""

    def for_version(self, version: Version) -> Topology:
        return msgspec.structs.replace(self, version=tuple(version))

    def consumed(self, queue: str) -> tuple[str, ...]:
        """The queues that a receiver of `queue` reads."""
        return (queue,)

    def waiting(self, queue: str, delay: float) -> QueueSpec:
        """Where a message waits that is to be received for `queue` after `delay` seconds. The delay is rounded up
        on the ladder; one that is longer than the ladder waits for its longest delay, and has to be put off again.
        """
        return self._delay_queue(queue, rung(delay))

    def all_waiting(self, queue: str) -> tuple[str, ...]:
        """Every queue where messages of `queue` could wait, whether it exists or not."""
        return tuple(self._delay_name(queue, milliseconds) for milliseconds in LADDER)

    def home_of_waiting(self, name: str) -> str | None:
        """The queue whose messages wait in the queue of this name; None if it is none for waiting."""
        before, _, milliseconds = name.rpartition(".")
        return filled_with(self.names.retry, before) if milliseconds in _RUNGS else None

    def spec(self, name: str) -> QueueSpec:
        """How a queue of this name is declared if it is missing, whatever it is for."""
        home = self.home_of_waiting(name)
        if home is not None:
            return self._delay_queue(home, _RUNGS[name.rpartition(".")[2]])
        return QueueSpec(name, self._arguments(name))

    def extras(self, name: str) -> Extras:  # noqa: ARG002  other topologies look at it
        """The exchanges and bindings that belong to the queue of this name."""
        return Extras()

    def route(self, name: str) -> Route:
        """How a message is published into the queue of this name, so that it finds its way from there."""
        return Route(DEFAULT_EXCHANGE, name)

    def layout(self, queue: str, delays: Iterable[float] = ()) -> Layout:
        """`delays`: those that messages of this queue will wait for, in seconds."""
        standing = dict(self._standing(queue))
        waits = dict.fromkeys(self.waiting(queue, delay).name for delay in delays)
        roles = {name: self._wait_role(name) for name in waits} | standing
        exchanges = dict.fromkeys(each for name in roles for each in self.extras(name).exchanges)
        steps = [Step(self._exchange_role(each), each) for each in exchanges]
        for name in (*standing, *(name for name in waits if name not in standing)):
            steps.append(Step(roles[name], self.spec(name), delays=name not in standing))
            steps += [Step("binding", each) for each in self.extras(name).bindings]
        return Layout(queue, tuple(steps))

    def _standing(self, queue: str) -> Iterator[tuple[str, str]]:
        """Name and role of every queue that is always there, in the order of declaration."""
        yield self.names.dead_of(queue), "dead letters"
        yield queue, "messages"

    def _exchange_role(self, exchange: ExchangeSpec) -> str:  # noqa: ARG002  other topologies look at it
        return "dead letters"

    def _wait_role(self, name: str) -> str:
        return f"wait {short(self.spec(name).arguments['x-message-ttl'] / 1e3)}, then back"

    def _arguments(self, name: str) -> dict[str, Any]:
        """Of a queue that is not for waiting."""
        dead = self.names.home_of_dead(name) is not None
        return queue_arguments(
            self.queue_type or "quorum", self.version, max_priority=None if dead else self.max_priority
        )

    def _delay_name(self, queue: str, milliseconds: int) -> str:
        return f"{self.names.retry_of(queue)}.{milliseconds}"

    def _delay_queue(self, queue: str, milliseconds: int) -> QueueSpec:
        back = DeadLetterTarget(DEFAULT_EXCHANGE, self._returns_to(queue))
        # Quorum whatever `queue_type` says: classic queues lose what they dead-letter when the broker dies (SD12).
        arguments = queue_arguments("quorum", self.version, ttl=milliseconds, dead_letters=back)
        return QueueSpec(self._delay_name(queue, milliseconds), arguments)

    def _returns_to(self, queue: str) -> str:
        return queue
