"""F24, R19: partitions change hands while a handler runs, while a retry waits, while a consumer stops, and again
and again under load. Nothing is lost, nothing is repeated that was done, and only what is done is committed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable

import pytest

from chaos.lab.kafka import Kafka
from redrive.errors import LeaseLost
from redrive.testing.letters import a_message
from redrive.transports import Delivery
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.patience import until

PARTITIONS = 4
SHORT, LONG = 0.3, 30.0


class Member:
    """A consumer of the group, which holds what comes until it is told to settle."""

    def __init__(self, topics: Kafka, *, grace: float = LONG, prefetch: int = 100) -> None:
        self.transport = KafkaTransport(
            f"kafka://{topics.server}",
            group=topics.name,
            plan=TopicPlan(partitions=PARTITIONS),
            revoke_grace=grace,
            client=topics.client,
        )
        self.queue = topics.name
        self.came: list[Delivery] = []
        self.settles: Callable[[Delivery], bool] = lambda _: False
        """Whether a delivery is acknowledged at once."""
        self._receiving = asyncio.create_task(self._receive(prefetch))

    async def _receive(self, prefetch: int) -> None:
        receiving = self.transport.receive(self.queue, prefetch=prefetch)
        try:
            async for delivery in receiving:
                self.came.append(delivery)
                if self.settles(delivery):
                    await self.transport.ack(delivery)
        finally:
            await receiving.aclose()

    @property
    def partitions(self) -> set[int]:
        """Of the queue itself, that are its own now."""
        reading = self.transport._subscriptions.get(self.queue)
        return set() if reading is None else {number for topic, number in reading.held if topic == self.queue}

    async def close(self) -> None:
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        await self.transport.close()


@pytest.fixture
async def join(topics: Kafka) -> AsyncIterator[Callable[..., Member]]:
    members: list[Member] = []

    def joined(**how: float) -> Member:
        members.append(Member(topics, **how))  # type: ignore[arg-type]  # grace and prefetch
        return members[-1]

    yield joined
    await asyncio.gather(*(each.close() for each in members))


async def _filled(member: Member, count: int) -> list[str]:
    """Sends that many, each with a key of its own, so that every partition has some."""
    messages = [a_message(queue=member.queue, key=f"{number}".encode()) for number in range(count)]
    await asyncio.gather(*(member.transport.send(each) for each in messages))
    return [each.id for each in messages]


def _ids(deliveries: list[Delivery]) -> list[str]:
    return [each.message.id for each in deliveries]


async def test_what_a_handler_has_in_hand_is_finished_and_committed_before_another_gets_its_partition(
    join: Callable[..., Member],
) -> None:
    first = join()
    sent = await _filled(first, 20)
    await until(lambda: len(first.came) == 20)
    second = join()
    await until(lambda: len(first.partitions) < PARTITIONS)  # it is giving some up, and waits for its handlers
    assert not second.partitions

    for each in first.came:
        await first.transport.ack(each)
    await until(lambda: second.partitions)
    sent += await _filled(first, 20)

    await until(lambda: len(first.came) + len(second.came) == 40)
    assert second.came
    assert sorted(_ids(first.came) + _ids(second.came)) == sorted(sent)


async def test_a_handler_longer_than_the_grace_has_lost_its_record_which_is_done_again(
    join: Callable[..., Member], topics: Kafka
) -> None:
    first = join(grace=SHORT)
    sent = await _filled(first, 20)
    await until(lambda: len(first.came) == 20)
    second = join()
    second.settles = lambda _: True
    await until(lambda: second.came)

    lost = 0
    for each in first.came:
        try:
            await first.transport.ack(each)
        except LeaseLost:
            lost += 1

    await until(lambda: len(second.came) == lost)
    assert 0 < lost < 20
    kept = [each for each in first.came if each.identity not in {again.identity for again in second.came}]
    assert sorted(_ids(kept) + _ids(second.came)) == sorted(sent)
    await until(lambda: _nothing_left(topics))


async def test_nobody_who_was_thrown_out_of_the_group_commits_or_settles_anything(
    join: Callable[..., Member], topics: Kafka
) -> None:
    first = join()
    sent = await _filled(first, 20)
    await until(lambda: len(first.came) == 20)
    before = list(first.came)
    held = set(map(id, first.transport._subscriptions[first.queue].held.values()))
    await asyncio.to_thread(topics.expel)
    await until(lambda: held.isdisjoint(map(id, first.transport._subscriptions[first.queue].held.values())))

    for each in before:
        with pytest.raises(LeaseLost):
            await first.transport.ack(each)

    assert len(await asyncio.to_thread(topics.left)) == 20
    await until(lambda: len(first.came) == 40)
    assert sorted(_ids(first.came[20:])) == sorted(sent)
    assert all(each.redelivered for each in first.came[20:])  # whoever was thrown out may have died of them


async def test_retries_that_wait_come_once_whoever_has_their_partition_then(join: Callable[..., Member]) -> None:
    first = join()
    sent = await _filled(first, 20)
    await until(lambda: len(first.came) == 20)
    for each in list(first.came):
        await first.transport.retry(each, each.message, delay=1.0, trail=b"")
    first.settles = lambda _: True
    second = join()
    second.settles = lambda _: True

    await until(lambda: len(first.came) + len(second.came) >= 40)

    again = [each for each in first.came + second.came if each.attempt == 2]
    assert sorted(_ids(again)) == sorted(sent)
    assert len(first.came) + len(second.came) == 40


async def test_a_consumer_that_stops_during_a_rebalance_leaves_what_it_has_to_the_others(
    join: Callable[..., Member], topics: Kafka
) -> None:
    first = join(grace=SHORT)
    sent = await _filled(first, 20)
    await until(lambda: len(first.came) == 20)
    done = first.came[::2]
    for each in done:
        await first.transport.ack(each)
    second = join()
    second.settles = lambda _: True
    await until(lambda: len(first.partitions) < PARTITIONS)

    await first.close()
    await until(lambda: set(sent) <= set(_ids(done) + _ids(second.came)))

    await until(lambda: _nothing_left(topics))
    assert not [each for each in second.came if each.redelivered]  # it left in peace


async def test_consumers_that_come_and_go_under_load_lose_nothing_repeat_nothing_and_share_nothing(
    join: Callable[..., Member], topics: Kafka
) -> None:
    steady, all_of_them = join(prefetch=20), []
    all_of_them.append(steady)
    holders: dict[str, list[Delivery]] = defaultdict(list)
    shared: list[str] = []

    def watched(delivery: Delivery) -> bool:
        shared.extend(each.identity for each in holders[delivery.identity] if not each.receipt.assigned.lost)
        holders[delivery.identity].append(delivery)
        return True

    steady.settles = watched
    sent = await _filled(steady, 100)
    for _ in range(2):
        guest = join(prefetch=20)
        all_of_them.append(guest)
        guest.settles = watched
        while not guest.came:
            sent += await _filled(steady, 20)
        sending = asyncio.create_task(_filled(steady, 200))
        await guest.close()
        sent += await sending

    await until(lambda: sum(len(each.came) for each in all_of_them) >= len(sent))
    came = Counter(name for each in all_of_them for name in _ids(each.came))

    assert came == Counter(sent)
    assert shared == []
    await until(lambda: _nothing_left(topics))


async def _nothing_left(topics: Kafka) -> bool:
    return not await asyncio.to_thread(topics.left)
