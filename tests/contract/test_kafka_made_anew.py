"""A topic that is deleted and made again under a consumer, on a real broker: its offsets begin at 0 again, and
what is written there is no repetition of what was read before.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from redrive.errors import LeaseLost
from redrive.transports.kafka.lags import Lags
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.kafka_server import KafkaServer

BEFORE, AFTER = 6, 4
"""Fewer than before: each of them has an offset that was there already."""


@pytest.fixture
async def transport(kafka: KafkaServer) -> AsyncIterator[KafkaTransport]:
    opened = KafkaTransport(kafka.url, group=kafka.topic_name(), plan=TopicPlan(partitions=1))
    yield opened
    await opened.close()


def _write(kafka: KafkaServer, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": kafka.address})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


async def test_no_record_of_a_topic_that_was_made_anew_is_taken_for_one_that_was_done(
    transport: KafkaTransport, kafka: KafkaServer
) -> None:
    queue = kafka.new_topic()
    came: list[bytes | None] = []
    _write(kafka, queue, [b"old"] * BEFORE)
    receiving = transport.receive(queue, prefetch=100)
    old = [await anext(receiving) for _ in range(BEFORE)]
    for each in old[1:]:
        await transport.ack(each)

    await asyncio.to_thread(kafka.drop_topic, queue)
    await asyncio.to_thread(kafka.make_topic, queue)
    await asyncio.to_thread(_write, kafka, queue, [b"new"] * AFTER)

    while len(came) < AFTER:
        delivery = await anext(receiving)
        await transport.ack(delivery)
        came.append(delivery.message.body)
    assert came == [b"new"] * AFTER
    with pytest.raises(LeaseLost):
        await transport.ack(old[0])
    await until(lambda: _is_done(transport, kafka, queue))
    await receiving.aclose()


async def _is_done(transport: KafkaTransport, kafka: KafkaServer, queue: str) -> bool:
    lags = await Lags(kafka.admin(), within=10).of(transport.group, {queue: 1}, {})
    return not any(lags.values())
