"""Azure Service Bus. A message that replaces another is accepted by the broker before the other is completed.

A queue is one of Service Bus, where what fails is scheduled in the same queue and seen as its retry queue; or a
subscription, which has a queue beside it for that. See docs/decisions/0013-service-bus.md.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import AzureError
from azure.servicebus import NEXT_AVAILABLE_SESSION
from msgspec.structs import replace

from redrive import faults
from redrive.clock import Clock, SystemClock
from redrive.control import REDRIVE_ID
from redrive.epoch import EPOCH, microseconds, moment
from redrive.errors import PublishRefused, TrailTooLong, Unreachable, UsageError
from redrive.headers import header
from redrive.servicebus_origin import origin_of
from redrive.servicebus_paths import DEAD_LETTERS, parse
from redrive.transports import Capabilities, Delivery, Landing, LostLeases, Names, QueueDepth
from redrive.transports.servicebus import address as addresses
from redrive.transports.servicebus import last_words, places, wire_types
from redrive.transports.servicebus.access import Access
from redrive.transports.servicebus.administration import Administration
from redrive.transports.servicebus.batches import Batches
from redrive.transports.servicebus.client_errors import NoSuchEntity, TooLarge
from redrive.transports.servicebus.content import is_foreign, pack, session_of, unpack
from redrive.transports.servicebus.links import POLL, Link, Receipt
from redrive.transports.servicebus.note import Note
from redrive.transports.servicebus.patience import Patience, within
from redrive.transports.servicebus.readers import Readers
from redrive.transports.servicebus.receiver import Fetching, FromPlace, Receiver
from redrive.transports.servicebus.sessions import FREE_WITHIN, FromSessions, SessionLink
from redrive.transports.servicebus.times import enqueued

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping
    from datetime import datetime

    from azure.servicebus import ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

    from redrive.message import Message
    from redrive.servicebus_paths import EntityPath
    from redrive.transports.servicebus.counts import Count, Counts
    from redrive.transports.servicebus.outgoing import Outgoing
    from redrive.transports.servicebus.topics import Topics

_BY_THE_TOPIC = (
    "`redrive setup` makes the queue, if a worker of Redrive's reads the subscription; --original-topic sends to "
    "the topic, for all of its subscriptions that have no rule against it"
)
_SPARE = 64
"""Bytes that a trail's length and its place in a message may take beside its own."""


