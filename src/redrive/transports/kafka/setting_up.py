"""Looks at the topics of a queue, and makes those that are missing. What exists is never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from redrive.transports.kafka.administration import CreationRefused
from redrive.transports.kafka.topics import SIZE, Topic, TopicPlan, TopicSpec, spec_beside, spec_of_queue
from redrive.transports.setup import Look, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.transports.kafka.administration import Administration
    from redrive.transports.kafka.cluster_facts import ClusterFacts, TopicFacts

_REPLICAS = "replication is changed by kafka-reassign-partitions.sh"
_PARTITIONS = (
    "kafka-topics.sh --alter adds partitions, and keys then go to other ones; for fewer, delete it and run setup"
)


class Difference(msgspec.Struct, frozen=True):
    argument: str
    current: Any
    wanted: Any

    def __str__(self) -> str:
        return f"{self.argument} is {self.current}, wanted is {self.wanted}"

    @property
    def remedy(self) -> str:
        if self.argument == "partitions":
            return _PARTITIONS
        if self.argument == "replication":
            return _REPLICAS
        return f"kafka-configs.sh --alter --add-config {self.argument}={self.wanted} changes it while it is used"


class Step(msgspec.Struct, frozen=True):
    role: str
    thing: TopicSpec
    delays: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One topic, and how it is."""

    step: Step
    state: State
    look: Look | None = None
    differences: tuple[Difference, ...] = ()
    refusal: str = ""


class Examined(msgspec.Struct, frozen=True):
    """The topics of one queue, in the order in which they are made."""

    queue: str
    things: tuple[Found, ...]


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


def examine(facts: ClusterFacts, wanted: Wanted) -> Examined:
    there = facts.topics.get(wanted.queue)
    own = spec_of_queue(wanted.queue, wanted.plan)
    size = wanted.plan.max_message_bytes or wanted.usual_size
    home = Topic(wanted.queue, own.partitions, size) if there is None else there.as_topic
    found = [_found(facts, Step("messages", own), wanted.compared)]
    beside = {**wanted.retries, wanted.dead: "dead letters"}
    for name, role in beside.items():
        step = Step(role, spec_beside(name, home, wanted.plan), delays=name in wanted.delays)
        found.append(_found(facts, step, frozenset(step.thing.arguments)))
    return Examined(wanted.queue, tuple(found))


async def complete(administration: Administration, examined: Examined) -> Examined:
    """What the brokers refuse does not keep it from the rest."""
    return Examined(examined.queue, tuple([await _complete(administration, each) for each in examined.things]))


def _found(facts: ClusterFacts, step: Step, compared: frozenset[str]) -> Found:
    there = facts.topics.get(step.thing.name)
    if there is None:
        return Found(step=step, state=State.MISSING)
    differences = tuple(_differences(there, step.thing, compared))
    return Found(step=step, state=State.DIFFERS if differences else State.EXISTS, differences=differences)


def _differences(there: TopicFacts, wanted: TopicSpec, compared: frozenset[str]) -> Iterator[Difference]:
    is_now = {"partitions": len(there.partitions), "replication": there.replication}
    for name, asked in wanted.arguments.items():
        current = is_now.get(name, there.number(name))
        if name not in compared or current is None or current == int(asked):
            continue
        if name != SIZE or current < int(asked):  # what takes more is as good
            yield Difference(name, current, int(asked))


async def _complete(administration: Administration, found: Found) -> Found:
    if found.state is not State.MISSING:
        return found
    try:
        await administration.create(found.step.thing)
    except CreationRefused as refused:
        return Found(step=found.step, state=State.REFUSED, refusal=str(refused))
    return Found(step=found.step, state=State.MADE)
