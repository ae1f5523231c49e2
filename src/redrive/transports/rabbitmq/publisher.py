"""Publishing that knows what became of each message.

1. Every message is mandatory and its channel in confirm mode. Published means: confirmed, and not returned.
2. A message that reaches no queue comes back before its confirm. It is recognised by its content, so that of many
   in flight exactly that one is refused; twins of the same content cannot be told apart, and need not be.
3. A refusal (nack) says nothing is there. A lost channel, or no answer in time, says nothing at all: the outcome
   is unknown, and the caller hears Unreachable, never success (R12).
4. A queue that does not confirm must not stop the others. After some unanswered messages it gets one at a time
   (`Doubts`); and if nothing at all is confirmed, the connection is given up: RabbitMQ stops reading from one that
   has many unanswered messages for a single queue.
5. While the broker has blocked the connection nothing is written; after the deadline the message is certainly not
   sent.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from redrive.errors import PublishRefused, Unreachable
from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.channel import Deaf
from redrive.transports.rabbitmq.methods import ChannelClosed, Confirm, ConnectionLost

if TYPE_CHECKING:
    from redrive.transports.rabbitmq.channel import Channel
    from redrive.transports.rabbitmq.connection import Connection

_SWEEP = 1.0
_WINDOW = 2000
"""Messages in flight on one channel."""
_WINDOW_BYTES = 64 * 2**20
_DOUBTFUL = 20
"""Unanswered messages of one queue after which it gets one at a time."""
_PRECONDITION, _NOT_FOUND, _REFUSED = 406, 404, 403


class Unroutable(PublishRefused):
    """No queue took it."""

    def __init__(self, text: str) -> None:
        super().__init__(text, permanent=True, remedy="make the queue (redrive setup), or mend the binding")


class Doubts:
    """Queues that have left messages unanswered, over all connections: how many since their last answer."""

    def __init__(self) -> None:
        self._unanswered: Counter[bytes] = Counter()

    def add(self, routing_key: bytes) -> None:
        self._unanswered[routing_key] += 1

    def clear(self, routing_key: bytes) -> None:
        if self._unanswered:
            self._unanswered.pop(routing_key, None)

    def about(self, routing_key: bytes) -> bool:
        return self._unanswered[routing_key] >= _DOUBTFUL if self._unanswered else False


class Answer(Protocol):
    """Whoever waits for one message: as much of a Future as is needed."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...

    def set_exception(self, exception: Exception, /) -> None: ...


