"""Looks at queues and makes those that are missing. What exists is used as it is.

Everything is asked on a channel of its own: a no closes the channel, and nothing else may hang on it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from redrive import faults
from redrive.errors import PublishRefused, Unreachable
from redrive.transports import filled_with
from redrive.transports.rabbitmq.administration import DeclarationRefused, QueueLook
from redrive.transports.rabbitmq.channel import Channel, Deaf
from redrive.transports.rabbitmq.methods import Basic, ChannelClosed, ExchangeDeclare, QueueBind, QueueDeclare
from redrive.transports.rabbitmq.topology import BindingSpec, ExchangeSpec, QueueSpec

if TYPE_CHECKING:
    from pamqp.base import Frame

    from redrive.transports.rabbitmq.connection import Connection
    from redrive.transports.rabbitmq.line import Line
    from redrive.transports.rabbitmq.queue_arguments import Version
    from redrive.transports.rabbitmq.topology import Topology

_NOT_FOUND = 404
_HELD_ELSEWHERE = "NOT_FOUND - home node"
"""How the broker begins to say that a classic queue exists, on a node that is away."""
_REFUSALS = frozenset({403, 405, 406, 530})
"""Not allowed, somebody else's alone, declared otherwise, not possible here."""
_GIVEN_UP = 0.2
"""Seconds. A quarter of a second after it has asked a quorum queue in vain the broker says that it is empty."""
_SILENT_LOOKS = 3
"""In a row; one may have met a broker that was busy."""


class BrokerAdministration:
    """Keeps the promises of `Administration`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._channel: Channel | None = None
        self._asking = asyncio.Lock()
        self._version: Version = ()

    @property
    def version(self) -> Version:
        return self._version

    async def connected(self) -> Connection:
        connection = await self._line.connection()
        self._version = connection.version
        return connection

    async def look(self, queue: str) -> QueueLook | None:
        for _ in range(_SILENT_LOOKS):
            answer, took = await self._timed(QueueDeclare(queue=queue, passive=True))
            if answer is None:
                return None
            counted = answer.message_count, answer.consumer_count
            if any(counted) or took < _GIVEN_UP or took < _GIVEN_UP + await self._usual():
                return QueueLook(*counted)
        return QueueLook(0, 0, silent=True)

    async def exchange_exists(self, name: str) -> bool:
        if not name:
            return True
        return await self._ask(ExchangeDeclare(exchange=name, passive=True)) is not None

    async def declare_queue(self, spec: QueueSpec) -> None:
        await self._ask(QueueDeclare(queue=spec.name, durable=True, arguments=dict(spec.arguments)))

    async def declare_exchange(self, spec: ExchangeSpec) -> None:
        await self._ask(ExchangeDeclare(exchange=spec.name, exchange_type=spec.kind, durable=True))

    async def bind(self, spec: BindingSpec) -> None:
        bound = await self._ask(QueueBind(queue=spec.queue, exchange=spec.exchange, routing_key=spec.routing_key))
        if bound is None:
            raise DeclarationRefused(f"queue {spec.queue!r} or exchange {spec.exchange!r} does not exist")

    async def declare(self, thing: QueueSpec | ExchangeSpec | BindingSpec) -> None:
        if isinstance(thing, QueueSpec):
            await self.declare_queue(thing)
        elif isinstance(thing, ExchangeSpec):
            await self.declare_exchange(thing)
        else:
            await self.bind(thing)

    async def _usual(self) -> float:
        """How many seconds an answer takes that needs no queue."""
        return (await self._timed(Basic.Qos()))[1]

    async def _ask(self, method: Frame) -> Any:
        """The broker's answer; None: it does not exist."""
        return (await self._timed(method))[0]

    async def _timed(self, method: Frame) -> tuple[Any, float]:
        """With the seconds that it took."""
        async with self._asking:
            try:
                if self._channel is None or self._channel.why_closed is not None:
                    self._channel = await (await self.connected()).channel(Deaf())
                began = time.monotonic()
                return await self._channel.call(method), time.monotonic() - began
            except ChannelClosed as closed:
                if closed.text.startswith(_HELD_ELSEWHERE):
                    raise Unreachable(closed.text, remedy="start the nodes that hold the queue") from None
                if closed.code == _NOT_FOUND:
                    return None, 0.0
                if closed.code in _REFUSALS:
                    raise DeclarationRefused(closed.text) from None
                raise  # it says nothing about the question: the broker is away, or slow
            except (ValueError, OverflowError, TypeError) as error:
                raise DeclarationRefused(f"AMQP cannot carry it: {error}") from None