class ServiceBusTransport:
    """`sessions`: the queues and subscriptions that require them. `counts` and `topics`: in the place of the
    administration's; without `topics` nobody can tell who would get what is sent to a topic. The others: see
    `Access`.
    """

    readers_are = "subscription"
    capabilities = Capabilities(ordered=False, clean_release=False, exact_depths=False, by_requests=True)

    def __init__(
        self,
        url: str,
        *,
        names: Names | None = None,
        clock: Clock | None = None,
        sessions: Collection[str] = (),
        counts: Counts | None = None,
        topics: Topics | None = None,
        connection_string: str = "",
        administration: str = "",
        ca: str = "",
        patience: Patience | None = None,
    ) -> None:
        wire_types.install()
        self.names = names or Names()
        self.lost = LostLeases()
        self._patience = patience or Patience()
        self._address = addresses.parse(url, connection_string)
        self._access = Access(self._address, administration=administration, ca=ca, attempt=self._patience.attempt)
        self.entities = Administration(self._access)
        self._counts = counts or self.entities
        self._sessions = frozenset(name.casefold() for name in sessions)
        self._clock = clock or SystemClock()
        self._readers = Readers(topics or (self.entities if counts is None else None), self._clock)
        self._client: ServiceBusClient | None = None
        self._batches: dict[str, Batches] = {}
        self._receivers: list[Receiver] = []
        self._used: set[str] = set()
        self._closed = False

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        target = message.queue if queue is None else queue
        self._used.add(self.names.home_of_dead(target) or target)
        foreign = is_foreign(message) and trail is None and delay <= 0
        place = places.sendable(target, self.names)
        note = None if foreign else _note(message, place, trail)
        try:
            await self._publish(place, message, note, delay=delay, is_redrive=trail is None)
        except NoSuchEntity:
            if not foreign or place == target:
                raise
            await self._send_to_subscription(parse(target), message, place)

    async def send_to_origin(self, message: Message) -> None:
        """To the queue it came from, or to the topic, marked for the one subscription that it came from."""
        origin = origin_of(message)
        if origin is None:
            raise PublishRefused(
                "nobody knows which queue or topic this message was first sent to",
                permanent=True,
                remedy="send it to its queue",
            )
        where = parse(origin.entity)
        if not where.subscription:
            await self._publish(self.names.home_of_dead(where.name) or where.name, message, None)
            return
        await self._readers.check(where)
        await self._publish(where.name, message, None, only=where.subscription)

    async def landing_of(self, queue: str) -> Landing | None:
        self._check_open()
        where, place = parse(queue), places.sendable(queue, self.names)
        if place == queue or not where.subscription:
            return None
        if await self._counts.of(place) is not None:
            return Landing(place=place)
        if await self._readers.is_alone(where):
            return Landing(place=where.name, readers=(where.subscription,))
        readers = await self._readers.of(where)
        return Landing(place=place, readers=readers, impossible=_not_alone(where, place, readers))

    async def readers_of_origin(self, queues: Collection[str]) -> tuple[str, ...] | None:
        """The subscriptions that get what is marked for these, or may: it can depend on the message."""
        self._check_open()
        readers: set[str] = set()
        for queue in queues:
            where = parse(queue)
            if not where.subscription:
                readers.add(where.name)
                continue
            getting = await self._readers.of(where)
            if getting is None:
                return None
            readers.update(getting)
        return tuple(sorted(readers))

    def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        if prefetch < 1:
            raise UsageError(f"prefetch must be at least 1, not {prefetch}")
        return self._deliveries(queue, prefetch)

    async def ack(self, delivery: Delivery) -> None:
        receipt: Receipt = delivery.receipt
        receipt.claim()
        await receipt.link.complete(receipt)

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        """Renewed first: a copy of what somebody else has by now would be one too many."""
        receipt: Receipt = delivery.receipt
        receipt.claim()
        try:
            if not receipt.replaced:
                await receipt.link.check(receipt)
                place = places.retries_of(delivery.queue, self.names)
                note = self._retry_note(delivery, message, place, trail)
                await self._publish(place, message, note, delay=delay, is_redrive=False)
                receipt.replaced = True
            faults.point("servicebus.retry_confirmed")
        except BaseException:
            receipt.unclaim()
            raise
        await receipt.link.complete(receipt)

    def has_native_dead_letters(self, queue: str) -> bool:
        return places.has_native_dead(queue, self.names)

    async def dead_letter(self, delivery: Delivery, *, reason: str, text: str, trail: bytes) -> None:
        """One settlement, which the broker makes or does not: there is no moment with two messages or none."""
        receipt: Receipt = delivery.receipt
        described = last_words.description(text, trail)
        receipt.claim()
        await receipt.link.dead_letter(receipt, last_words.reason(reason), described)

    async def release(self, delivery: Delivery) -> None:
        receipt: Receipt = delivery.receipt
        receipt.claim()
        await receipt.link.abandon(receipt)

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        """What waits for its time is told as the retry queue's, wherever it lies."""
        self._check_open()
        found: dict[str, QueueDepth] = {}
        for queue in sorted(queues or self._used):
            found |= await self._depths_of(queue)  # a queue and its subqueue may both be asked for
        return {name: depth for name, depth in found.items() if depth.total}

    async def close(self) -> None:
        self._closed = True
        receivers, self._receivers = self._receivers, []
        await asyncio.gather(*(receiver.close() for receiver in receivers))
        batches, self._batches = list(self._batches.values()), {}
        client, self._client = self._client, None
        await asyncio.gather(*(each.close() for each in batches))
        if client is not None:
            with suppress(AzureError, OSError):
                await within(self._patience.end, client.close())
        await self._counts.close()
        await self.entities.close()
        await self._access.close()

    # Publishing.

    async def _send_to_subscription(self, where: EntityPath, message: Message, beside: str) -> None:
        """Of somebody else's consumer, without a queue beside it: by the topic, if nobody else gets it there."""
        if not await self._readers.is_alone(where):
            why = _not_alone(where, beside, await self._readers.of(where))
            raise PublishRefused(why, permanent=False, remedy=_BY_THE_TOPIC)
        await self._publish(where.name, message, None, only=where.subscription)

    async def _publish(
        self,
        place: str,
        message: Message,
        note: Note | None,
        *,
        delay: float = 0.0,
        only: str | None = None,
        is_redrive: bool = True,
    ) -> None:
        """`is_redrive`: if it has a redrive's id, it is that redrive, and no later copy of what was redriven."""
        self._check_open()
        _check_sendable(place)
        self._check_session(place, message)
        due = self._clock.now() + timedelta(seconds=delay) if delay > 0 else None
        redrive_id = _redrive_id(message) if is_redrive else None
        packed = _scheduled(pack(message, note, only=only, redrive_id=redrive_id), due)
        faults.point("servicebus.before_send")
        try:
            await self._batches_to(place).send(packed)
        except TooLarge:
            if note is None:
                raise
            smaller = pack(message, await self._smaller(place, message, note), redrive_id=redrive_id)
            await self._batches_to(place).send(_scheduled(smaller, due))
        faults.point("servicebus.sent")

    async def _smaller(self, place: str, message: Message, note: Note) -> Note:
        """The note without the last error's text. TrailTooLong if it is the trail that does not fit."""
        if note.trail:
            room = await self._batches_to(place).room_beside(pack(message, replace(note, trail=b"")))
            raise TrailTooLong(max(room - _SPARE, 0))
        if note.overlay is None or note.overlay.error is None:
            raise TooLarge(place)
        return replace(note, overlay=replace(note.overlay, error=None))

    def _batches_to(self, place: str) -> Batches:
        self._check_open()
        if place not in self._batches:
            make = partial(self._sdk_sender, place)
            self._batches[place] = Batches(place, make, self._patience)
        return self._batches[place]

    def _sdk_sender(self, place: str) -> ServiceBusSender:
        return self._connected().get_queue_sender(place)  # a topic's is the same by another name

    def _check_session(self, place: str, message: Message) -> None:
        if place.casefold() in self._sessions and session_of(message.key) is None:
            raise PublishRefused(
                f"{place!r} requires sessions, and this message has no key that could be one",
                permanent=True,
                remedy="send it with a key: text of 1 to 128 characters",
            )

    def _retry_note(self, delivery: Delivery, message: Message, place: str, trail: bytes) -> Note:
        return replace(
            _note(message, place, trail),
            identity=delivery.identity,
            attempt=delivery.attempt + 1,
            first_attempt_at=microseconds(delivery.first_attempt_at or self._clock.now()),
        )

    # Receiving.

    async def _deliveries(self, queue: str, prefetch: int) -> AsyncGenerator[Delivery]:
        self._check_open()
        self._used.add(self.names.home_of_dead(queue) or queue)
        from_where = [self._fetching(name, prefetch) for name in places.receivable(queue, self.names)]
        receiver = Receiver(queue, prefetch, from_where, self._read, self._patience)
        self._receivers = [each for each in self._receivers if not each.finished]
        self._receivers.append(receiver)
        deliveries = receiver.deliveries()
        try:
            async for delivery in deliveries:
                yield delivery
        finally:
            await deliveries.aclose()

    def _fetching(self, entity: str, prefetch: int) -> Fetching:
        if entity.casefold() in self._sessions:
            return FromSessions(partial(self._session_link, entity), prefetch)
        return FromPlace(partial(self._link, entity), prefetch)

    def _link(self, entity: str, changed: Callable[[], None]) -> Link:
        return Link(entity, self._sdk_receiver(entity), changed, self.lost, patience=self._patience)

    def _session_link(self, entity: str, changed: Callable[[], None]) -> SessionLink:
        receiver = self._sdk_receiver(entity, in_session=True)
        return SessionLink(entity, receiver, changed, self.lost, patience=self._patience)

    def _sdk_receiver(self, entity: str, *, in_session: bool = False) -> ServiceBusReceiver:
        where = parse(entity)
        given: dict[str, Any] = {"sub_queue": places.subqueue_of(where), "socket_timeout": POLL}
        if in_session:
            given |= {"session_id": NEXT_AVAILABLE_SESSION, "max_wait_time": FREE_WITHIN}
        if where.subscription:
            return self._connected().get_subscription_receiver(where.name, where.subscription, **given)
        return self._connected().get_queue_receiver(where.name, **given)

    def _read(self, queue: str, receipt: Receipt) -> Delivery:
        received, entity = receipt.message, receipt.link.entity
        message, note = unpack(received, entity)
        if note is None and entity != queue:
            message = replace(message, queue=queue)
        # Casefolded: Service Bus takes `Orders` for `orders`, and one message must not be two letters.
        place = f"{self._address.host}/{entity}/{received.sequence_number}".casefold()
        return Delivery(
            message=message,
            queue=queue,
            identity=place if note is None or not note.identity else note.identity,
            attempt=1 if note is None else note.attempt,
            redelivered=bool(received.delivery_count),
            first_attempt_at=None if note is None else _moment(note.first_attempt_at),
            trail=_trail(received, entity, note),
            receipt=receipt,
            due_since=enqueued(received),
        )

    # The rest.

    async def _depths_of(self, queue: str) -> dict[str, QueueDepth]:
        if places.is_read_elsewhere(queue, self.names):
            return await self._elsewhere(queue)
        retries, dead = places.retries_of(queue, self.names), self.names.dead_of(queue)
        found = await self._depth_of(queue, told_as=self.names.retry_of(queue))
        if retries != queue and (count := await self._counts.of(retries)) is not None:
            leased = self._leased(retries, count)
            waiting = QueueDepth(count.active - leased, count.scheduled, leased)
            found[self.names.retry_of(queue)] = waiting.plus(found.get(self.names.retry_of(queue)))
        if places.is_read_elsewhere(dead, self.names):
            return found | await self._elsewhere(dead)
        return found | await self._depth_of(dead, told_as=self.names.retry_of(dead))

    async def _elsewhere(self, dead: str) -> dict[str, QueueDepth]:
        """Of dead letters of a subscription, by the name that they have beside all other queues' dead letters."""
        depth = QueueDepth(0, 0, 0)
        for entity in places.receivable(dead, self.names):
            if (count := await self._counts.of(entity)) is not None:
                leased = self._leased(entity, count)
                depth = depth.plus(QueueDepth(count.active - leased, count.scheduled, leased))
        return {dead: depth}

    async def _depth_of(self, name: str, *, told_as: str) -> dict[str, QueueDepth]:
        """`told_as`: the queue that its scheduled messages are seen in."""
        count = await self._counts.of(name)
        if count is None:
            return {}
        leased = self._leased(name, count)
        return {
            name: QueueDepth(count.active - leased, 0, leased),
            told_as: QueueDepth(0, count.scheduled, 0),
            f"{name}/{DEAD_LETTERS}": QueueDepth(count.dead_lettered, 0, 0),
        }

    def _leased(self, name: str, count: Count) -> int:
        links = [link for receiver in self._receivers for link in receiver.links if link.entity == name]
        return min(sum(len(link.held) for link in links), count.active)

    def _connected(self) -> ServiceBusClient:
        if self._client is None:
            self._client = self._access.messages()
        return self._client

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("this transport is closed")


