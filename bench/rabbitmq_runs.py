"""One run of one peer: a virtual host of its own, a full queue, a process, and a look at what is left behind."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.amqp_loading import Loader
from bench.peer_runs import Measured, Program, measure, until
from bench.peers.messages import Written, plain
from bench.peers.run import DEAD, QUEUE, Task
from bench.server import BenchServer

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.rabbitmq_server import RabbitServer, vhost_of  # found on the path above


def dead_letters_to(queue: str) -> dict[str, Any]:
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}


@dataclass(frozen=True)
class Peer(Program):
    """What it finds: messages as its producers write them, its queue as it wants it."""

    message: Callable[[int], Written] = plain
    dead: str = DEAD
    arguments: Mapping[str, Any] = field(default_factory=lambda: dead_letters_to(DEAD))
    rows: str = ""
    """The table in PostgreSQL that holds every message afterwards, if one does."""
    share: float = 1.0
    """Of the messages asked for: fast ones get more, so that all take about as long."""


@dataclass(frozen=True)
class Consuming:
    """A full queue until it is empty, and until every dead letter is where it belongs."""

    servers: Servers
    program: Peer
    task: Task
    loader: Loader

    def prepare(self) -> None:
        self.loader.declare(DEAD)
        self.loader.declare(QUEUE, self.program.arguments)
        self.loader.load(QUEUE, self.program.message(self.task.size), self.task.all_messages)

    def is_done(self) -> bool:
        return not self.task.failing or self._letters() >= self.task.letters(self.task.last + 1)

    def is_settled(self) -> bool:
        queues = self.servers.rabbitmq.queues(vhost_of(self.task.url))
        return any(queue["name"] == QUEUE and queue.get("messages") == 0 for queue in queues)

    def check(self) -> None:
        until(lambda: self.loader.consumers(QUEUE) == 0, "the consumer of an ended process stays")
        left = self.loader.depth(QUEUE)
        assert left == 0, f"{self.program.module} left {left} messages unacknowledged"
        self.task.check_letters(self._letters() if self.task.failing else 0)
        if self.program.rows:
            rows = self.servers.postgres.count(self.program.rows, url=self.task.store)
            assert rows == self.task.all_messages, f"{rows} rows instead of {self.task.all_messages}"

    def _letters(self) -> int:
        if not self.program.stored:
            return self.loader.depth(self.program.dead)
        return self.servers.postgres.count("redrive.letters", url=self.task.store)


@dataclass(frozen=True)
class Publishing:
    """An empty queue until it holds all messages, each confirmed."""

    program: Peer
    task: Task
    loader: Loader

    def prepare(self) -> None:
        self.loader.declare(QUEUE)

    def is_done(self) -> bool:
        return True

    def is_settled(self) -> bool:
        return True

    def check(self) -> None:
        found = self.loader.depth(QUEUE)
        assert found == self.task.messages, f"{found} of {self.task.messages} messages arrived"


@dataclass(frozen=True)
class Servers:
    """One broker for everybody, and one PostgreSQL for those who use it."""

    rabbitmq: RabbitServer
    postgres: BenchServer

    def consume(self, peer: Peer, task: Task) -> Measured:
        with self._place(peer, task) as (placed, loader):
            job = Consuming(self, peer, placed, loader)
            job.prepare()
            return measure(job)

    def publish(self, peer: Peer, task: Task) -> Measured:
        with self._place(peer, task) as (placed, loader):
            job = Publishing(peer, placed, loader)
            job.prepare()
            return measure(job)

    @contextlib.contextmanager
    def _place(self, peer: Peer, task: Task) -> Iterator[tuple[Task, Loader]]:
        """The task with a virtual host, a store and a folder of its own, and a connection to look there."""
        url = self.rabbitmq.new_vhost()
        store = self.postgres.emptied_store() if peer.stored else ""
        with tempfile.TemporaryDirectory(prefix="redrive-bench-") as folder, Loader(url) as loader:
            yield replace(task, url=url, store=store, folder=folder, variant=peer.variant), loader
        self.rabbitmq.drop_vhost(url)
