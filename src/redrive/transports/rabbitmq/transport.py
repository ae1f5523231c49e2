"""RabbitMQ. Manual acks, confirmed and mandatory publishing, and an order of writes that a kill cannot break:
what replaces a delivery is confirmed before the delivery is acknowledged.

Two connections: one consumes, one publishes. When memory or disk runs out the broker stops reading from
connections that publish, and acknowledgements must get through all the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from redrive import faults
from redrive.clock import Clock, SystemClock, new_id
from redrive.epoch import microseconds
from redrive.errors import ConfigurationError, PublishRefused, RedriveError, Unreachable, UsageError
from redrive.transports import Capabilities, Delivery, Names, QueueDepth
from redrive.transports.rabbitmq import address as addresses
from redrive.transports.rabbitmq.administration import DeclarationRefused, not_known
from redrive.transports.rabbitmq.arrival import (
    Arrived,
    first_death,
    noted_moment,
    published_as,
    rejections,
    unpack,
)
from redrive.transports.rabbitmq.connection import connect
from redrive.transports.rabbitmq.content import (
    Packed,
    Sending,
    is_foreign,
    largest_header,
    origin_of,
    pack,
    text_of,
)
from redrive.transports.rabbitmq.declaring import BrokerAdministration, Known
from redrive.transports.rabbitmq.landing import Landing
from redrive.transports.rabbitmq.line import Line
from redrive.transports.rabbitmq.note import Note, other_queue
from redrive.transports.rabbitmq.publisher import Doubts, Publisher, Unroutable
from redrive.transports.rabbitmq.queue_name import check_name
from redrive.transports.rabbitmq.receiver import Receiver
from redrive.transports.rabbitmq.returning import OftenReturned, Returns
from redrive.transports.rabbitmq.settling import LOOKS
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.waiting_rooms import WaitingRooms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping
    from pathlib import Path

    from redrive.message import Message
    from redrive.transports.rabbitmq.administration import Administration
    from redrive.transports.rabbitmq.connection import Connection
    from redrive.transports.rabbitmq.receiver import Content
    from redrive.transports.rabbitmq.settling import Receipt

log = structlog.get_logger("redrive.rabbitmq")

_AGAIN = 1.0
_LARGE = 1 << 20
"""Bodies beyond it have a channel of their own: if one is too large, the broker closes the channel it came on."""


class RabbitTransport:
    """`declare`: "missing" makes queues that are not there, "never" refuses instead."""

    capabilities = Capabilities(lease_expiry=False, exact_depths=False, clean_release=False)

    def __init__(
        self,
        url: str,
        *,
        names: Names | None = None,
        topology: Topology | None = None,
        clock: Clock | None = None,
        heartbeat: float = 30.0,
        connect_timeout: float = 5.0,
        publish_timeout: float = 20.0,
        declare: str = "missing",
        persistent: bool = True,
        max_message_size: int = 128 * 2**20,
        consumer_timeout: float = 1800.0,
        tls_ca: Path | None = None,
        tls_certificate: Path | None = None,
        tls_key: Path | None = None,
        management_url: str | None = None,
    ) -> None:
        self._address = addresses.parse(url)
        self._tls = (
            addresses.security(ca=tls_ca, certificate=tls_certificate, key=tls_key)
            if self._address.secure
            else None
        )
        if declare not in {"missing", "never"}:
            raise ConfigurationError(f"declare = {declare!r} is not possible", remedy='use "missing" or "never"')
        self._clock = clock or SystemClock()
        self._heartbeat = heartbeat
        self._connect_timeout = connect_timeout
        self._publish_timeout = publish_timeout
        self._persistent = persistent
        self._max_message_size = max_message_size
        self._consumer_timeout = consumer_timeout
        shape = topology or Topology(names=names or Names())
        self.names = shape.names
        self._consuming = Line(partial(self._connect, "consumer"))
        self._publishing = Line(partial(self._connect, "publisher"))
        self._administration = BrokerAdministration(self._consuming)
        self._known = Known(self._administration, shape, declare=declare == "missing")
        self._publishers: dict[bool, Publisher] = {}
        self._doubts = Doubts()
        self._returns = Returns()
        self._opening = asyncio.Lock()
        self._receivers: set[Receiver] = set()
        self._rooms = WaitingRooms(url, management_url, security=self._tls, clock=self._clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None

    async def administration(self) -> Administration:
        """Connected: its version is known."""
        await self._administration.connected()
        return self._administration

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        target = message.queue if queue is None else queue
        check_name(target)
        kept, note = self._noted(message, target, delay=delay, trail=trail)
        await self._publish(self._place_for(target, delay), message, note, keep=kept)

    def send_at_once(self, message: Message, *, queue: str, done: Callable[[Exception | None], None]) -> bool:
        if not self._known.has(queue):
            return False
        kept, note = self._noted(message, queue, delay=0.0, trail=None)
        try:
            packed = self._packed(message, note, keep=kept)
        except RedriveError:
            return False  # `send` raises it again
        publisher = self._publishers.get(len(packed.body) > _LARGE)
        channel = None if publisher is None else publisher.open_channel
        if (
            publisher is None
            or channel is None
            or len(packed.properties) > largest_header(channel.connection.frame_max)
        ):
            return False
        faults.point("rabbitmq.before_publish")
        landing = Landing(done, partial(self._publish_again, queue, packed), self._start)
        return publisher.begin(channel, *self._address_of(queue), packed.properties, packed.body, landing)

    def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        if prefetch < 1:
            raise UsageError(f"prefetch must be at least 1, not {prefetch}")
        receiver = Receiver(queue, prefetch, partial(self._read, queue))
        return receiver.deliveries(partial(self._taps, receiver))

    async def ack(self, delivery: Delivery) -> None:
        receipt: Receipt = delivery.receipt
        receipt.tags.ack(receipt.tag)

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        receipt: Receipt = delivery.receipt
        name = self._place_for(delivery.queue, delay, retry=True)
        with receipt.tags.moving(receipt.tag):
            native = await self._goes_round(delivery, name)
            if not native:
                note = self._retry_note(delivery, message, delay=delay, trail=trail)
                await self._publish(name, message, note, keep=True)
                faults.point("rabbitmq.retry_confirmed")
        if native:
            faults.point("rabbitmq.before_reject")
            receipt.tags.reject(receipt.tag, requeue=False)
        else:
            receipt.tags.ack(receipt.tag)

    readers_are = "queue"

    async def send_to_origin(self, message: Message) -> None:
        """As its producer did: to the exchange it was first published to, and so to every queue bound there."""
        origin = published_as(message)
        if origin is None:
            raise PublishRefused(
                "nobody knows which exchange this message was first sent to",
                permanent=True,
                remedy="send it to its queue",
            )
        if not await self._exists(text_of(origin[0])):
            raise PublishRefused(
                f"exchange {text_of(origin[0])!r}, which this message was first sent to, is not there for us",
                permanent=True,
                remedy="send it to its queue",
            )
        await self._fly(*origin, self._packed(message, Note(), keep=False))

    async def readers_of_origin(self, queues: Collection[str]) -> tuple[str, ...] | None:  # noqa: ARG002  see below
        return None  # whatever is bound to the exchange of each message, which may be another for each

    async def _exists(self, exchange: str) -> bool:
        try:
            return await self._administration.exchange_exists(exchange)
        except DeclarationRefused:
            return False

    async def release(self, delivery: Delivery) -> None:
        receipt: Receipt = delivery.receipt
        if isinstance(receipt, OftenReturned) and any(each.hold(delivery) for each in self._receivers):
            return
        receipt.tags.reject(receipt.tag, requeue=True)

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        """Ready ones as the broker tells them; leased ones of this process: it tells nobody about others'.
        Unreachable also for a queue that does not answer: it is not empty.
        """
        topology = self._known.topology
        found: dict[str, QueueDepth] = {}
        await self._administration.connected()
        wanted = await self._names_beside(queues) if queues else set(self._known.names)
        for name in sorted(wanted):
            looked = await self._administration.look(name)
            if looked is not None and looked.silent:
                raise not_known(name)
            home = topology.home_of_waiting(name)
            ready = 0 if looked is None else looked.messages
            leased = sum(receiver.unsettled(name) for receiver in self._receivers)
            depth = QueueDepth(ready, 0, leased) if home is None else QueueDepth(0, ready, 0)
            told = name if home is None else self.names.retry_of(home)
            if depth.total:
                found[told] = depth.plus(found.get(told))
        return found

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for receiver in list(self._receivers):
            with suppress(RedriveError):
                await receiver.give_back()
        await self._consuming.close()
        await self._publishing.close()

    # Publishing.

    def _packed(self, message: Message, note: Note, *, keep: bool) -> Packed:
        if len(message.body or b"") > self._max_message_size:
            raise PublishRefused(
                f"a body of {len(message.body or b'')} bytes is more than the broker takes",
                permanent=True,
                remedy=f"max_message_size is {self._max_message_size}: raise it here and on the broker",
            )
        how = Sending(
            user=self._address.user,
            envelope=self._known.topology.writes_envelope,
            persistent=self._persistent or keep,
            keep=keep,
        )
        return pack(message, note, how)

    async def _publish(self, name: str, message: Message, note: Note, *, keep: bool) -> None:
        packed = self._packed(message, note, keep=keep)
        try:
            await self._publish_packed(name, packed)
        except Unroutable:
            await self._publish_again(name, packed)

    async def _publish_again(self, name: str, packed: Packed) -> None:
        self._known.forget(name)  # somebody has deleted it since
        await self._publish_packed(name, packed)

    async def _publish_packed(self, name: str, packed: Packed) -> None:
        await self._known.ensure(name)
        await self._fly(*self._address_of(name), packed)

    def _address_of(self, name: str) -> tuple[bytes, bytes]:
        route = self._known.topology.route(name)
        return route.exchange.encode(), (route.routing_key or name).encode()

    async def _fly(self, exchange: bytes, routing_key: bytes, packed: Packed) -> None:
        publisher = await self._publisher(large=len(packed.body) > _LARGE)
        connection = await self._publishing.connection()
        faults.point("rabbitmq.before_publish")
        fits = largest_header(connection.frame_max)
        await publisher.publish(exchange, routing_key, packed.properties, packed.body, fits=fits)
        faults.point("rabbitmq.confirmed")

    async def _publisher(self, *, large: bool) -> Publisher:
        current = self._publishers.get(large)
        if current is not None and current.alive:
            return current
        async with self._opening:
            current = self._publishers.get(large)
            if current is None or not current.alive:
                current = Publisher(self._publish_timeout, self._doubts)
                await current.open(await self._publishing.connection())
                self._publishers[large] = current
            return current

    def _noted(self, message: Message, target: str, *, delay: float, trail: bytes | None) -> tuple[bool, Note]:
        """Whether it lies there as evidence, and its note: none if it goes out as it came."""
        kept = delay > 0 or self.names.home_of_dead(target) is not None
        noted = kept or trail or not is_foreign(message)
        return kept, self._note(message, target, delay=delay, trail=trail) if noted else Note()

    def _note(self, message: Message, target: str, *, delay: float, trail: bytes | None) -> Note:
        now = microseconds(self._clock.now())
        return Note(
            identity=f"rabbitmq:{new_id()}",
            queue=other_queue(message.queue, target),
            overlay=message.overlay,
            trail=trail,
            put_at=now,
            due_at=self._due(target, now, delay),
        )

    def _retry_note(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> Note:
        now = microseconds(self._clock.now())
        first = delivery.first_attempt_at
        return Note(
            identity=delivery.identity,
            queue=other_queue(message.queue, delivery.queue),
            overlay=message.overlay,
            attempt=delivery.attempt + 1,
            first_attempt_at=now if first is None else microseconds(first),
            trail=trail,
            put_at=now,
            due_at=self._due(delivery.queue, now, delay),
        )

    def _due(self, queue: str, now: int, delay: float) -> int | None:
        """When it may be handed out. Out of the broker's loop it comes when the queue's own TTL is over, which may
        be another than the settings' where somebody else has made the queue.
        """
        if delay <= 0:
            return None
        topology = self._known.topology
        loops = topology.rejects and topology.waiting(queue, delay).name == self.names.retry_of(queue)
        return now if loops else now + round(delay * 1e6)

    async def _goes_round(self, delivery: Delivery, name: str) -> bool:
        """Whether the broker's own loop may take it: the queue dead-letters at least once, to where `name` is, and
        the message comes back by the key it has. Else it is published there, which is as safe on any queue.
        """
        if not (self._known.topology.rejects and name == self.names.retry_of(delivery.queue)):
            return False
        origin = origin_of(delivery.message)
        if origin is not None and origin[1] != delivery.queue.encode("utf-8", "surrogatepass"):
            return False
        if any(name in {"CC", "BCC"} for name, _ in delivery.message.headers):
            return False  # dead-lettered, it would go to all of those queues again
        return await self._known.loops(delivery.queue)

    def _place_for(self, queue: str, delay: float, *, retry: bool = False) -> str:
        topology = self._known.topology
        if delay <= 0:
            return topology.consumed(queue)[-1] if retry else queue
        name = topology.waiting(queue, delay).name
        self._rooms.used(name)
        return name

    # Receiving.

    async def _taps(self, receiver: Receiver) -> AsyncGenerator[tuple[Connection, str]]:
        self._begin(receiver)
        for name in self._known.topology.consumed(receiver.queue):
            self._known.forget(name)  # the last consumer may have ended because somebody deleted it
            try:
                await self._known.ensure(name)
            except PublishRefused as refused:
                raise Unreachable(str(refused), remedy=refused.remedy) from None
            yield await self._consuming.connection(), name

    def _begin(self, receiver: Receiver) -> None:
        """Known from its first step on: one that is never asked for a delivery has nothing to give back."""
        self._receivers = {each for each in self._receivers if not each.finished} | {receiver}
        if self._watching is None and self._consumer_timeout:
            self._watching = asyncio.create_task(self._watch())

    def _read(self, queue: str, name: str, receipt: Receipt, content: Content) -> Delivery | None:
        redelivered, origin, properties, body = content
        if redelivered:
            receipt = self._returns.weighed(receipt, properties, name)
        arrived = Arrived(queue, origin, properties, body, self._clock.now())
        message, note, named = unpack(arrived)
        if note is not None and note.identity:
            identity, alike = _at(note.identity, queue), None
        elif named:
            identity, alike = _at(self._identity(name, message), queue), None
        else:  # two alike may be two messages: each delivery is its own (G1 before G3)
            alike = f"rabbitmq:{self._address.vhost}:{name}:{message.id}"
            identity = _at(f"{alike}:{receipt.tags.generation}.{receipt.tag}", queue)
        if note is None:
            return Delivery(
                message=message,
                queue=queue,
                identity=identity,
                alike=alike,
                attempt=self._attempt(arrived, message, 1),
                redelivered=redelivered,
                first_attempt_at=None,
                trail=None,
                receipt=receipt,
            )
        delivery = Delivery(
            message=message,
            queue=queue,
            identity=identity,
            alike=alike,
            attempt=self._attempt(arrived, message, note.attempt),
            redelivered=redelivered,
            first_attempt_at=None if note.first_attempt_at is None else noted_moment(note.first_attempt_at),
            trail=note.trail,
            receipt=receipt,
            due_since=None if note.put_at is None else noted_moment(note.due_at or note.put_at),
        )
        if note.due_at is not None and note.due_at > microseconds(arrived.now):
            self._start(self._put_off(delivery, note))
            return None
        return delivery

    def _attempt(self, arrived: Arrived, message: Message, noted: int) -> int:
        """The number of the attempt to come, as our note has it and as others have counted: in S3's envelope, or
        in what the broker wrote down since we published it.
        """
        topology = self._known.topology
        if topology.writes_envelope:
            return max(noted, 1 + message.retry_count)
        return noted + rejections(arrived.properties, arrived.queue) if topology.rejects else noted

    def _identity(self, name: str, message: Message) -> str:
        """Of a message of somebody else's that has an id."""
        vhost, own, death = self._address.vhost, message.id, first_death(message) if message.headers else ""
        parts = f"{len(vhost)}:{vhost}{len(name)}:{name}{len(own)}:{own}{len(death)}:{death}"
        held = parts.encode("utf-8", "surrogatepass") + (message.body or b"")
        return f"rabbitmq:{hashlib.sha256(held).hexdigest()}"

    async def _put_off(self, delivery: Delivery, note: Note) -> None:
        """It came before its time: a delay longer than a queue can wait, or a clock that differs. It stays in hand
        until it has found its place, or its time has come.
        """
        receipt: Receipt = delivery.receipt
        while receipt.tags.holds(receipt.tag):
            remaining = (note.due_at or 0) / 1e6 - self._clock.now().timestamp()
            if remaining <= 0:
                return await self.release(delivery)
            try:
                place = self._place_for(delivery.queue, remaining)
                await self._publish(place, delivery.message, note, keep=True)
                return await self.ack(delivery)
            except RedriveError:
                await self._clock.sleep(min(_AGAIN, remaining))  # no hot loop
        return None

    def _start(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """The broker closes the channel of whoever keeps a delivery for too long (R13): better told before."""
        while True:
            await asyncio.sleep(self._consumer_timeout / LOOKS)
            for receiver in list(self._receivers):
                for name, late in receiver.late():
                    log.warning(
                        "a delivery is near the broker's consumer timeout",
                        queue=name,
                        deliveries=late,
                        consumer_timeout=self._consumer_timeout,
                    )

    async def _names_beside(self, queues: Collection[str]) -> set[str]:
        topology = self._known.topology
        beside = (
            (queue,)
            if self.names.home_of_dead(queue) is not None  # has neither retries nor dead letters of its own
            else (*topology.consumed(queue), self.names.dead_of(queue), queue)
            for queue in queues
        )
        return {name for names in beside for name in names} | await self._rooms.of(set(queues), topology)

    async def _connect(self, what: str) -> Connection:
        return await connect(
            self._address,
            tls=self._tls,
            name=f"redrive {what} {socket.gethostname()}:{os.getpid()}",
            heartbeat=self._heartbeat,
            within=self._connect_timeout,
        )


def _at(identity: str, queue: str) -> str:
    """What is copied into another queue, by whatever program, is another message there."""
    place = f"@{queue}"
    return identity if identity.endswith(place) else f"{identity}{place}"
