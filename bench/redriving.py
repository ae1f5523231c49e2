"""Redrive runs: letters per second from PostgreSQL back to RabbitMQ, each claimed, sent with confirms, and marked.

Beside it, in the same rounds: the same messages published by the same client in a plain loop, pipelined and
confirmed, from memory; and RabbitMQ's own shovel, which moves as many messages from one queue to another, each
acknowledged when it is confirmed. Queue to queue, `redrive reprocess` against that shovel. All queues are durable
and classic, all messages persistent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import uvloop
from msgspec.structs import replace

from bench.amqp_loading import Loader
from bench.carrying_out import carry_out, peak_elsewhere
from bench.measuring import RUNS, Aim, Benchmark
from bench.peers.messages import order, plain
from bench.server import BenchServer, running
from redrive.clock import SystemClock, new_id
from redrive.dead_letter import Entry
from redrive.dead_letter_queue import DeadLetterQueue
from redrive.failure import Failure, FailureKind, Host, capture
from redrive.fingerprint import fingerprint
from redrive.message import Message
from redrive.pace import Pace
from redrive.run import WINDOW
from redrive.stores import open_store
from redrive.transports import open_transport

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.rabbitmq_server import PrivateRabbit, vhost_of  # found on the path above

LETTERS = 20_000
FEW, MANY = 10_000, 1_000_000
SIZE = 256
QUEUE, DEAD = "orders", "orders_dlq"
OURS, PLAIN, SHOVEL = "redrive run from PostgreSQL", "plain loop, confirmed", "RabbitMQ's shovel"
REPROCESS = "redrive reprocess"
PACKAGES = ("asyncpg", "sqlalchemy", "uvloop")
_BATCH = 200
_LOOK_EVERY = 0.005
_PATIENCE = 600.0


class Bench:
    def __init__(self, postgres: BenchServer, rabbitmq: PrivateRabbit, letters: int) -> None:
        self._postgres = postgres
        self._rabbitmq = rabbitmq
        self._letters = letters
        self._store_url = postgres.emptied_store()

    def run_of_letters(self) -> float:
        uvloop.run(self._seed())
        with self._vhost() as url:
            took: float = uvloop.run(self._carry_out(url))
            self._check(url, QUEUE)
        return self._letters / took

    def peak_memory(self) -> float:
        """Of a process that carries out a run, in MiB."""
        uvloop.run(self._seed())
        with self._vhost() as url:
            peak = peak_elsewhere(self._store_url, url, QUEUE, self._letters)
            self._check(url, QUEUE)
        return peak

    def plain_loop(self) -> float:
        with self._vhost() as url:
            took: float = uvloop.run(self._publish(url))
            self._check(url, QUEUE)
        return self._letters / took

    def shovel(self) -> float:
        with self._vhost() as url:
            self._fill(url)
            began = time.monotonic()
            self._start_shovel(url)
            with Loader(url) as loader:
                _until(lambda: loader.depth(QUEUE) == self._letters)
            return self._letters / (time.monotonic() - began)

    def reprocess(self) -> float:
        with self._vhost() as url:
            self._fill(url)
            took: float = uvloop.run(self._drain(url))
            self._check(url, QUEUE)
        return self._letters / took

    # Ours.

    async def _seed(self) -> None:
        self._store_url = self._postgres.emptied_store()
        store = open_store(self._store_url, clock=SystemClock())
        for start in range(0, self._letters, _BATCH):
            count = min(_BATCH, self._letters - start)
            await store.record_together([_letter() for _ in range(count)])
        await store.close()
        self._postgres.fetch("ANALYZE", url=self._store_url)

    async def _carry_out(self, url: str) -> float:
        return await carry_out(self._store_url, url, QUEUE, self._letters)

    async def _publish(self, url: str) -> float:
        transport = open_transport(url)
        messages = [_letter().message for _ in range(self._letters)]
        await transport.send(replace(messages[0], queue=DEAD))  # connected, and the publisher is open
        began = time.monotonic()
        for start in range(0, self._letters, WINDOW):
            await asyncio.gather(*(transport.send(each) for each in messages[start : start + WINDOW]))
        took = time.monotonic() - began
        await transport.close()
        return took

    async def _drain(self, url: str) -> float:
        transport = open_transport(url)
        await transport.depths((DEAD,))
        began = time.monotonic()
        done = await DeadLetterQueue(DEAD, transport=transport).drain(
            self._letters, pace=Pace(None, SystemClock())
        )
        took = time.monotonic() - began
        assert done.sent == self._letters, done
        await transport.close()
        return took

    # Around it.

    @contextlib.contextmanager
    def _vhost(self) -> Iterator[str]:
        url = self._rabbitmq.new_vhost()
        with Loader(url) as loader:
            loader.declare(QUEUE)
            loader.declare(DEAD)
        yield url
        self._rabbitmq.drop_vhost(url)

    def _fill(self, url: str) -> None:
        with Loader(url) as loader:
            loader.load(DEAD, plain(SIZE), self._letters)

    def _start_shovel(self, url: str) -> None:
        value = {
            "src-protocol": "amqp091",
            "src-uri": url,
            "src-queue": DEAD,
            "src-prefetch-count": 1000,
            "dest-protocol": "amqp091",
            "dest-uri": url,
            "dest-queue": QUEUE,
            "ack-mode": "on-confirm",
        }
        path = f"/parameters/shovel/{quote(vhost_of(url), safe='')}/bench"
        self._rabbitmq.api("PUT", path, {"value": value})

    def _check(self, url: str, queue: str) -> None:
        with Loader(url) as loader:
            assert loader.depth(queue) == self._letters


class OrderFailed(Exception):
    """What the letters failed with."""


def _pay() -> None:
    raise OrderFailed("the order cannot be paid")


def _failure() -> Failure:
    try:
        _pay()
    except OrderFailed as error:
        met = error
    now = datetime.now(UTC)
    return capture(met, attempt=1, at=now, kind=FailureKind.PERMANENT, handler="pay", host=Host())


FAILURE = _failure()
CAUSE = fingerprint(FAILURE, queue=QUEUE)


def _letter() -> Entry:
    now, body = datetime.now(UTC), json.dumps(order(SIZE)).encode()
    message = Message(id=new_id(), queue=QUEUE, body=body, sent_at=now)
    return Entry(
        identity=f"bench:{message.id}",
        message=message,
        queue=QUEUE,
        handler="pay",
        failures=(FAILURE,),
        fingerprint=CAUSE,
        at=now,
        first_attempt_at=now,
    )


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "it does not end"
        time.sleep(_LOOK_EVERY)


def main(*options: str) -> None:
    given = _arguments(options)
    about = f"{given.letters:,} letters of {SIZE} B with confirms, unlimited pace, one process"
    benchmark = Benchmark("redriving", "messages/s", PACKAGES, about)
    with contextlib.ExitStack() as ending, running() as postgres:
        rabbitmq = PrivateRabbit(plugins=("rabbitmq_shovel",))
        ending.callback(rabbitmq.clean_up)
        bench = Bench(postgres, rabbitmq, given.letters)
        case = "store to queue"
        systems = {OURS: bench.run_of_letters, PLAIN: bench.plain_loop, SHOVEL: bench.shovel}
        benchmark.measure(case, systems, runs=given.runs)
        benchmark.compare(Aim(case, OURS, PLAIN, "at least 0.6"))
        benchmark.compare(Aim(case, OURS, SHOVEL, "none"))
        case = "queue to queue"
        benchmark.measure(case, {REPROCESS: bench.reprocess, SHOVEL: bench.shovel}, runs=given.runs)
        benchmark.compare(Aim(case, REPROCESS, SHOVEL, "at least 0.8"))
        if given.memory:
            benchmark.facts["peak memory of a run"] = _peaks(postgres, rabbitmq, given.memory)
        benchmark.facts.update(postgres.facts())
    benchmark.save()


def _peaks(postgres: BenchServer, rabbitmq: PrivateRabbit, many: int) -> str:
    few, most = (Bench(postgres, rabbitmq, number).peak_memory() for number in (FEW, many))
    told = f"{few:.0f} MiB for {FEW:,} letters, {most:.0f} MiB for {many:,}"
    return f"{told}: {most / few:.2f} times as much, at most 1.2 wanted"


def _arguments(options: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench NAME=redriving", description="Options go into ARGS.")
    parser.add_argument("--letters", type=int, default=LETTERS)
    parser.add_argument("--runs", type=int, default=RUNS)
    about = f"also the peak memory of a run over N letters (a million if not said) against {FEW:,}"
    parser.add_argument("--memory", type=int, nargs="?", const=MANY, metavar="N", help=about)
    return parser.parse_args(options)