def _note(message: Message, place: str, trail: bytes | None) -> Note:
    own = None if message.queue == place else message.queue.encode("utf-8", "surrogatepass")
    return Note(place=place, queue=own, overlay=message.overlay, trail=trail)


def _trail(received: ServiceBusReceivedMessage, entity: str, note: Note | None) -> bytes | None:
    """The one that it was dead-lettered with has one failure more than the one that it was sent with."""
    try:
        described = received.dead_letter_error_description if parse(entity).subqueue else None
    except UnicodeDecodeError:  # somebody's own, in bytes
        described = None
    last = last_words.trail_in(described or "")
    return last or (None if note is None else note.trail)


def _not_alone(where: EntityPath, beside: str, readers: tuple[str, ...] | None) -> str:
    by_topic = f"what goes to topic {where.name!r} for its subscription {where.subscription!r}"
    if readers is None:
        return f"there is no queue {beside!r}, and nobody can tell who else would get {by_topic}"
    named = ", ".join(readers) or "none of its subscriptions"
    return f"there is no queue {beside!r}, and {by_topic} would not reach that one alone, but {named}"


def _check_sendable(place: str) -> None:
    if parse(place).subqueue:
        raise PublishRefused(
            f"nothing can be sent to {place!r}: Service Bus alone puts messages there",
            permanent=True,
            remedy="send to a queue",
        )


def _scheduled(packed: Outgoing, due: datetime | None) -> Outgoing:
    if due is not None:
        packed.schedule(due)
    return packed


def _redrive_id(message: Message) -> str | None:
    """As MessageId it lets duplicate detection recognise the same redrive, sent again by whoever took it over."""
    found = header(message.headers, REDRIVE_ID)
    return None if found is None else str(found)


def _moment(since: int | None) -> datetime | None:
    if since is None:
        return None
    try:
        return moment(since)
    except OverflowError:
        return EPOCH
