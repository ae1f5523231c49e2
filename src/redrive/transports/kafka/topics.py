"""The topics that are there, and making those that are missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from redrive.errors import ConfigurationError, PublishRefused, RedriveError
from redrive.transports.kafka.client_errors import IMPOSSIBLE, error_in, explained

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_LONGEST_NAME = 249
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
USUAL_SIZE = 1048588
"""Kafka's own default of max.message.bytes."""
SIZE, RETENTION = "max.message.bytes", "retention.ms"
_SOON = 0.05
OVERHEAD = 128 * 1024
"""Bytes that a topic beside a queue takes more than the queue itself, for what is told of a failure."""


class TopicPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How topics are made that are missing."""

    partitions: int = 6
    replication: int = -1
    """-1: as the brokers have it by default."""
    max_message_bytes: int | None = None
    """None: as the brokers have it by default; a topic beside a queue takes a little more than that."""
    retention: float | None = None
    """Seconds, of topics beside a queue. None: as the brokers have it by default."""


class Topic(msgspec.Struct, frozen=True):
    name: str
    partitions: int
    max_bytes: int = USUAL_SIZE


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it is to be made."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str] = {}

    @property
    def arguments(self) -> dict[str, int | str]:
        """What is asked for; the rest is as the brokers have it."""
        copies = {} if self.replication < 0 else {"replication": self.replication}
        return {"partitions": self.partitions, **copies, **self.config}

    def asked(self) -> NewTopic:
        return NewTopic(self.name, self.partitions, self.replication, config=dict(self.config))


def spec_of_queue(name: str, plan: TopicPlan) -> TopicSpec:
    largest = plan.max_message_bytes
    config = {} if largest is None else {SIZE: str(largest)}
    return TopicSpec(name=name, partitions=plan.partitions, replication=plan.replication, config=config)


def spec_beside(name: str, home: Topic, plan: TopicPlan) -> TopicSpec:
    """For retries or dead letters of `home`: what is in one of its partitions fits into the same one there."""
    config = {SIZE: str(home.max_bytes + OVERHEAD)}
    if plan.retention is not None:
        config[RETENTION] = str(round(plan.retention * 1000))
    return TopicSpec(name=name, partitions=home.partitions, replication=plan.replication, config=config)


def check_name(name: str) -> None:
    if name in {"", ".", ".."} or len(name) > _LONGEST_NAME or not _ALLOWED.issuperset(name):
        raise PublishRefused(
            f"{name[:80]!r} cannot be the name of a topic",
            permanent=True,
            remedy="use at most 249 letters, digits, dots, hyphens and underscores",
        )


class Topics:
    def __init__(self, admin: AdminClient, plan: TopicPlan, *, declare: bool, within: float) -> None:
        self._admin = admin
        self._plan = plan
        self._declare = declare
        self._within = within
        self._known: dict[str, Topic] = {}
        self._cluster = ""
        self._turn = asyncio.Lock()

    async def cluster(self) -> str:
        """The cluster's own id."""
        if not self._cluster:
            metadata = await self._asked(lambda: self._admin.list_topics(timeout=self._within))
            self._cluster = metadata.cluster_id or ""
        return self._cluster

    def known(self, name: str) -> Topic | None:
        return self._known.get(name)

    def forget(self, name: str) -> None:
        """It may have been deleted, or changed."""
        self._known.pop(name, None)

    async def ensured(self, name: str, *, home: str | None = None) -> Topic:
        """The topic, made if it is missing and may be made: like that of `home`, the queue it belongs to."""
        check_name(name)
        found = self._known.get(name)
        if found is None:
            async with self._turn:
                found = self._known.get(name) or await self._look(name) or await self._make(name, home)
        return found

    async def look(self, name: str) -> Topic | None:
        """None if it is not there."""
        return self._known.get(name) or await self._look(name)

    async def names(self) -> dict[str, int]:
        """Of all topics, with their numbers of partitions."""
        metadata = await self._asked(lambda: self._admin.list_topics(timeout=self._within))
        return {name: len(each.partitions) for name, each in metadata.topics.items() if each.error is None}

    async def _look(self, name: str) -> Topic | None:
        metadata = await self._asked(lambda: self._admin.list_topics(name, timeout=self._within))
        told = metadata.topics.get(name)
        if told is None or not told.partitions:
            if told is not None and _is_forbidden(told.error):
                raise explained(KafkaException(told.error))
            return None
        self._known[name] = Topic(name, len(told.partitions), await self._largest(name))
        return self._known[name]

    async def _largest(self, name: str) -> int:
        resource = ConfigResource(ResourceType.TOPIC, name)
        try:
            future = self._admin.describe_configs([resource], request_timeout=self._within)[resource]
            return int((await self._asked(future.result))[SIZE].value)
        except (RedriveError, KeyError, TypeError, ValueError):
            return USUAL_SIZE  # who may write need not be allowed to look

    async def _make(self, name: str, home: str | None) -> Topic:
        if not self._declare:
            raise ConfigurationError(f"there is no topic {name!r}", remedy="make it: redrive setup")
        like = None if home is None else await self.look(home)
        wanted = spec_of_queue(name, self._plan) if like is None else spec_beside(name, like, self._plan)
        await self._create(wanted)
        while (made := await self._look(name)) is None:  # noqa: ASYNC110  the broker tells only who asks
            await asyncio.sleep(_SOON)
        return made

    async def _create(self, wanted: TopicSpec) -> None:
        future = self._admin.create_topics([wanted.asked()], request_timeout=self._within)[wanted.name]
        try:
            await asyncio.to_thread(future.result)
        except KafkaException as raised:
            if error_in(raised).code() in IMPOSSIBLE:
                raise ConfigurationError(
                    f"the brokers do not make topic {wanted.name!r}: {error_in(raised).str()}",
                    remedy="correct partitions, replication, retention or max_message_bytes in [broker.kafka]",
                ) from None
            if error_in(raised).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise explained(raised) from None

    async def _asked(self, question: Any) -> Any:
        try:
            return await asyncio.to_thread(question)
        except KafkaException as raised:
            raise explained(raised) from None


def _is_forbidden(error: KafkaError | None) -> bool:
    return error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
