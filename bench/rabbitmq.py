"""RabbitMQ: messages per second from a full queue through an empty handler to the acknowledgement, in one process.

Everybody finds the same order (256 B or 2 KiB of JSON) in a durable classic queue, persistent, in the envelope of
its own producers, and acknowledges after its handler. A fifth of the messages comes first and does not count; the
clock runs from the next call of the handler to the last, and where messages fail until the last dead letter is
where it belongs. Theirs go as each one's documentation says, by the queue's dead-letter exchange into a classic
queue; ours go with their failures, confirmed or committed, into such a queue or into PostgreSQL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.measuring import Aim, Benchmark
from bench.peer_runs import Measured
from bench.peer_table import PeerTable, arguments
from bench.peers.messages import dead, for_celery, for_dramatiq, for_taskiq
from bench.peers.publishing import TOGETHER
from bench.peers.run import Task
from bench.rabbitmq_runs import Peer, Servers, dead_letters_to
from bench.server import running_beside

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.rabbitmq_server import PrivateRabbit  # found on the path above

MESSAGES = 4_000
OURS, OURS_QUEUE, OURS_STORE = "redrive", "redrive, dead letters to a queue", "redrive, dead letters to PostgreSQL"
RAW, AIO_PIKA = "redrive's connection, bare", "aio-pika, bare"
SILENT = "FastStream, log off"

LOOPS = {
    RAW: Peer("raw_client", share=4),
    "pika asyncio, bare": Peer("pika_loop", share=3),
    AIO_PIKA: Peer("aio_pika_loop", share=1.5),
}
FRAMEWORKS = {
    "FastStream": Peer("faststream_app"),
    SILENT: Peer("faststream_app", variant="silent"),
    "Dramatiq": Peer(
        "dramatiq_app", message=for_dramatiq, dead="orders.XQ", arguments=dead_letters_to("orders.XQ")
    ),
    "Celery": Peer("celery_app", message=for_celery, share=0.5),
    "Taskiq": Peer("taskiq_app", message=for_taskiq),
}
QUEUE_FIRST = Peer("redrive_app", variant="queue", arguments={}, share=3)
STORE_FIRST = replace(QUEUE_FIRST, variant="", stored=True)
SUCCESS = {OURS: QUEUE_FIRST, **LOOPS, **FRAMEWORKS}
FAILING = {OURS_QUEUE: QUEUE_FIRST, OURS_STORE: STORE_FIRST, **LOOPS, **FRAMEWORKS}
ONE_BY_ONE = {
    OURS: Peer("publishing", "redrive_one_by_one", share=0.5),
    "pika": Peer("publishing", "pika_one_by_one", share=0.5),
    "aio-pika": Peer("publishing", "aio_pika_one_by_one", share=0.5),
}
PIPELINED = {
    OURS: Peer("publishing", "redrive_pipelined", share=2),
    "pika": Peer("publishing", "pika_pipelined", share=2),
    "aio-pika": Peer("publishing", "aio_pika_pipelined", share=2),
}
COLLECTED, ROW_BY_ROW = "redrive collect", "INSERT and ack, one by one"
COLLECTING = {
    COLLECTED: Peer("collecting", "collect", message=dead, stored=True, rows="redrive.letters", share=2),
    ROW_BY_ROW: Peer("collecting", "row_by_row", message=dead, stored=True, rows="naive.dlq_events", share=0.5),
}
WANTED = {
    RAW: "at least 0.8",
    AIO_PIKA: "at least 1.5",
    "FastStream": "at least 3",
    SILENT: "at least 2.5",
    "Dramatiq": "at least 3",
    "Celery": "at least 4",
    "Taskiq": "at least 3",
}
SIZES, PREFETCHES = (256, 2048), (50, 500)
PACKAGES = ("pika", "aio-pika", "faststream", "dramatiq", "celery", "taskiq", "taskiq-aio-pika", "pamqp", "uvloop")


class Table(PeerTable):
    def __init__(self, benchmark: Benchmark, servers: Servers, given: argparse.Namespace) -> None:
        super().__init__(benchmark, given)
        self._servers = servers

    def success(self, size: int, prefetch: int) -> None:
        case = f"success {size} B, prefetch {prefetch}"
        if self.measure(case, SUCCESS, partial(self._consume, size=size, prefetch=prefetch, failing=0)):
            for other, wanted in WANTED.items():
                self.compare(Aim(case, OURS, other, wanted))

    def failing(self, percent: int, size: int, prefetch: int) -> None:
        case = f"failing-{percent} {size} B, prefetch {prefetch}"
        run = partial(self._consume, size=size, prefetch=prefetch, failing=percent)
        if self.measure(case, FAILING, run):
            for ours in (OURS_QUEUE, OURS_STORE):
                for other in FRAMEWORKS:
                    self.compare(Aim(case, ours, other, "at least 3"))

    def collecting(self, size: int) -> None:
        case = f"collect into PostgreSQL {size} B"
        if self.measure(case, COLLECTING, partial(self._consume, size=size, prefetch=500, failing=0)):
            self.compare(Aim(case, COLLECTED, ROW_BY_ROW, "at least 8"))

    def publishing(self, how: str, peers: Mapping[str, Peer], size: int) -> None:
        case = f"publish {how} {size} B"
        if self.measure(case, peers, partial(self._publish, size=size)):
            for other in peers:
                if other != OURS:
                    self.compare(Aim(case, OURS, other, "none"))

    def _consume(self, peer: Peer, *, size: int, prefetch: int, failing: int) -> Measured:
        # Failing takes several times as long, and a run must still be many times the prefetch.
        messages = max(4 * prefetch, int(self._given.messages * peer.share * (1 - failing / 200)))
        task = Task(messages, size, prefetch, warming=messages // 4, failing=failing)
        return self._servers.consume(peer, task)

    def _publish(self, peer: Peer, *, size: int) -> Measured:
        messages = max(1, round(self._given.messages * peer.share / TOGETHER)) * TOGETHER
        return self._servers.publish(peer, Task(messages, size))


def main(*options: str) -> None:
    given = arguments("rabbitmq", options, messages=MESSAGES)
    about = "from a full durable classic queue through an empty handler to the acknowledgement, one process"
    benchmark = Benchmark("rabbitmq", "messages/s", PACKAGES, about)
    with running_beside(PrivateRabbit) as (rabbitmq, postgres):
        table = Table(benchmark, Servers(rabbitmq, postgres), given)
        for size, prefetch in [(size, prefetch) for size in SIZES for prefetch in PREFETCHES]:
            table.success(size, prefetch)
        for percent in (10, 100):
            for size, prefetch in zip(SIZES, PREFETCHES, strict=True):
                table.failing(percent, size, prefetch)
        for size in SIZES:
            table.collecting(size)
            table.publishing("one by one", ONE_BY_ONE, size)
            table.publishing(f"{TOGETHER} at once", PIPELINED, size)
        version = rabbitmq.api("GET", "/overview")["rabbitmq_version"]
        benchmark.facts.update(postgres.facts())
    benchmark.facts["RabbitMQ"] = f"{version} on the same machine, two schedulers, its files in memory"
    benchmark.save()
