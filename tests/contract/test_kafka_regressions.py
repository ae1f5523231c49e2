"""What went wrong with other consumers of Kafka, and must not here: R15, R18, traps 8 and 9, K11; and that a
record of somebody else's goes back exactly as it came.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from redrive import wiring
from redrive.access import local
from redrive.app import App
from redrive.errors import Permanent
from redrive.kafka_settings import KafkaSettings
from redrive.keeping_settings import DeadLetterSettings
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.secret_url import SecretUrl
from redrive.settings import (
    AppSettings,
    BrokerSettings,
    JournalSettings,
    RetrySettings,
    Settings,
    SpoolSettings,
    StoreSettings,
)
from redrive.testing.letters import a_message
from redrive.transports import Delivery
from redrive.transports.kafka.topics import USUAL_SIZE, TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.kafka_server import KafkaServer
from support.patience import until

LARGEST = USUAL_SIZE - 100
"""A value so large that a record of nothing else is just taken."""
STACK = "at somewhere\n" * 2**20
ROUNDS = 4
MAX_POLL = 3.0
Sink = Literal["store", "queue", "both"]


@dataclass
class House:
    """An app with one queue whose handler always fails."""

    server: KafkaServer
    folder: Path
    queue: str
    sink: Sink = "store"
    said: str = "never"

    @property
    def dead(self) -> str:
        return f"{self.queue}_dlq"

    def settings(self) -> Settings:
        return Settings(
            app=AppSettings(name=self.queue),
            broker=BrokerSettings(url=SecretUrl(self.server.url), kafka=KafkaSettings(partitions=1)),
            store=StoreSettings(url=SecretUrl(f"sqlite:///{self.folder / 'store.db'}")),
            retry=RetrySettings(attempts=1),
            dead_letters=DeadLetterSettings(sink=self.sink),
            spool=SpoolSettings(folder=self.folder / "spool"),
            journal=JournalSettings(path=self.folder / "journal.db"),
        )

    async def work(self) -> None:
        app = App(self.queue)

        async def failing(_message: Message) -> None:
            raise Permanent(self.said)

        app.handler(self.queue, name="failing")(failing)
        await wiring.run_worker(app, self.settings(), drain=True)

    def produce(self, value: bytes | None, key: bytes | None = None, headers: list[Any] | None = None) -> None:
        """As a program does that knows nothing of us."""
        producer = Producer({"bootstrap.servers": self.server.address, "message.max.bytes": 2**24})
        producer.produce(self.queue, value=value, key=key, headers=headers or [])
        assert producer.flush(30) == 0

    def lying_dead(self) -> list[Any]:
        """All that was ever put into the dead-letter topic."""
        consumer = Consumer({"bootstrap.servers": self.server.address, "group.id": "nobody"})
        try:
            place = TopicPartition(self.dead, 0, 0)
            _, high = consumer.get_watermark_offsets(place, timeout=30)
            consumer.assign([place])
            return [consumer.poll(30) for _ in range(high)]
        finally:
            consumer.close()


@pytest.fixture
def house(kafka: KafkaServer, tmp_path: Path) -> Callable[..., House]:
    def opened(**how: Any) -> House:
        return House(kafka, tmp_path, kafka.new_topic(), **how)

    return opened


@pytest.mark.parametrize("sink", ["store", "queue"])
async def test_a_record_of_the_largest_size_with_a_huge_stack_trace_is_dead_lettered(
    sink: Sink, house: Callable[..., House]
) -> None:
    shop, value = house(sink=sink, said=STACK), bytes(range(256)) * (LARGEST // 256)
    shop.produce(value)

    await shop.work()

    if sink == "queue":
        assert [each.value() for each in shop.lying_dead()] == [value]
    else:
        with closing(sqlite3.connect(shop.folder / "store.db")) as store:
            assert store.execute("SELECT body FROM revisions").fetchall() == [(value,)]


async def test_r15_trap_9_headers_do_not_grow_however_often_a_record_is_dead_lettered_and_trap_8_it_goes_back_once(
    house: Callable[..., House],
) -> None:
    shop = house(sink="queue")
    shop.produce(b"{}", headers=[("theirs", b"1")])
    for _ in range(ROUNDS):
        await shop.work()
        async with wiring.desk(shop.settings(), local("test")) as desk:
            first, again = await desk.reprocess(shop.dead), await desk.reprocess(shop.dead)
        assert (first.total, again.total) == (1, 0)
    await shop.work()

    names = [[name for name, _ in each.headers()] for each in shop.lying_dead()]
    sizes = [sum(len(value or b"") for _, value in each.headers()) for each in shop.lying_dead()]
    assert len(names) == ROUNDS + 1
    assert names == names[:1] * len(names)
    assert max(sizes) - min(sizes) < 16  # numbers and times of other lengths


async def test_a_record_of_a_plain_producer_that_is_redriven_to_its_topic_is_read_by_java_as_it_was(
    house: Callable[..., House],
) -> None:
    theirs = [("a", b"1"), ("b", b"\xff\x00"), ("a", None), ("a", b""), ("é", b"2")]
    shop = house()
    shop.produce(None, key=b"", headers=theirs)
    await shop.work()
    async with wiring.desk(shop.settings(), local("test")) as desk:
        [letter] = await desk.letters(LetterQuery())
        await desk.retry([letter.id], to_origin=True)

    before, after = shop.server.java_read(shop.queue, 2)

    assert (before.key, before.value, before.headers) == (b"", None, theirs)
    assert (after.key, after.value, after.headers[: len(theirs)]) == (b"", None, theirs)
    ours = [name for name, _ in after.headers[len(theirs) :]]
    assert ours
    assert all(name.startswith("x-redrive") for name in ours), ours


@pytest.fixture
async def transport(kafka: KafkaServer) -> AsyncIterator[KafkaTransport]:
    milliseconds = round(MAX_POLL * 1000)
    opened = KafkaTransport(
        kafka.url,
        group=kafka.topic_name(),
        plan=TopicPlan(partitions=1),
        client={
            "max.poll.interval.ms": milliseconds,
            "session.timeout.ms": milliseconds,
            "heartbeat.interval.ms": 300,
        },
    )
    yield opened
    await opened.close()


async def test_r18_neither_a_long_handler_nor_a_long_retry_wait_exceeds_the_poll_interval(
    transport: KafkaTransport, kafka: KafkaServer
) -> None:
    queue = kafka.topic_name()
    for _ in range(3):
        await transport.send(a_message(queue=queue))
    receiving = transport.receive(queue, prefetch=1)
    waiting = await anext(receiving)
    await transport.retry(waiting, waiting.message, delay=MAX_POLL + 1, trail=b"")
    held = await anext(receiving)
    began = time.monotonic()
    await until(lambda: time.monotonic() > began + MAX_POLL + 1)
    await transport.ack(held)  # LeaseLost, if the broker had taken it for dead

    third = await anext(receiving)
    await transport.ack(third)
    again = await anext(receiving)

    assert (again.message.id, again.attempt) == (waiting.message.id, 2)
    assert not [each for each in (third, again) if each.redelivered]
    await transport.ack(again)
    await receiving.aclose()


async def test_no_record_is_handed_out_further_ahead_of_the_slowest_than_the_span(
    transport: KafkaTransport, kafka: KafkaServer
) -> None:
    """So much at most is repeated after a death, however long one handler takes; and the order is kept."""
    queue, prefetch, span = kafka.topic_name(), 10, 100
    for _ in range(3 * span):
        await transport.send(a_message(queue=queue))
    receiving = transport.receive(queue, prefetch=prefetch)
    slowest = await anext(receiving)
    partition = transport._subscriptions[queue].held[queue, 0]
    came = [slowest.receipt.record.offset]
    while len(came) < span:
        came.append((await _acked(transport, receiving)).receipt.record.offset)
    further = asyncio.ensure_future(_acked(transport, receiving))
    await until(lambda: bool(partition.pending) and not partition.in_turn)

    assert not further.done()
    assert partition.watermark == came[0]
    await transport.ack(slowest)
    came.append((await further).receipt.record.offset)
    while len(came) < 3 * span:
        came.append((await _acked(transport, receiving)).receipt.record.offset)
    assert came == list(range(3 * span))
    await receiving.aclose()


async def _acked(transport: KafkaTransport, receiving: AsyncIterator[Delivery]) -> Delivery:
    delivery = await anext(receiving)
    await transport.ack(delivery)
    return delivery


async def test_how_much_lies_in_a_topic_can_be_asked_while_it_is_being_made(kafka: KafkaServer) -> None:
    transport = KafkaTransport(kafka.url, group=kafka.topic_name())

    async def make_and_look() -> int:
        queue = kafka.topic_name()
        sending = asyncio.create_task(transport.send(a_message(queue=queue)))
        while not sending.done():
            await transport.depths([queue])
        await sending
        return (await transport.depths([queue]))[queue].ready

    try:
        assert [await make_and_look() for _ in range(10)] == [1] * 10
    finally:
        await transport.close()
