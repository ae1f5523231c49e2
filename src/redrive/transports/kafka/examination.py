"""What is wrong with a cluster, by what it tells of itself: no I/O, the same facts give the same findings.

What may lose a message, or keeps one from being written, is a problem; what makes it less safe is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from redrive.finding import Finding, ok, problem, warn
from redrive.transports.kafka.cluster_facts import ClusterFacts
from redrive.transports.kafka.examined_topic import (
    examine_beside,
    examine_dead_letters,
    examine_topic,
    examine_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redrive.transports.kafka.cluster_facts import TopicFacts

_FINE = "nothing found that may lose a message"


class ExaminedQueue(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    dead: str
    retries: Mapping[str, float]
    """How long messages wait in each, in seconds. The first is always needed; others may not be there."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    facts: ClusterFacts
    queues: tuple[ExaminedQueue, ...]
    uncollected: Mapping[str, int] = {}
    """Of dead-letter topics that nobody reads."""
    declares: bool = True
    """What is missing is made by who needs it."""

    def topic(self, name: str) -> TopicFacts | None:
        return self.facts.topics.get(name)


def examine(looked: Looked) -> list[Finding]:
    """The brokers first, then queue by queue; a topic with nothing to say about it gets one finding that says so.
    What is to say of several retry topics of a queue is said once.
    """
    found = list(_brokers(looked))
    for queue in looked.queues:
        found += _missing(looked, queue)
        found += _queue(looked, queue)
        found += _retries(looked, queue)
        found += _dead_letters(looked, queue)
    return found


def _brokers(looked: Looked) -> Iterator[Finding]:
    names = [name for each in looked.queues for name in (each.name, *each.retries, each.dead)]
    there = [topic for name in names if (topic := looked.topic(name)) is not None]
    holders = {broker for topic in there for each in topic.partitions for broker in each.replicas}
    for broker in sorted(holders - looked.facts.brokers):
        yield warn("brokers", f"broker {broker} is away, which should have copies of messages", "start it")
    count = len(looked.facts.brokers)
    yield ok("broker", f"cluster {looked.facts.cluster} answers, with {count} broker{'' if count == 1 else 's'}")


def _missing(looked: Looked, queue: ExaminedQueue) -> Iterator[Finding]:
    if looked.topic(queue.name) is None:
        yield problem(
            "topic",
            "does not exist: nobody can send to it",
            "run `redrive setup`" + ("; a worker makes it when it starts" if looked.declares else ""),
            queue=queue.name,
        )
    needed = () if looked.declares else (next(iter(queue.retries)), queue.dead)
    for name in needed:
        if looked.topic(name) is None:
            what = 'does not exist, and with declare = "never" nobody makes it when it is needed'
            yield problem("topic", what, "run `redrive setup`", queue=name)


def _queue(looked: Looked, queue: ExaminedQueue) -> list[Finding]:
    topic = looked.topic(queue.name)
    return [] if topic is None else list(examine_topic(topic)) or [ok("topic", _FINE, queue=queue.name)]


def _dead_letters(looked: Looked, queue: ExaminedQueue) -> list[Finding]:
    topic, home = looked.topic(queue.dead), looked.topic(queue.name)
    if topic is None:
        return []
    found = [*examine_topic(topic), *examine_beside(topic, home)]
    found += examine_dead_letters(topic, looked.uncollected.get(queue.dead))
    return found or [ok("topic", _FINE, queue=queue.dead)]


def _retries(looked: Looked, queue: ExaminedQueue) -> list[Finding]:
    home = looked.topic(queue.name)
    found: list[Finding] = []
    for name, delay in queue.retries.items():
        if (topic := looked.topic(name)) is not None:
            told = [*examine_topic(topic), *examine_beside(topic, home), *examine_waiting(topic, delay)]
            found += told or [ok("topic", _FINE, queue=name)]
    return _said_once(found, f"{next(iter(queue.retries))}*")


def _said_once(found: Sequence[Finding], together: str) -> list[Finding]:
    alike: dict[Finding, list[Finding]] = {}
    for each in found:
        alike.setdefault(msgspec.structs.replace(each, queue=None), []).append(each)
    return [several[0] if len(several) == 1 else _of_several(several, together) for several in alike.values()]


def _of_several(several: Sequence[Finding], together: str) -> Finding:
    what = f"of {len(several)} retry topics, each: {several[0].what}"
    return msgspec.structs.replace(several[0], queue=together, what=what)
