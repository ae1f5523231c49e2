"""What brokers answer when something is wrong with them or with us, one error at a time: nothing is lost, and only
what is done is committed.

The brokers here are librdkafka's mock cluster, a fake, which can be told what to answer. That the driver works
with real ones is shown beside this: by the contract, and by the kills, rebalances and outages under `chaos`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from redrive.clock import new_id
from redrive.errors import LeaseLost, PublishRefused, Unreachable
from redrive.testing.letters import a_message
from redrive.transports import Delivery
from redrive.transports.kafka.topics import USUAL_SIZE, Topics
from redrive.transports.kafka.transport import KafkaTransport
from support.mock_kafka import (
    FETCH,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    MockKafka,
)
from support.patience import until, until_now

Join = Callable[..., Awaitable["Member"]]
COUNT = 6
APIS = (PRODUCE, FETCH, OFFSET_COMMIT, HEARTBEAT, JOIN_GROUP)
OFTEN = 1000
"""Errors enough for whoever tries again at once."""
SOON, LATER = 0.6, 20.0
COMMITS = [
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
]
FETCHES = [
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.KAFKA_STORAGE_ERROR,
]


def named(code: int) -> str:
    return str(KafkaError(code).name())


@pytest.fixture(scope="module")
def brokers() -> Iterator[MockKafka]:
    """For all tests here: each has topics and a group of its own, and takes back what it told them to answer."""
    made = MockKafka()
    yield made
    made.close()


@pytest.fixture
def old_brokers() -> Iterator[MockKafka]:
    """They tell of an error with each partition, where others tell it once for all of them."""
    made = MockKafka()
    made.speak_no_newer(OFFSET_FETCH, 1)
    yield made
    made.close()


@pytest.fixture
def mock(brokers: MockKafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockKafka]:
    async def largest(*_: Any) -> int:
        return USUAL_SIZE  # the mock knows no settings of topics, and asking for them takes time

    monkeypatch.setattr(Topics, "_largest", largest)
    yield brokers
    for api in APIS:
        brokers.answer_well(api)


@pytest.fixture
def queue(mock: MockKafka) -> str:
    """A new topic, with one for its retries. Its name is the group's as well."""
    name = f"orders-{new_id()}"
    for topic in (name, f"{name}_retry_100ms"):
        mock.topic(topic)
    return name


class Member:
    """A consumer of the group, which holds what comes until it is told to settle.

    `session`: seconds after which the mock forgets one that it has told to be no member.
    """

    def __init__(
        self, mock: MockKafka, queue: str, *, session: float = LATER, start: str = "earliest", **client: Any
    ) -> None:
        self._mock, self.queue, self.retries = mock, queue, f"{queue}_retry_100ms"
        self.transport = KafkaTransport(
            f"kafka://{mock.address}",
            group=queue,
            publish_timeout=SOON,
            revoke_grace=0.0,
            start=start,
            client={
                "heartbeat.interval.ms": 100,
                "session.timeout.ms": round(session * 1000),
                "topic.metadata.refresh.interval.ms": 200,
                "retry.backoff.ms": 10,
                "fetch.error.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
                **client,
            },
        )
        self.came: list[Delivery] = []
        self.done: list[int] = []
        """Offsets that were acknowledged."""
        self.settles: Callable[[Delivery], bool] = lambda _: False
        """Whether a delivery is acknowledged at once."""
        self.errors: list[Unreachable] = []
        self._receiving = asyncio.create_task(self._receive())

    async def _receive(self) -> None:
        while True:
            try:
                async for delivery in self.transport.receive(self.queue, prefetch=100):
                    self.came.append(delivery)
                    if self.settles(delivery):
                        await self.ack(delivery)
            except Unreachable as error:
                self.errors.append(error)
                await asyncio.sleep(0.01)  # as a worker does, which waits longer

    async def ack(self, delivery: Delivery) -> None:
        try:
            await self.transport.ack(delivery)
        except LeaseLost:
            return
        self.done.append(delivery.receipt.record.offset)

    async def ack_all(self) -> None:
        """What it has, and whatever comes from now on."""
        self.settles = lambda _: True
        for each in list(self.came):
            await self.ack(each)

    @property
    def offsets(self) -> list[int]:
        return [each.receipt.record.offset for each in self.came]

    async def send(self, count: int = COUNT) -> None:
        for _ in range(count):
            await self.transport.send(a_message(queue=self.queue))

    async def has_committed(self, offset: int) -> bool:
        """Whether the brokers have that, and nothing else, for the queue."""
        return await asyncio.to_thread(self._mock.committed, self.queue, self.queue) == offset

    async def close(self) -> None:
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        await self.transport.close()


@pytest.fixture
async def join(mock: MockKafka, queue: str) -> AsyncIterator[Callable[..., Awaitable[Member]]]:
    """A member that holds the records 0 to 5, of which nothing is committed."""
    members: list[Member] = []

    async def joined(**how: Any) -> Member:
        member = Member(mock, queue, **how)
        members.append(member)
        await member.send()
        await until(lambda: member.offsets == [*range(COUNT)])
        await until(lambda: member.has_committed(0))
        mock.forget()
        return member

    yield joined
    for api in APIS:
        mock.answer_well(api)
    await asyncio.gather(*(each.close() for each in members))


