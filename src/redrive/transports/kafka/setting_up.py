"""Looks at the topics of a queue, and makes those that are missing. What exists is never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.transports import setup
from redrive.transports.kafka.administration import CreationRefused
from redrive.transports.kafka.topics import SIZE, Topic, TopicPlan, TopicSpec, spec_beside, spec_of_queue
from redrive.transports.setup import PlainDifference, PlainExamined, PlainFound, PlainStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.transports.kafka.administration import Administration
    from redrive.transports.kafka.cluster_facts import ClusterFacts, TopicFacts

_REPLICAS = "replication is changed by kafka-reassign-partitions.sh"
_PARTITIONS = (
    "kafka-topics.sh --alter adds partitions, and keys then go to other ones; for fewer, delete it and run setup"
)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The topics of one queue."""

    queue: str
    dead: str
    retries: dict[str, str]
    """What each is for, by name."""
    delays: frozenset[str]
    """Those of them in which messages wait equally long."""
    plan: TopicPlan
    compared: frozenset[str] = frozenset()
    """What an existing queue is compared in; topics beside it are compared with the queue."""
    usual_size: int


def examine(facts: ClusterFacts, wanted: Wanted) -> PlainExamined:
    there = facts.topics.get(wanted.queue)
    own = spec_of_queue(wanted.queue, wanted.plan)
    size = wanted.plan.max_message_bytes or wanted.usual_size
    home = Topic(wanted.queue, own.partitions, size) if there is None else there.as_topic
    things = [_found(facts, PlainStep("messages", own), wanted.compared)]
    beside = {**wanted.retries, wanted.dead: "dead letters"}
    for name, role in beside.items():
        step = PlainStep(role, spec_beside(name, home, wanted.plan), delays=name in wanted.delays)
        things.append(_found(facts, step, frozenset(step.thing.arguments)))
    return PlainExamined(wanted.queue, tuple(things))


async def complete(administration: Administration, examined: PlainExamined) -> PlainExamined:
    return await setup.complete(examined, administration.create, CreationRefused)


def _found(facts: ClusterFacts, step: PlainStep, compared: frozenset[str]) -> PlainFound:
    there = facts.topics.get(step.thing.name)
    return setup.found(step, None if there is None else _differences(there, step.thing, compared))


def _differences(there: TopicFacts, wanted: TopicSpec, compared: frozenset[str]) -> Iterator[PlainDifference]:
    is_now = {"partitions": len(there.partitions), "replication": there.replication}
    for name, asked in wanted.arguments.items():
        current = is_now.get(name, there.number(name))
        if name not in compared or current is None or current == int(asked):
            continue
        if name != SIZE or current < int(asked):  # what takes more is as good
            yield PlainDifference(name, current, int(asked), _remedy(name, int(asked)))


def _remedy(argument: str, wanted: int) -> str:
    if argument == "partitions":
        return _PARTITIONS
    if argument == "replication":
        return _REPLICAS
    return f"kafka-configs.sh --alter --add-config {argument}={wanted} changes it while it is used"
