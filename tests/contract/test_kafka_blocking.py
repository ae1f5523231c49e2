"""Retries that block their partition: what is behind one waits with it, other partitions do not, and nothing is
committed past it. Records are those of a plain producer, each in the partition that its test says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from redrive.testing import ManualClock
from redrive.transports import Delivery
from redrive.transports.kafka import subscription
from redrive.transports.kafka.assigned import AssignedPartition
from redrive.transports.kafka.subscription import Subscription
from redrive.transports.kafka.transport import KafkaTransport
from support.kafka_server import KafkaServer
from support.patience import until

DELAY = 60.0
MAX_POLL = 3.0


class Topic:
    """A topic of two partitions."""

    def __init__(self, server: KafkaServer) -> None:
        self.name, self.server, self.clock = server.new_topic(partitions=2), server, ManualClock()
        self._admin = server.admin()

    def put(self, partition: int, *names: str, size: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.server.address})
        for name in names:
            producer.produce(self.name, name.encode().ljust(size), key=name.encode(), partition=partition)
        assert producer.flush(30) == 0

    async def committed(self, partition: int) -> int:
        """As the brokers tell anybody; below 0: nothing."""

        def ask() -> int:
            asked = ConsumerGroupTopicPartitions(self.name, [TopicPartition(self.name, partition)])
            told: Any = self._admin.list_consumer_group_offsets([asked])[self.name].result(30)
            return int(told.topic_partitions[0].offset)

        return await asyncio.to_thread(ask)


class Member:
    """A consumer of the topic. Each record that comes is in `came`; those that `settles` says are done at once."""

    def __init__(self, topic: Topic, prefetch: int, **how: Any) -> None:
        self.topic = topic
        how = {"retry_topics": "blocking", "clock": topic.clock, "group": topic.name, **how}
        self.transport = KafkaTransport(topic.server.url, **how)
        self.came: list[Delivery] = []
        self.settles: Callable[[Delivery], bool] = lambda _: False
        self._receiving = asyncio.create_task(self._receive(prefetch))

    async def _receive(self, prefetch: int) -> None:
        receiving = self.transport.receive(self.topic.name, prefetch=prefetch)
        try:
            async for delivery in receiving:
                self.came.append(delivery)
                if self.settles(delivery):
                    await self.transport.ack(delivery)
        finally:
            await receiving.aclose()

    @property
    def names(self) -> list[str]:
        """Of all that came, in that order."""
        return [name(each) for each in self.came]

    async def take(self, wanted: str, attempt: int = 1) -> Delivery:
        """That one, as soon as it has come."""

        def found() -> list[Delivery]:
            return [each for each in self.came if (name(each), each.attempt) == (wanted, attempt)]

        await until(found)
        return found()[-1]

    async def retry(self, delivery: Delivery, delay: float = DELAY, trail: bytes = b"trail") -> None:
        await self.transport.retry(delivery, delivery.message, delay=delay, trail=trail)

    @property
    def reading(self) -> Subscription:
        return self.transport._subscriptions[self.topic.name]

    @property
    def held(self) -> dict[int, AssignedPartition]:
        """Partitions of the topic that it has."""
        return {number: each for (topic, number), each in self.reading.held.items() if topic == self.topic.name}

    def behind(self, partition: int) -> int:
        """How many wait for their turn in memory."""
        return len(self.held[partition].pending)

    async def close(self) -> None:
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        await self.transport.close()


def name(delivery: Delivery) -> str:
    return (delivery.message.key or b"").decode()


def numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


@pytest.fixture
def topic(kafka: KafkaServer) -> Topic:
    return Topic(kafka)


@pytest.fixture
async def join(topic: Topic) -> AsyncIterator[Callable[..., Member]]:
    members: list[Member] = []

    def joined(prefetch: int = 10, **how: Any) -> Member:
        members.append(Member(topic, prefetch, **how))
        return members[-1]

    yield joined
    await asyncio.gather(*(each.close() for each in members))


async def test_what_is_behind_a_retry_waits_and_comes_in_order_while_another_partition_flows(
    topic: Topic, join: Callable[..., Member]
) -> None:
    member = join()
    topic.put(0, "a", "b", "c")
    await member.retry(await member.take("a"))
    await until(lambda: member.behind(0) == 2)
    member.settles = lambda _: True
    topic.put(1, "x", "y", "z")
    await member.take("z")
    topic.clock.advance(DELAY - 0.001)
    topic.put(1, "w")
    await member.take("w")
    assert member.names == ["a", "x", "y", "z", "w"]

    topic.clock.advance(0.001)
    await member.take("c")

    assert member.names[5:] == ["a", "b", "c"]
    assert [each.attempt for each in member.came[5:]] == [2, 1, 1]


async def test_records_of_one_partition_come_one_by_one_and_those_of_two_side_by_side(
    topic: Topic, join: Callable[..., Member]
) -> None:
    member = join()
    topic.put(0, *numbered("a", 20))
    topic.put(1, *numbered("b", 20))
    for number in range(20):
        pair = [await member.take(f"a{number}"), await member.take(f"b{number}")]
        assert len(member.came) == 2 * number + 2
        for each in pair:
            await member.transport.ack(each)


async def test_nothing_is_committed_past_a_retry_until_it_is_done(
    topic: Topic, join: Callable[..., Member]
) -> None:
    member = join()
    topic.put(0, "done", "a", "b", "c")
    topic.put(1, "x", "y")
    await member.transport.ack(await member.take("done"))
    await member.retry(await member.take("a"))
    for each in ("x", "y"):
        await member.transport.ack(await member.take(each))

    await until(lambda: is_committed(topic, 1, 2))
    await until(lambda: is_committed(topic, 0, 1))
    topic.clock.advance(DELAY)
    await member.retry(await member.take("a", attempt=2))
    topic.put(1, "z")
    await member.transport.ack(await member.take("z"))
    await until(lambda: is_committed(topic, 1, 3))
    assert await topic.committed(0) == 1

    member.settles = lambda _: True
    topic.clock.advance(DELAY)
    await until(lambda: is_committed(topic, 0, 4))


async def is_committed(topic: Topic, partition: int, offset: int) -> bool:
    return await topic.committed(partition) == offset


async def test_whoever_comes_after_one_that_closed_begins_with_the_retry_at_its_first_attempt(
    topic: Topic, join: Callable[..., Member]
) -> None:
    first = join()
    topic.put(0, "a", "b", "c")
    held = await first.take("a")
    await first.retry(held)
    await until(lambda: first.behind(0) == 2)
    await first.close()

    second = join()
    second.settles = lambda _: True
    await second.take("c")

    assert second.names == ["a", "b", "c"]
    assert [(each.attempt, each.redelivered) for each in second.came] == [(1, False)] * 3
    assert (second.came[0].identity, second.came[0].trail) == (held.identity, None)


async def test_a_partition_that_changes_hands_takes_its_retry_and_what_is_behind_it_along(
    topic: Topic, join: Callable[..., Member]
) -> None:
    first = join()
    topic.put(0, "a", "b", "c")
    topic.put(1, "x", "y", "z")
    for each in ("a", "x"):
        await first.retry(await first.take(each))
    second = join()
    second.settles = lambda _: True
    await until(lambda: len(second.came) == 3)
    [moved] = {each.receipt.assigned.partition for each in second.came}
    gone, kept = (["a", "b", "c"], ["x", "y", "z"]) if moved == 0 else (["x", "y", "z"], ["a", "b", "c"])
    assert second.names == gone
    assert [each.attempt for each in second.came] == [1, 1, 1]
    assert first.reading._bytes == len(kept)  # what is gone takes no room, what is left does

    first.settles = lambda _: True
    topic.clock.advance(DELAY)
    await first.take(kept[-1])

    assert first.names[2:] == kept
    assert [each.attempt for each in first.came[2:]] == [2, 1, 1]
    assert second.names == gone


@pytest.mark.parametrize("how", ["fails", "is given back"])
async def test_a_record_that_is_not_done_while_its_partition_is_given_up_is_left_to_the_next(
    topic: Topic, join: Callable[..., Member], how: str
) -> None:
    first = join(revoke_grace=30)
    topic.put(0, "a", "b")
    topic.put(1, "x", "y")
    in_hand = [await first.take("a"), await first.take("x")]
    second = join()
    second.settles = lambda _: True
    await until(lambda: len(first.held) == 1)
    [moved] = {0, 1} - first.held.keys()

    if how == "fails":
        await first.retry(in_hand[moved], delay=0)
    else:
        await first.transport.release(in_hand[moved])
    await until(lambda: len(second.came) == 2)

    assert second.names == (["a", "b"], ["x", "y"])[moved]
    assert first.names.count(name(in_hand[moved])) == 1


async def test_an_attempt_brings_along_what_is_known_of_those_before(
    topic: Topic, join: Callable[..., Member]
) -> None:
    member = join()
    topic.put(0, "a")
    first = await member.take("a")
    began = topic.clock.now()
    failed = first.message.with_error("no customer", "NoCustomer", "Traceback").with_incremented_retry()
    await member.transport.retry(first, failed, delay=DELAY, trail=b"one")
    topic.clock.advance(DELAY)
    second = await member.take("a", attempt=2)
    failed_again = second.message.with_incremented_retry()
    await member.transport.retry(second, failed_again, delay=0, trail=b"one, two")
    third = await member.take("a", attempt=3)

    assert (second.message, third.message) == (failed, failed_again)
    assert (second.trail, third.trail) == (b"one", b"one, two")
    assert second.first_attempt_at == third.first_attempt_at == began
    assert first.identity == second.identity == third.identity
    assert (second.due_since, third.redelivered) == (topic.clock.now(), False)


async def test_a_retry_that_is_given_back_is_as_it_was_and_still_the_first(
    topic: Topic, join: Callable[..., Member]
) -> None:
    member = join()
    topic.put(0, "a", "b")
    await member.retry(await member.take("a"), delay=0)
    await member.transport.release(await member.take("a", attempt=2))
    await until(lambda: len(member.came) == 3)
    assert (member.came[2].attempt, member.came[2].trail) == (2, b"trail")
    member.settles = lambda _: True
    await member.transport.ack(member.came[2])
    await member.take("b")
    assert member.names == ["a", "a", "a", "b"]


async def test_what_waits_behind_a_retry_takes_no_room_from_others_and_has_an_end(
    topic: Topic, join: Callable[..., Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 200
    monkeypatch.setattr(subscription, "_AHEAD", most)
    member, many = join(prefetch=2), numbered("a", 1500)
    topic.put(0, *many)
    await member.retry(await member.take("a0"))
    await until(lambda: member.held[0].halted)
    assert member.held[0].reach <= 1000  # span, twice what is read ahead, and a batch
    member.settles = lambda _: True

    others = numbered("x", 300)
    topic.put(1, *others)
    await member.take(others[-1])
    assert member.names == ["a0", *others]

    topic.clock.advance(DELAY)
    await member.take(many[-1])
    assert member.names[301:] == many


async def test_large_records_behind_a_retry_leave_memory_for_those_of_other_partitions(
    topic: Topic, join: Callable[..., Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    room, size = 400_000, 20_000
    monkeypatch.setattr(subscription, "_MOST_BYTES", room)
    member, many = join(prefetch=2), numbered("a", 30)
    topic.put(0, *many, size=size)
    await member.retry(await member.take("a0"))
    await until(lambda: member.held[0].halted)
    member.settles = lambda _: True

    others = numbered("x", 30)
    topic.put(1, *others, size=size)
    await member.take(others[-1])
    assert member.reading._bytes < room

    topic.clock.advance(DELAY)
    await member.take(many[-1])
    assert member.names == ["a0", *others, *many]
    assert member.reading._bytes == 0


async def test_retries_that_another_mode_has_left_in_its_topics_are_done(
    topic: Topic, join: Callable[..., Member]
) -> None:
    before = join(retry_topics="per-delay")
    topic.put(0, "a", "b")
    await before.retry(await before.take("a"), delay=5)
    await before.transport.ack(await before.take("b"))
    await before.close()

    after = join()
    after.settles = lambda _: True
    topic.put(0, "c")
    await after.take("c")
    topic.clock.advance(5)
    again = await after.take("a", attempt=2)

    assert again.trail == b"trail"
    assert after.names == ["c", "a"]


async def test_a_retry_that_waits_longer_than_the_poll_interval_does_not_lose_its_partition(
    topic: Topic, join: Callable[..., Member]
) -> None:
    milliseconds = round(MAX_POLL * 1000)
    patience = {"max.poll.interval.ms": milliseconds, "session.timeout.ms": milliseconds}
    member = join(client={**patience, "heartbeat.interval.ms": 300})
    topic.put(0, "a", "b")
    await member.retry(await member.take("a"))
    held, began = member.held[0], time.monotonic()
    await until(lambda: time.monotonic() > began + MAX_POLL + 1)

    topic.clock.advance(DELAY)
    await member.transport.ack(await member.take("a", attempt=2))
    await member.transport.ack(await member.take("b"))

    assert member.held[0] is held
