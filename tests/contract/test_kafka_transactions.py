"""A topic that is written in transactions: what was rolled back is not seen, and their marks are no work left."""

from __future__ import annotations

from contextlib import aclosing

from confluent_kafka import Producer

from redrive.transports.kafka.transport import KafkaTransport
from support.kafka_server import KafkaServer
from support.patience import until


async def test_a_topic_of_transactions_is_done_when_its_records_are(kafka: KafkaServer) -> None:
    topic = kafka.new_topic()
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions()
    for body, committed in ((b"one", True), (b"gone", False), (b"two", True)):
        producer.begin_transaction()
        producer.produce(topic, body)
        producer.flush()
        producer.commit_transaction() if committed else producer.abort_transaction()
    transport = KafkaTransport(kafka.url, group=topic)
    try:
        async with aclosing(transport.receive(topic, prefetch=10)) as deliveries:
            taken = [await anext(deliveries), await anext(deliveries)]
            assert [each.message.body for each in taken] == [b"one", b"two"]
            for each in taken:
                await transport.ack(each)

            async def empty() -> bool:
                return not await transport.depths([topic])

            await until(empty)
    finally:
        await transport.close()
    again = KafkaTransport(kafka.url, group=topic)
    try:
        assert await again.depths([topic]) == {}, "it was committed"
    finally:
        await again.close()
