"""One run of one peer: a virtual host of its own, a full queue, a process, and a look at what is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

from bench.amqp_loading import Loader
from bench.peers.messages import Written, plain
from bench.peers.run import DEAD, QUEUE, Task
from bench.server import BenchServer

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.rabbitmq_server import RabbitServer, vhost_of  # found on the path above

_PATIENCE = 120.0
_LOOK_EVERY = 0.005


def dead_letters_to(queue: str) -> dict[str, Any]:
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}


@dataclass(frozen=True)
class Peer:
    """How it is started and what it finds: messages as its producers write them, its queue as it wants it."""

    module: str
    function: str = "consume"
    message: Callable[[int], Written] = plain
    dead: str = DEAD
    arguments: Mapping[str, Any] = field(default_factory=lambda: dead_letters_to(DEAD))
    variant: str = ""
    rows: str = ""
    """The table in PostgreSQL that holds every message afterwards, if one does."""
    stored: bool = False
    """Whether its dead letters go to PostgreSQL."""
    share: float = 1.0
    """Of the messages asked for: fast ones get more, so that all take about as long."""


@dataclass(frozen=True)
class Measured:
    """Of one run: what a message took, and the most memory the process ever had."""

    per_second: float
    cpu_microseconds: float
    megabytes: float


class Job(Protocol):
    """What one run does before, while and after the process of the peer works."""

    @property
    def task(self) -> Task: ...

    def prepare(self, loader: Loader) -> None: ...

    def is_done(self, loader: Loader) -> bool:
        """Whether everything has arrived where it should."""

    def is_settled(self) -> bool:
        """Whether the process may be ended. Nobody's clock runs."""

    def check(self, loader: Loader) -> None: ...


@dataclass(frozen=True)
class Consuming:
    """A full queue until it is empty, and until every dead letter is where it belongs."""

    servers: Servers
    peer: Peer
    task: Task

    def prepare(self, loader: Loader) -> None:
        loader.declare(DEAD)
        loader.declare(QUEUE, self.peer.arguments)
        loader.load(QUEUE, self.peer.message(self.task.size), self.task.all_messages)

    def is_done(self, loader: Loader) -> bool:
        return not self.task.failing or self._letters(loader) >= self.task.letters(self.task.last + 1)

    def is_settled(self) -> bool:
        queues = self.servers.rabbitmq.queues(vhost_of(self.task.url))
        return any(queue["name"] == QUEUE and queue.get("messages") == 0 for queue in queues)

    def check(self, loader: Loader) -> None:
        _until(lambda: loader.consumers(QUEUE) == 0, "the consumer of an ended process stays")
        left = loader.depth(QUEUE)
        assert left == 0, f"{self.peer.module} left {left} messages unacknowledged"
        found = self._letters(loader) if self.task.failing else 0
        wanted = self.task.letters(self.task.all_messages)
        assert found == wanted, f"{found} dead letters instead of {wanted}"
        if self.peer.rows:
            count = f"SELECT count(*) FROM {self.peer.rows}"  # noqa: S608  a name of our own
            rows = self.servers.postgres.fetch(count, url=self.task.store)[0][0]
            assert rows == self.task.all_messages, f"{rows} rows instead of {self.task.all_messages}"

    def _letters(self, loader: Loader) -> int:
        if not self.peer.stored:
            return loader.depth(self.peer.dead)
        found: int = self.servers.postgres.fetch("SELECT count(*) FROM redrive.letters", url=self.task.store)[0][0]
        return found


@dataclass(frozen=True)
class Publishing:
    """An empty queue until it holds all messages, each confirmed."""

    task: Task

    def prepare(self, loader: Loader) -> None:
        loader.declare(QUEUE)

    def is_done(self, _loader: Loader) -> bool:
        return True

    def is_settled(self) -> bool:
        return True

    def check(self, loader: Loader) -> None:
        found = loader.depth(QUEUE)
        assert found == self.task.messages, f"{found} of {self.task.messages} messages arrived"


@dataclass(frozen=True)
class Servers:
    """One broker for everybody, and one PostgreSQL for those who use it."""

    rabbitmq: RabbitServer
    postgres: BenchServer

    def consume(self, peer: Peer, task: Task) -> Measured:
        with self._place(peer, task) as placed:
            return _measure(peer, Consuming(self, peer, placed))

    def publish(self, peer: Peer, task: Task) -> Measured:
        with self._place(peer, task) as placed:
            return _measure(peer, Publishing(placed))

    @contextlib.contextmanager
    def _place(self, peer: Peer, task: Task) -> Iterator[Task]:
        """The task with a virtual host, a store and a folder of its own."""
        url = self.rabbitmq.new_vhost()
        store = self.postgres.emptied_store() if peer.stored else ""
        with tempfile.TemporaryDirectory(prefix="redrive-bench-") as folder:
            yield replace(task, url=url, store=store, folder=folder, variant=peer.variant)
        self.rabbitmq.drop_vhost(url)


def _measure(peer: Peer, job: Job) -> Measured:
    with Loader(job.task.url) as loader:
        job.prepare(loader)
        with Child(peer, job.task) as child:
            told = child.next_report()
            if not job.is_done(loader):
                _until(lambda: job.is_done(loader), "the dead letters did not arrive")
                told["finished"] = time.monotonic()
            _until(job.is_settled, "some messages were not acknowledged")
            told |= child.end()
        job.check(loader)
    return Measured(
        per_second=job.task.messages / (told["finished"] - told["started"]),
        cpu_microseconds=told["cpu_seconds"] * 1e6 / (job.task.messages + job.task.prefetch),
        megabytes=told["rss"] / 2**20,
    )


class Child:
    """The process of a peer. What it logs goes to a file, as that of a service does."""

    def __init__(self, peer: Peer, task: Task) -> None:
        self._log = Path(task.folder) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.peers", peer.module, peer.function, task.written()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=Path(__file__).parent.parent,
                env=os.environ | {"PYTHONWARNINGS": "ignore"},
            )

    def next_report(self) -> dict[str, float]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        assert line, f"no report within {_PATIENCE:g} s:\n{self._log.read_text(errors='replace')[-4000:]}"
        report: dict[str, float] = json.loads(line)
        return report

    def end(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("enough\n")
        self._process.stdin.flush()
        return self.next_report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(_LOOK_EVERY)
