"""What the brokers tell of topics and consumer groups, and making topics: for those who set up, or only look."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from redrive.errors import RedriveError
from redrive.transports.kafka.client_errors import error_in, explained
from redrive.transports.kafka.cluster_facts import ClusterFacts, PartitionFacts, TopicFacts
from redrive.transports.kafka.topics import USUAL_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from redrive.transports.kafka.topics import TopicSpec

_SEVERAL = 100


class CreationRefused(RedriveError):
    """The brokers will not make this topic, as it is asked for or at all."""


class Administration:
    """Every method raises Unreachable when the brokers are away."""

    def __init__(self, admin: AdminClient, *, within: float) -> None:
        self._admin = admin
        self._within = within

    async def cluster(self, configured: Callable[[str], bool] = lambda _name: False) -> ClusterFacts:
        """Every topic that is not the brokers' own; with its settings where those are wanted."""
        metadata = await self._asked(lambda: self._admin.list_topics(timeout=self._within))
        told = {name: each for name, each in metadata.topics.items() if each.error is None and name[:2] != "__"}
        configs = await self.configs([name for name in told if configured(name)])
        return ClusterFacts(
            cluster=metadata.cluster_id or "",
            brokers=frozenset(metadata.brokers),
            topics={name: _topic(name, each, configs.get(name)) for name, each in told.items()},
        )

    async def configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """Without those of topics whose settings this user may not see."""
        found: dict[str, dict[str, str]] = {}
        names = list(topics)
        for start in range(0, len(names), _SEVERAL):
            wanted = [ConfigResource(ResourceType.TOPIC, name) for name in names[start : start + _SEVERAL]]
            for resource, future in self._admin.describe_configs(wanted, request_timeout=self._within).items():
                if (told := await self._settings(future)) is not None:
                    found[resource.name] = told
        return found

    async def usual_size(self, broker: int) -> int:
        """The largest message of a topic that says nothing else."""
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        told = await self._settings(
            self._admin.describe_configs([resource], request_timeout=self._within)[resource]
        )
        size = (told or {}).get("message.max.bytes", "")
        return int(size) if size.isdecimal() else USUAL_SIZE

    async def create(self, spec: TopicSpec) -> None:
        """CreationRefused, with the brokers' words. One that is there by now is left as it is."""
        future = self._admin.create_topics([spec.asked()], request_timeout=self._within)[spec.name]
        try:
            await asyncio.to_thread(future.result)
        except KafkaException as raised:
            error = error_in(raised)
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if error.code() < 0 or error.retriable():  # librdkafka's own: nobody has answered
                raise explained(raised) from None
            raise CreationRefused(f"{error.str()} ({error.name()})") from None

    async def consumers(self, group: str) -> dict[str, int]:
        """How many members of the group have each topic. Nobody is in a group that does not exist."""
        future = self._admin.describe_consumer_groups([group], request_timeout=self._within)[group]
        try:
            told = await asyncio.to_thread(future.result)
        except KafkaException as raised:
            if error_in(raised).code() == KafkaError.GROUP_ID_NOT_FOUND:
                return {}
            raise explained(raised) from None
        found: dict[str, int] = {}
        for member in told.members:
            for topic in {each.topic for each in member.assignment.topic_partitions}:
                found[topic] = found.get(topic, 0) + 1
        return found

    async def read_by(self, group: str) -> set[str]:
        """Topics in which the group has committed something."""
        wanted = ConsumerGroupTopicPartitions(group)
        future = self._admin.list_consumer_group_offsets([wanted], request_timeout=self._within)[group]
        told = await self._asked(future.result)
        return {each.topic for each in told.topic_partitions or () if each.offset >= 0}

    async def readers(self, topics: set[str]) -> tuple[str, ...]:
        """The groups that have committed something in one of these topics."""
        told = await self._asked(self._admin.list_consumer_groups(request_timeout=self._within).result)
        groups = sorted(each.group_id for each in told.valid)
        return tuple([each for each in groups if topics & await self.read_by(each)])

    async def _settings(self, future: Future[Any]) -> dict[str, str] | None:
        try:
            told = await asyncio.to_thread(future.result)
        except KafkaException as raised:
            if error_in(raised).code() < 0:
                raise explained(raised) from None
            return None
        return {name: entry.value for name, entry in told.items() if entry.value is not None}

    async def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return await asyncio.to_thread(question)
        except KafkaException as raised:
            raise explained(raised) from None


def _topic(name: str, told: Any, config: dict[str, str] | None) -> TopicFacts:
    partitions = sorted(told.partitions.items())
    return TopicFacts(
        name=name,
        partitions=tuple(
            PartitionFacts(leader=each.leader, replicas=tuple(each.replicas), in_sync=tuple(each.isrs))
            for _, each in partitions
        ),
        config=config,
    )
