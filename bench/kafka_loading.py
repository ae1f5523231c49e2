"""Fills topics as other people's producers do, and tells how far they and their readers have come."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from bench.peers.messages import order

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.kafka_server import KafkaServer  # found on the path above

PARTITIONS = 6
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_PATIENCE = 60.0
_KEYS = 1000
"""Customers, so many that their orders are about as many in every partition."""


class Topics:
    """Of one broker."""

    def __init__(self, server: KafkaServer) -> None:
        self._server = server
        self._admin: AdminClient = server.admin()
        self._full: set[str] = set()

    def full(self, size: int, records: int) -> str:
        """A topic with so many records of so many bytes, filled when it is asked for first."""
        name = f"orders-{size}-{records}"
        if name not in self._full:
            self._server.make_topic(name, partitions=PARTITIONS)
            self._fill(name, size, records)
            self._full.add(name)
        return name

    def drop_full(self) -> None:
        for name in self._full:
            self._server.drop_topic(name)
        self._full.clear()

    def make(self, name: str) -> None:
        self._server.make_topic(name, partitions=PARTITIONS)

    def drop(self, name: str) -> None:
        self._server.drop_topic(name)

    def ends(self, name: str) -> list[int]:
        """How many records each partition holds; nothing is ever removed from them."""
        asked = {TopicPartition(name, number): _LATEST for number in range(PARTITIONS)}
        found = self._admin.list_offsets(asked)
        return [found[each].result(_PATIENCE).offset for each in asked]

    def committed(self, name: str, group: str) -> list[int]:
        """How far the group is in each partition."""
        partitions = [TopicPartition(name, number) for number in range(PARTITIONS)]
        asked: Any = [ConsumerGroupTopicPartitions(group, partitions)]
        try:
            found = self._admin.list_consumer_group_offsets(asked)[group].result(_PATIENCE).topic_partitions
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return [0] * PARTITIONS
            raise
        reached = {each.partition: max(each.offset, 0) for each in found or ()}
        return [reached.get(number, 0) for number in range(PARTITIONS)]

    def _fill(self, name: str, size: int, records: int) -> None:
        """Plain JSON with a key and without headers; all of it is acknowledged when this returns."""
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, _record: object) -> None:
            if error is not None:
                refused.append(error)

        producer = Producer({"bootstrap.servers": self._server.address, "linger.ms": 50})
        value = json.dumps(order(size)).encode()
        keys = [f"customer-{number}".encode() for number in range(_KEYS)]
        for number in range(records):
            while True:
                try:
                    producer.produce(name, value, keys[number % _KEYS], on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(_PATIENCE) == 0, "the broker does not acknowledge what fills the topic"
        assert not refused, refused[0]
        assert sum(self.ends(name)) == records