class Known:
    """The queues that are there, as far as this connection has seen; all forgotten when it is lost."""

    def __init__(self, administration: BrokerAdministration, topology: Topology, *, declare: bool) -> None:
        self._administration = administration
        self._topology = topology
        self._declare = declare
        self._names: set[str] = set()
        self._looping: dict[str, bool] = {}
        self._connection: Connection | None = None
        self._making = asyncio.Lock()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._names)

    @property
    def topology(self) -> Topology:
        """For the broker's version, once a connection has told it."""
        return self._topology

    async def ensure(self, name: str) -> None:
        """The queue exists when it returns. PublishRefused if it is missing and may not be made."""
        connection = await self._administration.connected()
        if connection is self._connection and name in self._names:
            return
        async with self._making:
            if connection is not self._connection:
                self._connection = connection
                self._names.clear()
                self._looping.clear()
                self._topology = self._topology.for_version(connection.version)
            if name not in self._names:
                await self._make(name)
                self._names.add(name)

    def has(self, name: str) -> bool:
        """Whether `ensure` would return at once."""
        return self._connection is not None and self._connection.why_lost is None and name in self._names

    async def loops(self, queue: str) -> bool:
        """Whether a message rejected from this queue surely reaches its retry queue: it is declared as ours are,
        and ours keep a message until its target has confirmed it.
        """
        spec = self._topology.spec(queue)
        if spec.arguments.get("x-dead-letter-strategy") != "at-least-once":
            return False
        await self.ensure(self._topology.names.retry_of(queue))
        if queue not in self._looping:
            try:
                await self._administration.declare_queue(spec)
            except DeclarationRefused:
                self._looping[queue] = False  # somebody else's, and used as it is
            else:
                self._looping[queue] = True
        return self._looping[queue]

    def forget(self, name: str) -> None:
        """It was not there any more."""
        self._names.discard(name)

    async def _make(self, name: str) -> None:
        try:
            if await self._administration.look(name) is None:
                await self._declare_all(name)
            elif self._declare:
                await self._bind_again(name)
        except DeclarationRefused as refused:
            raise PublishRefused(
                f"the broker does not make queue {name!r}: {refused}",
                permanent=True,
                remedy="see `redrive setup --dry-run` for what is wanted; give the user configure permission",
            ) from None

    async def _declare_all(self, name: str) -> None:
        if not self._declare:
            raise PublishRefused(
                f"there is no queue {name!r}",
                permanent=True,
                remedy='make it with `redrive setup`, or set [broker.rabbitmq] declare = "missing"',
            )
        for thing in self._things(name):
            await self._declare_missing(thing)

    async def _bind_again(self, name: str) -> None:
        """A process that died behind its declaration has left a queue without its binding, and nobody can look."""
        for binding in self._topology.extras(name).bindings:
            with suppress(DeclarationRefused):  # somebody else's queue, which is used as it is
                await self._administration.bind(binding)

    async def _declare_missing(self, thing: QueueSpec | ExchangeSpec | BindingSpec) -> None:
        if isinstance(thing, QueueSpec) and await self._administration.look(thing.name) is not None:
            return
        if isinstance(thing, ExchangeSpec) and await self._administration.exchange_exists(thing.name):
            return
        faults.point("rabbitmq.before_declare")
        await self._administration.declare(thing)

    def _things(self, name: str) -> list[QueueSpec | ExchangeSpec | BindingSpec]:
        """What has to be there for this queue: for one that is consumed, what its dead letters need too."""
        topology = self._topology
        if (home := topology.home_of_waiting(name)) is not None:  # what it returns to comes first
            return [*self._whole(home), *self._alone(name)]
        if topology.names.home_of_dead(name) is not None:
            return self._alone(name)
        home = filled_with(topology.names.retry, name)
        return self._whole(name if home is None else home)

    def _whole(self, queue: str) -> list[QueueSpec | ExchangeSpec | BindingSpec]:
        return [step.thing for step in self._topology.layout(queue).steps]

    def _alone(self, name: str) -> list[QueueSpec | ExchangeSpec | BindingSpec]:
        extras = self._topology.extras(name)
        return [*extras.exchanges, *extras.queues, self._topology.spec(name), *extras.bindings]