@pytest.mark.parametrize("refusal", COMMITS, ids=named)
async def test_what_a_refused_commit_would_have_carried_is_carried_by_a_later_one_and_nothing_else(
    refusal: int, join: Join, mock: MockKafka
) -> None:
    member = await join(session=SOON)
    slowest = member.came[3].receipt.record.offset
    mock.answer(OFFSET_COMMIT, refusal)

    member.settles = lambda delivery: delivery.receipt.record.offset != slowest
    for each in list(member.came):
        if each.receipt.record.offset != slowest:
            await member.ack(each)
    await until(lambda: mock.asked(OFFSET_COMMIT) > 1)
    await until(lambda: member.has_committed(slowest))

    await member.ack_all()
    await until(lambda: member.has_committed(COUNT))
    assert sorted(set(member.done)) == [*range(COUNT)]


async def test_a_commit_that_takes_long_keeps_nobody_waiting_and_no_other_is_made_meanwhile(
    join: Join, mock: MockKafka
) -> None:
    member = await join()
    first = member.came[0].receipt.assigned
    meanwhile: set[int] = set()

    def answered() -> bool:
        asked = mock.asked(OFFSET_COMMIT)
        if not first.committed:
            meanwhile.add(asked)
        return bool(first.committed)

    with mock.slow(SOON):
        await member.ack(member.came[0])
        await until(lambda: mock.asked(OFFSET_COMMIT))
        for each in member.came[1:]:
            await member.ack(each)
        await until(answered)

    await until(lambda: member.has_committed(COUNT))
    assert meanwhile == {1}
    assert member.offsets == member.done == [*range(COUNT)]


async def test_commits_go_on_at_the_next_coordinator_when_theirs_is_gone(
    join: Join, queue: str, mock: MockKafka
) -> None:
    mock.coordinate(queue, broker=2)
    member = await join()
    with mock.down(2):
        mock.coordinate(queue, broker=3)
        await member.ack_all()

        await until(lambda: member.has_committed(COUNT))
    assert sorted(set(member.done)) == [*range(COUNT)]


@pytest.mark.parametrize(
    "refusal", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED], ids=named
)
async def test_a_retry_that_the_broker_refuses_for_ever_is_no_retry_and_its_record_is_not_done(
    refusal: int, join: Join, mock: MockKafka
) -> None:
    member = await join()
    first = member.came[0]
    mock.answer(PRODUCE, *[refusal] * OFTEN)

    with pytest.raises(PublishRefused) as refused:
        await member.transport.retry(first, first.message, delay=0.1, trail=b"")

    assert refused.value.permanent
    assert refused.value.remedy
    await _is_not_done(member, mock)


async def test_a_retry_that_too_few_replicas_have_within_its_time_is_no_retry_and_its_record_is_not_done(
    join: Join, mock: MockKafka
) -> None:
    member = await join()
    first = member.came[0]
    mock.answer(PRODUCE, *[KafkaError.NOT_ENOUGH_REPLICAS] * OFTEN)

    with pytest.raises(Unreachable):
        await member.transport.retry(first, first.message, delay=0.1, trail=b"")

    await _is_not_done(member, mock)


async def _is_not_done(member: Member, mock: MockKafka) -> None:
    """The first record, though all behind it are; when the broker takes its retry, it is."""
    for each in member.came[1:]:
        await member.ack(each)
    first = member.came[0]
    assert await asyncio.to_thread(mock.written, member.retries) == 0
    assert await member.has_committed(0)
    mock.answer_well(PRODUCE)

    async def is_taken() -> bool:
        try:
            await member.transport.retry(first, first.message, delay=0.1, trail=b"")
        except PublishRefused:  # the client believes that of the topic until it hears of it again
            return False
        return True

    await until(is_taken)
    await until(lambda: member.has_committed(COUNT))
    await until(lambda: len(member.came) == COUNT + 1)
    assert (member.came[-1].message.id, member.came[-1].attempt) == (first.message.id, 2)


async def test_a_producer_that_the_broker_will_never_hear_again_is_replaced(join: Join, mock: MockKafka) -> None:
    member = await join()
    mock.answer(PRODUCE, *[KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER] * OFTEN)
    with pytest.raises(Unreachable):
        await member.send(1)
    mock.answer_well(PRODUCE)

    await member.send(1)

    await until(lambda: len(member.came) == COUNT + 1)


@pytest.mark.parametrize("refusal", FETCHES, ids=named)
async def test_a_fetch_that_fails_skips_nothing_and_repeats_nothing(
    refusal: int, join: Join, mock: MockKafka
) -> None:
    member = await join()
    await member.ack_all()
    mock.answer(FETCH, *[refusal] * 3)

    await member.send()

    await until(lambda: len(member.came) >= 2 * COUNT)
    await until(lambda: member.has_committed(2 * COUNT))
    assert member.offsets == [*range(2 * COUNT)]


