"""What a Kafka holds that its consumer groups have not done yet, asked by plain clients and by nothing of the
product's.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from chaos.lab.broker import DEAD, Broker
from redrive.kafka_settings import KafkaSettings
from redrive.secret_table import SecretTable
from redrive.secret_url import SecretUrl
from redrive.settings import BrokerSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_PATIENCE = 60.0
_LOOK_EVERY = 0.02
_LEAVE_GROUP, _VERSION = 13, 1
_AT_ONCE = 1000


class Lying(NamedTuple):
    """A record that is not behind its group's commit."""

    topic: str
    partition: int
    offset: int
    ahead: int
    """Of the commit."""
    message_id: str


@dataclass(frozen=True)
class Kafka(Broker):
    """Topics of a broker that runs. All their names begin with `name`, which is also the consumer group."""

    commits_how_far: ClassVar[bool] = True

    server: str
    name: str
    partitions: int = 3
    session: float = 20.0
    """Seconds after which the broker notices a death of which nobody tells it."""
    revoke_grace: float = 5.0

    @property
    def client(self) -> dict[str, str | int]:
        """For librdkafka: who is left hears of a rebalance with the next heartbeat."""
        return {
            "session.timeout.ms": round(self.session * 1000),
            "heartbeat.interval.ms": 100,
            "topic.metadata.refresh.interval.ms": 1000,
        }

    def settings(self) -> BrokerSettings:
        own = KafkaSettings(
            group=self.name,
            partitions=self.partitions,
            revoke_grace=self.revoke_grace,
            client=SecretTable(self.client),
        )
        return BrokerSettings(url=SecretUrl(f"kafka://{self.server}"), kafka=own)

    def queue(self, name: str) -> str:
        return f"{self.name}-{name}"

    def key(self, message_id: str) -> bytes | None:
        return message_id.encode()

    def messages(self) -> Counter[str]:
        """How many records of each message no group has committed, whatever the topic."""
        return Counter(each.message_id for each in self.left())

    def left(self) -> list[Lying]:
        topics = self._topics()
        dead = {name for name in topics if name.endswith(DEAD)}
        groups = {self.name: topics.keys() - dead, f"{self.name}-dead-letters": dead}
        return [
            each
            for group, names in groups.items()
            if names
            for each in self._left(group, [(name, number) for name in names for number in range(topics[name])])
        ]

    def _topics(self) -> dict[str, int]:
        admin = _admin(self.server)
        told = admin.list_topics(timeout=_PATIENCE).topics
        return {name: len(each.partitions) for name, each in told.items() if name.startswith(self.name)}

    def _left(self, group: str, places: list[tuple[str, int]]) -> list[Lying]:
        consumer = _client().Consumer(
            {
                "bootstrap.servers": self.server,
                "group.id": group,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        with contextlib.closing(consumer):
            told = consumer.committed([_client().TopicPartition(*place) for place in places], timeout=_PATIENCE)
            committed = {(each.topic, each.partition): each.offset for each in told}
            starts, ends = {}, {}
            for place in places:
                low, high = consumer.get_watermark_offsets(_client().TopicPartition(*place), timeout=_PATIENCE)
                start = max(low, committed[place])
                assert committed[place] <= high, f"{group} committed {committed[place]} of {high} in {place}"
                if start < high:
                    starts[place], ends[place] = start, high
            return [
                Lying(topic, partition, offset, offset - starts[topic, partition], _message_id(value))
                for topic, partition, offset, value in _read(consumer, starts, ends)
            ]

    def bury(self, living: Collection[int]) -> None:
        """Tells the broker of every death, instead of waiting until it notices: nobody but the living is in a
        group. Members say their process in their client's id.
        """
        admin, deadline = _admin(self.server), time.monotonic() + _PATIENCE
        for group in (self.name, f"{self.name}-dead-letters"):
            while dead := [each for each in _members(admin, group) if _process(each.client_id) not in living]:
                for member in dead:
                    self._leave(group, member.member_id)
                assert time.monotonic() < deadline, "a consumer that is dead is still there"
                time.sleep(_LOOK_EVERY)

    def expel(self) -> None:
        """Throws everybody out of the group, as the broker does with those who seem dead."""
        for member in _members(_admin(self.server), self.name):
            self._leave(self.name, member.member_id)

    def _leave(self, group: str, member: str) -> None:
        host, _, port = self.server.rpartition(":")
        body = struct.pack(">hhi", _LEAVE_GROUP, _VERSION, 0) + _text("lab") + _text(group) + _text(member)
        with socket.create_connection((host, int(port)), timeout=_PATIENCE) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            connection.recv(64)


def _client() -> Any:
    """The client library is loaded by those who use it: most processes of the lab fork, and never do."""
    return import_module("confluent_kafka")


def _admin(address: str) -> Any:
    return import_module("confluent_kafka.admin").AdminClient({"bootstrap.servers": address})


def _read(
    consumer: Any, starts: dict[tuple[str, int], int], ends: dict[tuple[str, int], int]
) -> Iterable[tuple[str, int, int, bytes | None]]:
    consumer.assign([_client().TopicPartition(*place, start) for place, start in starts.items()])
    waiting, deadline = set(starts), time.monotonic() + _PATIENCE
    while waiting:
        assert time.monotonic() < deadline, f"nothing more comes of {waiting}"
        for record in consumer.consume(_AT_ONCE, 0.05):
            found: Any = record
            assert found.error() is None, found.error()
            place = (found.topic(), found.partition())
            if found.offset() < ends[place]:
                yield *place, found.offset(), found.value()
            if found.offset() + 1 >= ends[place]:
                waiting.discard(place)


def _message_id(value: bytes | None) -> str:
    return str(json.loads(value or b"{}").get("message_id", ""))


def _members(admin: Any, group: str) -> list[Any]:
    try:
        told: Any = admin.describe_consumer_groups([group])[group].result(_PATIENCE)
    except _client().KafkaException:  # nobody was ever in it
        return []
    return list(told.members)


def _process(client_id: str) -> int:
    return int(client_id.rpartition("-")[2])


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded
