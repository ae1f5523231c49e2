"""Kafka. A consumer group commits only up to where everything is done, and a record that replaces another is
durable on all in-sync replicas before the other is done.

A topic is a queue. What fails waits in retry topics, which the consumer of the queue reads beside it; a record
there says which consumer group it is for. What is redriven goes there too: only the group in which it failed
reads it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from msgspec.structs import replace

from redrive import faults
from redrive.clock import Clock, SystemClock
from redrive.control import carries_ticket
from redrive.epoch import microseconds
from redrive.errors import ConfigurationError, PublishRefused, RedriveError, Unreachable, UsageError
from redrive.kafka_origin import origin_of
from redrive.transports import Capabilities, Delivery, Names, QueueDepth
from redrive.transports.kafka import address as addresses
from redrive.transports.kafka.administration import Administration
from redrive.transports.kafka.asking import AskingClient
from redrive.transports.kafka.client_errors import of_settings
from redrive.transports.kafka.lags import Lags
from redrive.transports.kafka.note import Note
from redrive.transports.kafka.producer import RecordProducer
from redrive.transports.kafka.record import Arrived, noted_moment, pack, unpack
from redrive.transports.kafka.retry_topics import RetryTopics
from redrive.transports.kafka.subscription import Subscription
from redrive.transports.kafka.topics import Topic, TopicPlan, Topics, check_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping
    from datetime import datetime

    from confluent_kafka.admin import AdminClient

    from redrive.message import Message
    from redrive.transports.kafka.assigned import Receipt
    from redrive.transports.kafka.subscription import Waiting

_DEAD = "dead-letters"


class KafkaTransport:
    """`group` is the consumer group of the queues. Topics of dead letters are read by a group of their own.
    `retry_topics`: see `RetryTopics`; with "blocking" a partition waits behind its retries. `declare`: "missing"
    makes topics that are not there, "never" refuses instead. `client` goes to librdkafka.
    """

    capabilities = Capabilities(lease_expiry=False, exact_depths=False, competing=False)

    def __init__(
        self,
        url: str,
        *,
        names: Names | None = None,
        group: str = "redrive",
        clock: Clock | None = None,
        declare: str = "missing",
        plan: TopicPlan | None = None,
        retry_topics: str = "per-delay",
        start: str = "earliest",
        connect_timeout: float = 10.0,
        publish_timeout: float = 20.0,
        revoke_grace: float = 5.0,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        if declare not in {"missing", "never"}:
            raise ConfigurationError(f"declare = {declare!r} is not possible", remedy='use "missing" or "never"')
        self.names = names or Names()
        self._settings = addresses.parse(url).client_settings(client or {}) | {
            "client.id": f"redrive-{socket.gethostname()}-{os.getpid()}",
        }
        self._group = group
        self._clock = clock or SystemClock()
        self._plan = plan or TopicPlan()
        self._declare = declare == "missing"
        self._retries = RetryTopics(self.names, retry_topics)
        if self._retries.blocking:
            self.capabilities = replace(self.capabilities, durable_retries=False, side_by_side=False)
        self._from_latest = start == "latest"
        self._connect_timeout = connect_timeout
        self._publish_timeout = publish_timeout
        self._revoke_grace = revoke_grace
        self._closed = False
        self._admin: AdminClient | None = None
        self._topics: Topics | None = None
        self._producer: RecordProducer | None = None
        self._lags: Lags | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._used: set[str] = set()
        self._cluster = ""

    def capabilities_of(self, queue: str) -> Capabilities:
        """Dead letters are not retried there: they come side by side."""
        dead = self.names.home_of_dead(queue) is not None
        return replace(self.capabilities, side_by_side=True) if dead else self.capabilities

    async def send(
        self, message: Message, *, queue: str | None = None, delay: float = 0.0, trail: bytes | None = None
    ) -> None:
        target = message.queue if queue is None else queue
        check_name(target)
        self._used.add(self.names.home_of_dead(target) or target)
        place = self._place_of(message, target, delay)
        note = self._note(message, place, target, delay=delay, trail=trail)
        await self._publish(place, message, note)

    def send_at_once(self, message: Message, *, queue: str, done: Callable[[Exception | None], None]) -> bool:
        place = self._place_of(message, queue, 0.0)
        topic = None if self._topics is None else self._topics.known(place)
        if topic is None or self._producer is None or self._closed:
            return False
        try:
            record = pack(message, self._note(message, place, queue, delay=0.0, trail=None), fits=topic.max_bytes)
            self._producer.begin(place, record, done, partition=_partition(message, topic))
        except RedriveError:
            return False  # `send` raises it again
        return True

    readers_are = "consumer group"

    async def send_to_origin(self, message: Message) -> None:
        """To its first topic, which every group of that topic reads."""
        origin = origin_of(message)
        if origin is None:
            raise PublishRefused(
                "nobody knows which topic this message was first sent to",
                permanent=True,
                remedy="send it to its queue",
            )
        home = self.names.home_of_dead(origin.topic)  # collected: its producer sent it to the queue
        await self._publish(home or origin.topic, message, None)

    async def readers_of_origin(self, queues: Collection[str]) -> tuple[str, ...] | None:
        """Consumer groups that have read these topics."""
        self._check_open()
        return await self.administration().readers(set(queues))

    def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        if prefetch < 1:
            raise UsageError(f"prefetch must be at least 1, not {prefetch}")
        return self._deliveries(queue, prefetch)

    async def ack(self, delivery: Delivery) -> None:
        receipt: Receipt = delivery.receipt
        receipt.claim()
        receipt.subscription.finish(receipt)

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:
        receipt: Receipt = delivery.receipt
        receipt.claim()
        if self._retries.blocking:
            now = self._clock.now()
            due = microseconds(now) + max(round(delay * 1e6), 0)
            receipt.subscription.hold(receipt, _next_attempt(delivery, message, now, due=due, trail=trail), due)
            return
        try:
            place = self._retries.topic(delivery.queue, delay)
            note = self._retry_note(delivery, message, place, delay=delay, trail=trail)
            await self._publish(place, message, note)
        except BaseException:
            receipt.unclaim()
            raise
        faults.point("kafka.retry_confirmed")
        receipt.subscription.finish(receipt)

    async def release(self, delivery: Delivery) -> None:
        receipt: Receipt = delivery.receipt
        receipt.claim()
        receipt.subscription.give_back(receipt)

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        """Ready ones are behind the consumer group's commits; leased ones are those of this process."""
        self._check_open()
        there = await self._known_topics().names()
        found: dict[str, QueueDepth] = {}
        for queue in sorted(queues or self._used):
            for told, depth in (await self._depths_of(queue, there)).items():
                if depth.total:
                    found[told] = depth.plus(found.get(told))
        return found

    async def close(self) -> None:
        self._closed = True
        subscriptions, self._subscriptions = list(self._subscriptions.values()), {}
        await asyncio.gather(*(each.close() for each in subscriptions))
        self._admin = self._topics = self._lags = None  # their connections end with them
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()

    # For those who set up topics, or only look.

    def administration(self) -> Administration:
        self._check_open()
        return Administration(self._asking(), within=self._connect_timeout)

    @property
    def group(self) -> str:
        """The consumer group of the queues."""
        return self._group

    def group_of(self, topic: str) -> str:
        """The consumer group that reads this topic for us."""
        return f"{self._group}-{_DEAD}" if self.names.home_of_dead(topic) is not None else self._group

    def retry_topics(self, queue: str) -> tuple[str, ...]:
        """All that there could be for this queue."""
        return self._retries.all_of(queue)

    # Publishing.

    async def _publish(self, place: str, message: Message, note: Note | None) -> None:
        try:
            await self._publish_once(place, message, note)
        except PublishRefused:
            # The topic was deleted or changed, or it was a neighbour in the same batch that is too large.
            self._known_topics().forget(place)
            await self._publish_once(place, message, note)

    async def _publish_once(self, place: str, message: Message, note: Note | None) -> None:
        topic = await self._ensured(place)
        record = pack(message, note, fits=topic.max_bytes)
        faults.point("kafka.before_produce")
        await self._publisher().send(place, record, partition=_partition(message, topic))
        faults.point("kafka.produced")

    async def _ensured(self, place: str) -> Topic:
        self._check_open()
        found = self._known_topics().known(place)
        if found is not None:
            return found
        home = self._home_of(place)
        found = await self._known_topics().ensured(place, home=home)
        if home is not None and (reading := self._subscriptions.get(home)) is not None:
            reading.look_for_topics()
        return found

    def _place_of(self, message: Message, target: str, delay: float) -> str:
        """What is redriven goes where only its own group reads; what was collected, where others expect it."""
        if delay <= 0 and not (carries_ticket(message.headers) and self._is_of_our_own(message, target)):
            return target
        return self._retries.topic(target, delay)

    def _is_of_our_own(self, message: Message, target: str) -> bool:
        origin = origin_of(message)
        return origin is None or origin.topic == target or self.names.home_of_dead(origin.topic) is None

    def _home_of(self, place: str) -> str | None:
        """The queue that a topic of retries or of dead letters belongs to."""
        dead = self.names.home_of_dead(place)
        if dead is not None:
            return dead
        return next((queue for queue in self._used if place in self._retries.all_of(queue)), None)

    def _note(
        self, message: Message, place: str, target: str, *, delay: float, trail: bytes | None
    ) -> Note | None:
        if place == target and message.properties is not None and trail is None:
            return None  # somebody else's: it goes out as it came
        now = microseconds(self._clock.now())
        return Note(
            place=place,
            group="" if place == target else self._group,
            queue=_other_queue(message.queue, place),
            overlay=message.overlay,
            trail=trail,
            put_at=now,
            due_at=now + round(delay * 1e6) if delay > 0 else None,
        )

    def _retry_note(self, delivery: Delivery, message: Message, place: str, *, delay: float, trail: bytes) -> Note:
        now = microseconds(self._clock.now())
        first = delivery.first_attempt_at
        return Note(
            place=place,
            group=self._group,
            identity=delivery.identity,
            queue=_other_queue(message.queue, place),
            overlay=message.overlay,
            attempt=delivery.attempt + 1,
            first_attempt_at=now if first is None else microseconds(first),
            trail=trail,
            put_at=now,
            due_at=now + round(delay * 1e6) if delay > 0 else None,
        )

    # Receiving.

    async def _deliveries(self, queue: str, prefetch: int) -> AsyncGenerator[Delivery]:
        subscription = await self._subscribed(queue, prefetch)
        taker = subscription.join(prefetch)
        try:
            while True:
                if (delivery := subscription.take(taker)) is not None:
                    yield delivery
                elif not await subscription.wait(taker):
                    return
        finally:
            subscription.leave(taker)

    async def _subscribed(self, queue: str, prefetch: int) -> Subscription:
        self._check_open()
        check_name(queue)
        dead = self.names.home_of_dead(queue) is not None
        if not dead:
            self._used.add(queue)
        self._cluster = self._cluster or await self._known_topics().cluster()
        await self._ensured(queue)
        self._check_open()
        found = self._subscriptions.get(queue)
        if found is None:
            patterns = () if dead else (self._retries.pattern(queue),)
            found = self._subscriptions[queue] = Subscription(
                queue,
                patterns,
                self._consumer_settings(queue),
                group=self._group,
                read=partial(self._delivery, queue),
                describe=self._described,
                clock=self._clock,
                prefetch=prefetch,
                grace=self._revoke_grace,
                from_latest=self._from_latest and not dead,
                one_by_one=self._retries.blocking and not dead,
                on_end=lambda ended: self._forget(queue, ended),
            )
        return found

    def _consumer_settings(self, queue: str) -> dict[str, Any]:
        return {
            "topic.metadata.refresh.interval.ms": 10_000,
            "fetch.wait.max.ms": 100,
            "heartbeat.interval.ms": 1000,  # how soon a member hears that the others wait for it
            "queued.max.messages.kbytes": 65_536,
            **self._settings,
            "group.id": self.group_of(queue),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",  # where a log was cut; else the poller says where to begin
            "partition.assignment.strategy": "cooperative-sticky",
            "allow.auto.create.topics": False,
        }

    def _forget(self, queue: str, ended: Subscription) -> None:
        if self._subscriptions.get(queue) is ended:
            del self._subscriptions[queue]

    def _delivery(self, queue: str, waiting: Waiting, receipt: Receipt) -> Delivery:
        arrived, note, assigned = self._arrived(waiting), waiting.note, waiting.assigned
        identity = f"{assigned.name}{waiting.offset}" if note is None else note.identity
        delivery = Delivery(
            message=unpack(arrived, note),
            queue=queue,
            identity=identity or f"{assigned.name}{waiting.offset}",
            attempt=1,
            redelivered=waiting.offset < assigned.suspect_until,
            first_attempt_at=None,
            trail=None,
            receipt=receipt,
            due_since=None if arrived.timestamp is None else arrived.sent_at,
        )
        return delivery if note is None else _with_note(delivery, note)

    def _arrived(self, waiting: Waiting) -> Arrived:
        raw, assigned = waiting.raw, waiting.assigned
        kind, timestamp = raw.timestamp()
        return Arrived(
            assigned.topic,
            assigned.partition,
            waiting.offset,
            timestamp if kind else None,
            noted_moment(timestamp * 1000) if kind else self._clock.now(),
            raw.key(),
            raw.value(),
            waiting.headers,
            assigned.partitions,
            assigned.group,
        )

    def _described(self, topic: str, partition: int) -> tuple[str, int, str]:
        """What identities of a partition's records begin with, its topic's number of partitions, and the group."""
        known = None if self._topics is None else self._topics.known(topic)
        count = 0 if known is None else known.partitions
        return f"kafka:{self._cluster}/{topic}/{partition}/", count, self.group_of(topic)

    # Depths.

    async def _depths_of(self, queue: str, there: Mapping[str, int]) -> dict[str, QueueDepth]:
        if self.names.home_of_dead(queue) is not None:
            return {queue: await self._depth(queue, [queue], there)}
        dead, retry = self.names.dead_of(queue), self.names.retry_of(queue)
        waiting = [name for name in self._retries.all_of(queue) if name in there]
        delayed = await self._depth(queue, waiting, there)
        return {
            queue: (await self._depth(queue, [queue], there)).plus(QueueDepth(0, 0, delayed.leased)),
            retry: QueueDepth(0, delayed.ready, 0),
            dead: await self._depth(dead, [dead], there),
        }

    async def _depth(self, reader: str, topics: Collection[str], there: Mapping[str, int]) -> QueueDepth:
        """Of these topics, which the subscription for `reader` reads, if this process has one."""
        reading = self._subscriptions.get(reader)
        marks = {} if reading is None else {place: each.watermark for place, each in reading.held.items()}
        done = 0 if reading is None else sum(reading.done_ahead(topic) for topic in topics)
        leased = 0 if reading is None else sum(reading.leased(topic) for topic in topics)
        wanted = {topic: there[topic] for topic in topics if topic in there}
        lags = await self._lag().of(self.group_of(reader), wanted, marks)
        return QueueDepth(max(sum(lags.values()) - done - leased, 0), 0, leased)

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("the transport is closed", remedy="open a new one")

    def _known_topics(self) -> Topics:
        if self._topics is None:
            self._topics = Topics(self._asking(), self._plan, declare=self._declare, within=self._connect_timeout)
        return self._topics

    def _asking(self) -> AdminClient:
        if self._admin is None:
            try:
                self._admin = AskingClient(self._settings, logger=logging.getLogger("redrive.kafka.client"))
            except KafkaException as raised:
                raise of_settings(raised, self._settings) from None
        return self._admin

    def _publisher(self) -> RecordProducer:
        self._check_open()
        if self._producer is None or self._producer.broken:
            self._producer = RecordProducer(self._settings, timeout=self._publish_timeout)
        return self._producer

    def _lag(self) -> Lags:
        if self._lags is None:
            self._lags = Lags(self._asking(), within=self._connect_timeout)
        return self._lags


def _partition(message: Message, topic: Topic) -> int | None:
    """Where it was, if the topic is divided as that one was: its neighbours are there too."""
    origin = origin_of(message)
    if origin is None or origin.partitions != topic.partitions:
        return None
    return origin.partition


def _other_queue(own: str, place: str) -> bytes | None:
    return None if own == place else own.encode("utf-8", "surrogatepass")


def _next_attempt(delivery: Delivery, message: Message, now: datetime, *, due: int, trail: bytes) -> Delivery:
    """Of one that waits in memory: what `_retry_note` tells of one that waits in a topic."""
    return replace(
        delivery,
        message=message,
        attempt=delivery.attempt + 1,
        first_attempt_at=delivery.first_attempt_at or now,
        trail=trail,
        due_since=noted_moment(due),
    )


def _with_note(delivery: Delivery, note: Note) -> Delivery:
    since = note.due_at or note.put_at
    return replace(
        delivery,
        attempt=note.attempt,
        first_attempt_at=None if note.first_attempt_at is None else noted_moment(note.first_attempt_at),
        trail=note.trail,
        due_since=delivery.due_since if since is None else noted_moment(since),
    )
