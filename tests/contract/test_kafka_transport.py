"""The transport's contract on a real Kafka: a topic of one partition per test, and a consumer group of its own.
Once with retries that are set aside, once with those that their partition waits behind.
"""

from __future__ import annotations

import pytest

from redrive.testing import ManualClock
from redrive.testing.transport_contract import TransportContract
from redrive.transports import Transport
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.kafka_server import KafkaServer


class KafkaContract(TransportContract):
    retry_topics = "per-delay"

    @pytest.fixture(autouse=True)
    def _broker(self, kafka: KafkaServer) -> None:
        self.url, self.clock = kafka.url, ManualClock()

    async def make_transport(self) -> Transport:
        plan = TopicPlan(partitions=1, max_message_bytes=2 * 2**20)
        return KafkaTransport(
            self.url,
            group=f"group-{self.queue}",
            plan=plan,
            clock=self.clock,
            retry_topics=self.retry_topics,
        )

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)


class TestKafka(KafkaContract):
    pass


class TestKafkaBlocking(KafkaContract):
    retry_topics = "blocking"
