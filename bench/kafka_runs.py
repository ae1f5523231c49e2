"""One run of one peer on Kafka: a new consumer group, an empty topic of dead letters, a process."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from bench.kafka_loading import Topics
from bench.peer_runs import Measured, Program, measure
from bench.peers.run import Task
from bench.server import BenchServer

TAIL = 1_000
"""Records behind the last that counts: two of the largest batches that anybody takes."""


@dataclass(frozen=True)
class Peer(Program):
    shares: Mapping[int, float] = field(default_factory=dict)
    """Of the records asked for, by how many of a hundred fail: fast ones get more, so that all take about as long.
    What has no share of a case does not take part in it."""
    settings: Mapping[str, int] = field(default_factory=dict)
    """What it is told beyond what it does by itself."""
    reads: bool = True
    """Whether it reads the topic, and has to commit what it has read."""


@dataclass(frozen=True)
class Consuming:
    """A topic from its beginning until everything is committed, and every dead letter is where it belongs."""

    topics: Topics
    postgres: BenchServer
    program: Peer
    task: Task

    def is_done(self) -> bool:
        return self._has_letters_of(self.task.last + 1)

    def is_settled(self) -> bool:
        committed = not self.program.reads or self._committed() == self.topics.ends(self.task.queue)
        return committed and self._has_letters_of(self.task.all_messages)

    def check(self) -> None:
        ends = self.topics.ends(self.task.queue)
        assert sum(ends) == self.task.all_messages, f"somebody wrote into {self.task.queue}"
        if self.program.reads:
            committed = self._committed()
            assert committed == ends, f"{self.program.module} committed {committed} of {ends}"
        self.task.check_letters(self._letters() if self.task.failing else 0)

    def _has_letters_of(self, messages: int) -> bool:
        return not self.task.failing or self._letters() >= self.task.letters(messages)

    def _committed(self) -> list[int]:
        return self.topics.committed(self.task.queue, self.task.group)

    def _letters(self) -> int:
        if self.program.stored:
            return self.postgres.count("redrive.letters", url=self.task.store)
        return sum(self.topics.ends(self.task.dead))


@dataclass(frozen=True)
class Servers:
    """One broker for everybody, and one PostgreSQL for those who use it."""

    address: str
    topics: Topics
    postgres: BenchServer

    def consume(self, peer: Peer, *, messages: int, size: int, failing: int) -> Measured:
        task = Task(messages, size, TAIL, warming=messages // 4, failing=failing)
        with self._place(peer, task) as placed:
            return measure(Consuming(self.topics, self.postgres, peer, placed))

    @contextlib.contextmanager
    def _place(self, peer: Peer, task: Task) -> Iterator[Task]:
        """The task with a full topic, and a group, a topic of dead letters, a store and a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="redrive-bench-") as folder:
            placed = replace(
                task,
                url=self.address,
                queue=self.topics.full(task.size, task.all_messages),
                group=f"bench-{uuid4().hex[:12]}",
                store=self.postgres.emptied_store() if peer.stored else "",
                folder=folder,
                variant=peer.variant,
                settings=dict(peer.settings),
            )
            if task.failing:
                self.topics.make(placed.dead)
            yield placed
            if task.failing:
                self.topics.drop(placed.dead)
