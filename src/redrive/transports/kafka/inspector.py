"""Kafka, looked at. Nothing is made, committed or read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from redrive.finding import warn
from redrive.transports.delays import LADDER
from redrive.transports.inspection import ExpectedQueue, Figures, QueueFigures
from redrive.transports.kafka.examination import ExaminedQueue, Looked, examine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from redrive.finding import Finding
    from redrive.transports import QueueDepth, Transport
    from redrive.transports.inspection import Expected
    from redrive.transports.kafka.administration import Administration
    from redrive.transports.kafka.cluster_facts import ClusterFacts

    class KafkaTransport(Transport, Protocol):
        def administration(self) -> Administration: ...

        @property
        def group(self) -> str: ...

        def group_of(self, topic: str) -> str: ...

        def retry_topics(self, queue: str) -> tuple[str, ...]: ...


class KafkaInspector:
    """`declares`: what is missing is made by who needs it. `named`: the consumer group was named by somebody."""

    def __init__(self, _url: str, transport: KafkaTransport, *, declares: bool = True, named: bool = True) -> None:
        self._transport = transport
        self._names = transport.names
        self._declares = declares
        self._named = named

    async def findings(self, expected: Expected) -> list[Finding]:
        administration = self._transport.administration()
        chosen = expected.queues or [ExpectedQueue(name=name) for name in await self._read_by_us(administration)]
        queues = tuple(map(self._examined, chosen))
        own = {name for each in queues for name in (each.name, *each.retries, each.dead)}
        facts = await administration.cluster(configured=own.__contains__)
        uncollected = await self._uncollected(administration, [each.name for each in queues], facts)
        looked = Looked(facts=facts, queues=queues, uncollected=uncollected, declares=self._declares)
        return [*self._group_is_named(), *examine(looked)]

    async def figures(self, queues: Collection[str] = (), *, known: Collection[str] = ()) -> Figures:
        """A cluster has topics of many teams: unless some are named, those that our consumer group has read."""
        administration = self._transport.administration()
        chosen = queues or sorted({*known, *await self._read_by_us(administration)})
        homes = list(dict.fromkeys(self._names.home_of_dead(name) or name for name in chosen))
        facts = await administration.cluster()
        depths = await self._transport.depths(homes)
        consumers = await self._consumers(administration, homes)
        shown = [
            _figures(name, depths.get(name), max(consumers.get(topic, 0) for topic in topics))
            for name, topics in sorted(self._rows(homes, facts).items())
        ]
        told = f"only topics that the consumer group {self._transport.group!r} has read are looked at"
        incomplete = "" if queues else f"{told}, and those that are named"
        return Figures(queues=tuple(shown), incomplete=incomplete)

    async def close(self) -> None:
        """The transport is its caller's."""

    def _group_is_named(self) -> list[Finding]:
        if self._named:
            return []
        what = f"the consumer group is {self._transport.group!r}, as that of everybody who names none"
        return [warn("group", what, "set app.name, or broker.kafka.group")]

    def _examined(self, queue: ExpectedQueue) -> ExaminedQueue:
        first, *others = self._transport.retry_topics(queue.name)
        waits = {first: 0.0 if others else queue.waits}
        if others:
            waits |= {name: milliseconds / 1e3 for name, milliseconds in zip(others, LADDER, strict=True)}
        return ExaminedQueue(name=queue.name, dead=self._names.dead_of(queue.name), retries=waits)

    async def _read_by_us(self, administration: Administration) -> list[str]:
        """Queues alone: what is beside one is looked at with it."""
        read = await administration.read_by(self._transport.group)
        beside = {each for name in read for each in self._transport.retry_topics(name)}
        return sorted(read - beside)

    async def _uncollected(
        self, administration: Administration, queues: Iterable[str], facts: ClusterFacts
    ) -> dict[str, int]:
        dead = [name for name in map(self._names.dead_of, queues) if name in facts.topics]
        if not dead:
            return {}
        collected = await administration.consumers(self._transport.group_of(dead[0]))
        alone = [name for name in dead if name not in collected]
        return (
            {name: depth.ready for name, depth in (await self._transport.depths(alone)).items()} if alone else {}
        )

    async def _consumers(self, administration: Administration, queues: Iterable[str]) -> dict[str, int]:
        groups = {self._transport.group, *(self._transport.group_of(self._names.dead_of(each)) for each in queues)}
        found: dict[str, int] = {}
        for group in groups:
            found |= await administration.consumers(group)
        return found

    def _rows(self, queues: Iterable[str], facts: ClusterFacts) -> dict[str, tuple[str, ...]]:
        """What is shown, each with its topics that are there: those of retries are one."""
        rows: dict[str, tuple[str, ...]] = {}
        for name in queues:
            dead = self._names.dead_of(name)
            rows |= {name: (name,), dead: (dead,), self._names.retry_of(name): self._transport.retry_topics(name)}
        there = {name: tuple(each for each in topics if each in facts.topics) for name, topics in rows.items()}
        return {name: topics for name, topics in there.items() if topics}


def _figures(name: str, depth: QueueDepth | None, consumers: int) -> QueueFigures:
    return QueueFigures(
        name=name,
        type="topic",
        ready=depth.ready if depth else 0,
        delayed=depth.delayed if depth else 0,
        consumers=consumers,
    )