class _Flight:
    """A message on its way."""

    __slots__ = ("answer", "body", "deadline", "exchange", "properties", "returned", "routing_key")

    def __init__(  # noqa: PLR0917  made in one place
        self,
        exchange: bytes,
        routing_key: bytes,
        properties: bytes,
        body: bytes,
        answer: Answer,
        deadline: float,
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.properties = properties
        self.body = body
        self.answer = answer
        self.deadline = deadline
        self.returned = ""


class Publisher(Deaf):
    """Made by `open_publisher`. Useless once its channel is gone (`alive`)."""

    def __init__(self, timeout: float, doubts: Doubts | None = None) -> None:
        self._timeout = timeout
        self._doubts = doubts or Doubts()
        self._flying: Counter[bytes] = Counter()
        self._answered_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._channel: Channel | None = None
        self._last = 0
        self._flights: dict[int, _Flight] = {}
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        return self._channel is not None and self._channel.why_closed is None

    async def open(self, connection: Connection) -> None:
        channel = await connection.channel(self)
        try:
            await channel.call(Confirm.Select())
        except BaseException:  # cancelled: nobody else knows of it
            channel.abandon(ChannelClosed(0, "given up before it could publish"))
            raise
        self._channel = channel

    async def publish(
        self, exchange: bytes, routing_key: bytes, properties: bytes, body: bytes, *, fits: int
    ) -> None:
        """Durable in every queue it was routed to, at least one, when it returns. `fits`: the size of the largest
        content header the broker takes.
        """
        channel = self._channel
        if channel is None or channel.why_closed is not None:
            raise Unreachable("the channel for publishing is closed")
        if len(properties) > fits:
            raise PublishRefused(
                f"the headers take {len(properties)} bytes, the broker takes {fits}",
                permanent=True,
                remedy="make the headers smaller",
            )
        if self._flying[routing_key] and self._doubts.about(routing_key):
            raise Unreachable(
                f"queue {routing_key.decode('utf-8', 'replace')!r} has not confirmed its last messages",
                remedy="look at its state with `redrive doctor`: a quorum queue may have lost its leader",
            )
        connection = channel.connection
        if connection.hurried or not self._room.is_set():
            await self._until_there_is_room(connection)
        answer: asyncio.Future[None] = self._loop.create_future()
        flight = _Flight(exchange, routing_key, properties, body, answer, self._loop.time() + self._timeout)
        self._take_off(channel, flight)
        await answer

    @property
    def open_channel(self) -> Channel | None:
        """The channel, if a message can be written to it now."""
        channel = self._channel
        if channel is None or not channel.usable or channel.connection.hurried or not self._room.is_set():
            return None
        return channel

    def begin(  # noqa: PLR0917  the hot path
        self,
        channel: Channel,
        exchange: bytes,
        routing_key: bytes,
        properties: bytes,
        body: bytes,
        answer: Answer,
    ) -> bool:
        """As `publish` on its open channel, and nobody waits. False: it would be refused, and nothing is sent."""
        if self._flying[routing_key] and self._doubts.about(routing_key):
            return False
        deadline = self._loop.time() + self._timeout
        self._take_off(channel, _Flight(exchange, routing_key, properties, body, answer, deadline))
        return True

    def _take_off(self, channel: Channel, flight: _Flight) -> None:
        channel.write(
            wire.publish(
                channel.number,
                flight.exchange,
                flight.routing_key,
                flight.properties,
                flight.body,
                channel.connection.frame_max,
            )
        )
        self._last += 1
        self._flights[self._last] = flight
        self._flying[flight.routing_key] += 1
        self._bytes += len(flight.body)
        if len(self._flights) >= _WINDOW or self._bytes >= _WINDOW_BYTES:
            self._room.clear()
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_SWEEP, self._sweep)

    async def _until_there_is_room(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await connection.room()
                await self._room.wait()
        except TimeoutError:
            why = (
                f"RabbitMQ blocks publishing: {connection.blocked}"
                if connection.blocked
                else "it reads too slowly"
            )
            raise Unreachable(
                f"nothing was sent within {self._timeout:g} s: {why}",
                remedy="free memory or disk of the broker; work goes on by itself",
            ) from None
        if not self.alive:
            raise Unreachable("the channel for publishing is closed")

    # What the channel tells.

    def confirmed(self, tag: int, multiple: bool, *, taken: bool) -> None:  # noqa: FBT001  as on the wire
        while multiple and (oldest := next(iter(self._flights), tag)) < tag:
            self._land(oldest, taken=taken)
        self._land(tag, taken=taken)

    def returned(self, method: bytes, properties: bytes, body: bytes) -> None:
        why, exchange, key = wire.returned(method)
        text = f"{_shown(why)}: no queue takes {_shown(key)!r} of exchange {_shown(exchange)!r}"
        flights = [
            flight for flight in self._flights.values() if flight.routing_key == key and not flight.returned
        ]
        for flight in flights:
            if flight.properties == properties and flight.body == body:
                flight.returned = text
                return
        for flight in flights:  # one of them it was: none of them may be taken for delivered
            flight.returned = text

    def closed(self, why: ChannelClosed | ConnectionLost) -> None:
        flights, self._flights = self._flights, {}
        self._bytes = 0
        self._flying.clear()
        self._room.set()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for flight in flights.values():
            if not flight.answer.done():
                flight.answer.set_exception(_meaning(why, flight))

    def _land(self, tag: int, *, taken: bool) -> None:
        flight = self._depart(tag)
        if flight is None:
            return  # its deadline has passed
        self._answered_at = self._loop.time()
        self._doubts.clear(flight.routing_key)
        if flight.answer.done():
            return  # nobody waits any more
        if flight.returned:
            flight.answer.set_exception(Unroutable(flight.returned))
        elif taken:
            flight.answer.set_result(None)
        else:
            flight.answer.set_exception(_not_taken(flight))

    def _depart(self, tag: int) -> _Flight | None:
        flight = self._flights.pop(tag, None)
        if flight is None:
            return None
        self._bytes -= len(flight.body)
        self._flying[flight.routing_key] -= 1
        if not self._flying[flight.routing_key]:
            del self._flying[flight.routing_key]
        if not self._room.is_set() and len(self._flights) < _WINDOW and self._bytes < _WINDOW_BYTES:
            self._room.set()
        return flight

    def _sweep(self) -> None:
        self._sweeping = None
        now = self._loop.time()
        overdue = list(takewhile(lambda tag: self._flights[tag].deadline <= now, self._flights))
        for tag in overdue:  # out of the window: a queue that never confirms must not stop the others
            flight = self._depart(tag)
            if flight is not None:
                self._doubts.add(flight.routing_key)
            if flight is not None and not flight.answer.done():
                flight.answer.set_exception(
                    Unreachable(f"RabbitMQ did not confirm message {tag} in time: it may or may not be there")
                )
        connection = None if self._channel is None else self._channel.connection
        # One that it has blocked answers later: a copy on every new connection would be published then.
        if (
            overdue
            and connection is not None
            and not connection.hurried
            and self._answered_at < now - self._timeout
        ):
            connection.abort(ConnectionLost("RabbitMQ confirms nothing on this connection"))
        elif self._flights:
            self._sweeping = self._loop.call_later(_SWEEP, self._sweep)


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _not_taken(flight: _Flight) -> PublishRefused:
    return PublishRefused(
        f"RabbitMQ does not take the message for {flight.routing_key.decode('utf-8', 'replace')!r} now",
        permanent=False,
        remedy="the queue is full or its leader is away: make room, or wait",
    )


def _meaning(why: ChannelClosed | ConnectionLost, flight: _Flight) -> Exception:
    """What the end of the channel says about one message that was on its way."""
    if not isinstance(why, ChannelClosed):
        return Unreachable(f"it may or may not be there: {why}")
    if why.code == _PRECONDITION and "max size" in why.text and _too_large(why.text, len(flight.body)):
        return PublishRefused(why.text, permanent=True, remedy="raise the broker's max_message_size, or send less")
    if why.code == _NOT_FOUND and _names(why.text, flight.exchange):
        return PublishRefused(why.text, permanent=True, remedy="make the exchange, or send to the queue itself")
    if why.code == _REFUSED and _names(why.text, flight.exchange or b"amq.default"):
        return PublishRefused(why.text, permanent=True, remedy="give the user write permission on the exchange")
    return Unreachable(f"it may or may not be there: {why}")


def _too_large(text: str, size: int) -> bool:
    """`message size 300 is larger than configured max size 200`: of those in flight, one larger than that."""
    limit = text.rpartition("max size ")[2].split()[0].strip(".,;'")
    return limit.isdigit() and size > int(limit)


def _names(text: str, exchange: bytes) -> bool:
    return f"'{exchange.decode('utf-8', 'replace')}'" in text
