"""Kafka: records per second from a full topic through an empty handler to the commit, in one process.

Everybody finds the same order (256 B or 2 KiB of JSON with a key, no headers) in a topic of six partitions, reads
it from the beginning in a group that never read before, and commits what it has handled. A fifth of the records
comes first and does not count; the clock runs from the next call of the handler to the last, and where records
fail until the last dead letter is where it belongs. At the end everything must be committed and every dead letter
be there once.

How many records a topic holds depends on how fast its readers are; each topic is filled once, and stays for all
who read as many.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.kafka_loading import PARTITIONS, Topics
from bench.kafka_runs import Peer, Servers
from bench.measuring import NO_AIM, Aim, Benchmark
from bench.peer_runs import Measured
from bench.peer_table import PeerTable, arguments
from bench.server import running_beside

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import kafka_programs  # found on the path above
from support.kafka_server import PrivateKafka  # as above

MESSAGES = 10_000
SIZES, PERCENTS = (256, 2048), (0, 10, 100)
SMALLER_SHARE = {256: 1.0, 2048: 0.5}
"""Large records take longer, and the broker keeps them in memory."""
LEAST = 400
MANY = 500

OURS, OURS_TOPIC, OURS_STORE = "redrive", "redrive, dead letters to a topic", "redrive, dead letters to PostgreSQL"
PREFETCHING, WIDE = f", prefetch {MANY}", f", concurrency {MANY}"
POLL, BATCHES = "confluent-kafka poll, bare", "confluent-kafka consume, bare"
ALONE = "redrive's PostgreSQL store alone"

LOOPS = {
    POLL: Peer("confluent_loop", "poll", shares={0: 150, 10: 60, 100: 20}),
    BATCHES: Peer("confluent_loop", "consume", shares={0: 250, 10: 60, 100: 20}),
    "aiokafka, bare": Peer("aiokafka_loop", "iterate", shares={0: 30, 10: 20, 100: 4}),
    "aiokafka getmany, bare": Peer("aiokafka_loop", "getmany", shares={0: 100, 10: 30, 100: 6}),
}
CONFLUENT = Peer("faststream_kafka_app", "confluent", shares={0: 0.5, 10: 0.3, 100: 0.1})
AIOKAFKA = replace(CONFLUENT, function="aiokafka")
WORKERS = replace(AIOKAFKA, variant="silent", settings={"max_workers": PARTITIONS})
# Whoever commits first loses letters when killed, so that it has no part where records fail.
CONFLUENT_FIRST = replace(CONFLUENT, variant="ack first", shares={0: 0.5})
AIOKAFKA_FIRST = replace(CONFLUENT_FIRST, function="aiokafka")
FRAMEWORKS = {
    "FastStream confluent": CONFLUENT,
    "FastStream confluent, log off": replace(CONFLUENT, variant="silent"),
    "FastStream confluent, log off, commits first": CONFLUENT_FIRST,
    "FastStream aiokafka": AIOKAFKA,
    "FastStream aiokafka, log off": replace(AIOKAFKA, variant="silent"),
    f"FastStream aiokafka, log off, {PARTITIONS} workers": WORKERS,
    "FastStream aiokafka, log off, commits first": AIOKAFKA_FIRST,
}
REDRIVE = Peer("redrive_kafka_app", variant="queue")
SUCCEEDING = replace(REDRIVE, shares={0: 8})
TOPIC_FIRST = replace(REDRIVE, shares={10: 3, 100: 1})
STORE_FIRST = replace(TOPIC_FIRST, variant="", stored=True)
ALL_OURS = {
    OURS: SUCCEEDING,
    OURS + PREFETCHING: replace(SUCCEEDING, settings={"prefetch": MANY}),
    OURS + WIDE: replace(SUCCEEDING, settings={"concurrency": MANY}),
    OURS_TOPIC: TOPIC_FIRST,
    OURS_TOPIC + WIDE: replace(TOPIC_FIRST, settings={"concurrency": MANY}),
    OURS_STORE: STORE_FIRST,
    OURS_STORE + WIDE: replace(STORE_FIRST, settings={"concurrency": MANY}),
}
STORE = {ALONE: Peer("redrive_kafka_app", "record", stored=True, reads=False, shares={10: 20, 100: 2})}
PEERS = ALL_OURS | LOOPS | FRAMEWORKS | STORE
PACKAGES = ("confluent-kafka", "aiokafka", "faststream", "uvloop", "asyncpg")


class Table(PeerTable):
    def __init__(self, benchmark: Benchmark, servers: Servers, given: argparse.Namespace) -> None:
        super().__init__(benchmark, given)
        self._servers = servers

    def consuming(self, percent: int, size: int) -> None:
        case = f"failing-{percent} {size} B" if percent else f"success {size} B"
        taking_part = {name: peer for name, peer in PEERS.items() if percent in peer.shares}
        if self.measure(case, taking_part, partial(self._consume, size=size, failing=percent)):
            for ours in filter(ALL_OURS.__contains__, taking_part):
                for other, wanted in _wanted(percent, ALL_OURS[ours]).items():
                    self.compare(Aim(case, ours, other, wanted))

    def _consume(self, peer: Peer, *, size: int, failing: int) -> Measured:
        messages = int(self._given.messages * peer.shares[failing] * SMALLER_SHARE[size])
        return self._servers.consume(peer, messages=max(LEAST, messages), size=size, failing=failing)


def _wanted(percent: int, ours: Peer) -> dict[str, str]:
    """Its ratio to each of the others."""
    loops = dict.fromkeys(LOOPS, NO_AIM) | ({} if percent else {POLL: "at least 0.25"})
    return loops | dict.fromkeys(FRAMEWORKS, "at least 3") | ({ALONE: NO_AIM} if ours.stored else {})


def main(*options: str) -> None:
    given = arguments("kafka", options, messages=MESSAGES)
    about = f"from a full topic of {PARTITIONS} partitions through an empty handler to the commit, one process"
    benchmark = Benchmark("kafka", "records/s", PACKAGES, about)
    with running_beside(PrivateKafka) as (kafka, postgres):
        topics = Topics(kafka)
        table = Table(benchmark, Servers(kafka.address, topics, postgres), given)
        benchmark.facts.update(postgres.facts())
        _, version, _ = kafka_programs.KAFKA.folder.name.split("-")
        benchmark.facts["Kafka"] = f"{version} on the same machine, one broker with 512 MiB, its files in memory"
        for size in SIZES:
            for percent in PERCENTS:
                table.consuming(percent, size)
                benchmark.save()  # after each: who interrupts a long run keeps what was measured
            topics.drop_full()
