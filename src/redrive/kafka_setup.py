"""`redrive setup` on Kafka: see `broker_setup`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from redrive import wiring
from redrive.app import App
from redrive.broker_setup import BrokerExamined
from redrive.duration import short
from redrive.kafka_wiring import group, is_group_named, topic_plan
from redrive.planning import plan
from redrive.retry_waits import waits_of
from redrive.transports.kafka.retry_topics import RetryTopics
from redrive.transports.kafka.setting_up import Wanted, complete, examine
from redrive.transports.kafka.topics import check_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from redrive.settings import Settings
    from redrive.transports.kafka.administration import Administration
    from redrive.transports.kafka.transport import KafkaTransport
    from redrive.transports.setup import PlainExamined

_COMPARED = {"partitions": "partitions", "replication": "replication", "max_message_bytes": "max.message.bytes"}


class KafkaSetup:
    """Retry topics for every delay of the retry policy are made now: a process that reads a queue learns seconds
    later of a topic that another one makes.
    """

    def __init__(self, settings: Settings, app: App | None, queues: Sequence[str]) -> None:
        self._settings = settings
        self._app = app or App(settings.app.name or "redrive")
        self._name = "" if app is None else app.name
        self._queues = queues
        kafka = settings.broker.kafka
        self._mode = kafka.retry_topics
        # The rest was set by nobody: whoever made the topic had a reason for what it is.
        self._compared = frozenset(_COMPARED[name] for name in _COMPARED if getattr(kafka, name) is not None)

    @property
    def name_in_code_alone(self) -> str:
        return "" if is_group_named(self._settings) else self._name

    async def examine(self) -> BrokerExamined:
        for queue in self._queues:
            check_name(queue)
        async with _administration(self._settings) as administration:
            own = self._own_topics()
            facts = await administration.cluster(configured=own.__contains__)
            size = await administration.usual_size(min(facts.brokers, default=0))
            found = tuple(examine(facts, self._wanted(queue, size)) for queue in self._queues)
        count = len(facts.brokers)
        brokers = f"{count} broker{'' if count == 1 else 's'}"
        return BrokerExamined(f"Kafka, {brokers}, consumer group {group(self._settings)}", found)

    async def complete(self, examined: BrokerExamined) -> BrokerExamined:
        async with _administration(self._settings) as administration:
            mine = cast("tuple[PlainExamined, ...]", examined.queues)
            return BrokerExamined(examined.told, tuple([await complete(administration, each) for each in mine]))

    def _own_topics(self) -> set[str]:
        names = self._settings.broker.names
        beside = {name for queue in self._queues for name in (*self._retries(queue), names.dead_of(queue))}
        return {*self._queues, *beside}

    def _wanted(self, queue: str, usual_size: int) -> Wanted:
        retries = self._retries(queue)
        return Wanted(
            queue=queue,
            dead=self._settings.broker.names.dead_of(queue),
            retries=retries,
            delays=frozenset(list(retries)[1:]),
            plan=topic_plan(self._settings),
            compared=self._compared,
            usual_size=usual_size,
        )

    def _retries(self, queue: str) -> dict[str, str]:
        """Their roles by their names; the first is the one that is always needed."""
        topics = RetryTopics(self._settings.broker.names, self._mode)
        found = {topics.topic(queue, 0.0): "retries" if self._mode == "single" else "redriven messages"}
        for delay in waits_of(plan(self._app, queue, self._settings).policy.retry):
            found.setdefault(topics.topic(queue, delay), f"wait {short(delay)}")
        return found


async def missing_topics(settings: Settings, queues: Sequence[str]) -> list[str]:
    async with _administration(settings) as administration:
        there = (await administration.cluster()).topics
    return [queue for queue in queues if queue not in there]


@asynccontextmanager
async def _administration(settings: Settings) -> AsyncIterator[Administration]:
    async with wiring.producer(settings) as transport:
        yield cast("KafkaTransport", transport).administration()