async def test_where_the_broker_knows_an_offset_no_more_all_that_it_has_comes_again_rather_than_not_at_all(
    join: Join, mock: MockKafka
) -> None:
    member = await join()
    await member.ack_all()
    await until(lambda: member.has_committed(COUNT))
    mock.answer(FETCH, KafkaError.OFFSET_OUT_OF_RANGE)

    await member.send()

    await until(lambda: len(member.came) >= 3 * COUNT)
    await until(lambda: member.has_committed(2 * COUNT))
    assert member.offsets == [*range(COUNT), *range(2 * COUNT)]


async def test_records_come_on_from_the_next_leader_of_their_partition(join: Join, mock: MockKafka) -> None:
    member = await join()
    await member.ack_all()
    for broker in (2, 3):
        mock.lead(member.queue, 0, broker=broker)
        await member.send()

    await until(lambda: member.has_committed(3 * COUNT))
    assert member.offsets == [*range(3 * COUNT)]


async def test_nothing_is_committed_of_partitions_that_were_lost(join: Join, mock: MockKafka) -> None:
    member = await join(session=SOON)
    mock.answer(OFFSET_COMMIT, *[KafkaError.INVALID_COMMIT_OFFSET_SIZE] * OFTEN)
    for each in member.came[:3]:
        await member.ack(each)
    held = member.came[3]
    mock.answer(HEARTBEAT, KafkaError.UNKNOWN_MEMBER_ID)
    await until(lambda: held.receipt.assigned.lost)
    mock.answer_well(OFFSET_COMMIT)

    with pytest.raises(LeaseLost):
        await member.transport.ack(held)

    await until(lambda: len(member.came) == 2 * COUNT)
    assert member.offsets == [*range(COUNT)] * 2
    assert await member.has_committed(0)
    await member.ack_all()
    await until(lambda: member.has_committed(COUNT))


async def test_nothing_is_committed_of_lost_partitions_by_a_process_that_is_too_busy_to_hear_of_it(
    join: Join, mock: MockKafka
) -> None:
    member = await join(session=SOON)
    mock.answer(OFFSET_COMMIT, *[KafkaError.INVALID_COMMIT_OFFSET_SIZE] * OFTEN)
    for each in member.came[:3]:
        await member.ack(each)
    mock.answer(HEARTBEAT, KafkaError.UNKNOWN_MEMBER_ID)
    until_now(lambda: mock.asked(JOIN_GROUP))  # the event loop stands still: the thread alone knows what is lost
    mock.answer_well(OFFSET_COMMIT)
    mock.forget()
    until_now(lambda: mock.asked(HEARTBEAT) > 2)  # it is a member again, of which the event loop knows nothing

    assert mock.committed(member.queue, member.queue) == 0
    await until(lambda: len(member.came) == 2 * COUNT)
    await member.ack_all()
    await until(lambda: member.has_committed(COUNT))


async def test_a_member_that_another_of_its_name_has_replaced_says_so_and_joins_again(
    join: Join, mock: MockKafka
) -> None:
    member = await join(session=SOON, **{"group.instance.id": "the-only-one"})
    mock.answer(HEARTBEAT, KafkaError.FENCED_INSTANCE_ID)
    await until(lambda: member.errors)

    await member.ack_all()
    await until(lambda: member.has_committed(COUNT))
    assert sorted(set(member.done)) == [*range(COUNT)]


async def test_a_group_that_may_not_be_read_is_told_and_work_goes_on_when_it_may(
    mock: MockKafka, queue: str
) -> None:
    mock.answer(JOIN_GROUP, *[KafkaError.GROUP_AUTHORIZATION_FAILED] * OFTEN)
    member = Member(mock, queue)
    try:
        await member.send()
        await until(lambda: member.errors)
        mock.answer_well(JOIN_GROUP)
        await until(lambda: member.offsets == [*range(COUNT)])
    finally:
        await member.close()
    assert "authorization" in str(member.errors[0])
    assert member.errors[0].remedy


@pytest.mark.usefixtures("mock")
async def test_a_partition_whose_commit_cannot_be_asked_for_is_not_taken_for_a_new_one(
    old_brokers: MockKafka,
) -> None:
    queue = "orders"
    for topic in (queue, f"{queue}_retry_100ms"):
        old_brokers.topic(topic)
    old_brokers.write(queue, COUNT)
    old_brokers.commit(queue, queue, 3)
    old_brokers.answer(OFFSET_FETCH, KafkaError.UNKNOWN_TOPIC_OR_PART)
    member = Member(old_brokers, queue, session=SOON, start="latest")  # it passes over what was before the group

    try:
        await until(lambda: len(member.came) == COUNT - 3)
    finally:
        await member.close()
    assert member.offsets == [*range(3, COUNT)]
    assert member.errors
