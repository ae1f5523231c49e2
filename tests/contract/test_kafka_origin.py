"""A record of another program, sent back to the topic from which it came: every group of that topic reads it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from redrive.transports.kafka.transport import KafkaTransport
from support.patience import until

if TYPE_CHECKING:
    from support.kafka_server import KafkaServer


async def test_to_its_origin_a_record_goes_for_every_group(kafka: KafkaServer) -> None:
    topic = kafka.new_topic(partitions=3)
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"1"), ("trace", None)]
    producer = Producer({"bootstrap.servers": kafka.address})
    producer.produce(topic, value=b"order", key=b"k", headers=headers, partition=2)
    producer.flush()
    async with AsyncExitStack() as closing:
        groups = [KafkaTransport(kafka.url, group=f"{name}-{topic}") for name in ("billing", "audit")]
        receiving = [each.receive(topic, prefetch=2) for each in groups]
        for transport, deliveries in zip(groups, receiving, strict=True):
            closing.push_async_callback(transport.close)
            closing.push_async_callback(deliveries.aclose)
        first = [await anext(each) for each in receiving]
        await groups[0].send_to_origin(first[0].message)
        again = [await anext(each) for each in receiving]

        async def readers() -> bool:
            return await groups[0].readers_of_origin([topic]) == (f"audit-{topic}", f"billing-{topic}")

        await until(readers)  # as soon as the commits are made
        assert await groups[0].readers_of_origin([f"{topic}-other"]) == ()
    assert {(each.message.payload, each.message.key) for each in (*first, *again)} == {(b"order", b"k")}
    assert {each.message.headers for each in again} == {first[0].message.headers}
    assert [each.identity for each in again] != [each.identity for each in first]
    records = kafka.java_read(topic, 2)
    assert [(each.partition, each.offset) for each in records] == [(2, 0), (2, 1)]
