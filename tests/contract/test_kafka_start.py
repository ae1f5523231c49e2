"""Where a consumer group begins that has never committed anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from redrive.testing.letters import a_message
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.kafka_server import KafkaServer


@pytest.fixture
async def latest(kafka: KafkaServer) -> AsyncIterator[KafkaTransport]:
    transport = KafkaTransport(
        kafka.url, group=f"group-{kafka.topic_name()}", plan=TopicPlan(partitions=1), start="latest"
    )
    yield transport
    await transport.close()


async def test_from_the_latest_what_was_there_before_is_passed_over_and_no_retry_ever_is(
    latest: KafkaTransport, kafka: KafkaServer
) -> None:
    queue = kafka.topic_name()
    before = a_message(queue=queue)
    await latest.send(before)
    receiving = latest.receive(queue, prefetch=1)
    coming = asyncio.create_task(anext(receiving))
    await until(lambda: queue in _assigned(latest, queue))
    after = a_message(queue=queue)
    await latest.send(after)

    first = await coming
    await latest.retry(first, first.message, delay=0.1, trail=b"")  # into a topic that is made for it
    again = await anext(receiving)

    assert before.id not in {first.message.id, again.message.id}
    assert (first.message.id, again.message.id, again.attempt) == (after.id, after.id, 2)
    await latest.ack(again)
    await receiving.aclose()


async def test_dead_letters_are_always_collected_from_the_first_on(
    latest: KafkaTransport, kafka: KafkaServer
) -> None:
    dead = f"{kafka.topic_name()}_dlq"
    message = a_message(queue="orders")
    await latest.send(message, queue=dead)
    receiving = latest.receive(dead, prefetch=1)
    got = await anext(receiving)
    assert got.message.id == message.id
    await latest.ack(got)
    await receiving.aclose()


def _assigned(transport: KafkaTransport, queue: str) -> set[str]:
    reading = transport._subscriptions.get(queue)
    return set() if reading is None else {topic for topic, _ in reading.held}
