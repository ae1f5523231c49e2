"""Retries that block their partition, with real workers: dead letters let it go on, redrives come back, and
whatever dies loses nothing, passes nothing, and is not tried for ever.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from chaos.lab.kafka import Kafka
from redrive import App, Message, Retry
from redrive.dead_letter import MAX_DEATHS, Status
from redrive.transports.kafka.lags import Lags
from redrive.transports.kafka.transport import KafkaTransport
from support.desk import Desk
from support.forked import REDRIVE
from support.patience import until
from support.run_shop import Started
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from support.kafka_server import KafkaServer


class Orders:
    """A topic of two partitions, and what a worker in this process has seen of it."""

    def __init__(self, server: KafkaServer) -> None:
        self.server, self.queue = server, server.new_topic(partitions=2)
        self._admin = server.admin()
        self.app = App("shop", retry=Retry(3, ["50ms"]))
        self.seen: list[str] = []

    def put(self, partition: int, *names: str) -> None:
        producer = Producer({"bootstrap.servers": self.server.address})
        for name in names:
            producer.produce(self.queue, json.dumps({"order": name}).encode(), partition=partition)
        assert producer.flush(30) == 0

    async def is_done(self, partition: int) -> bool:
        """Whether everything in it is committed."""
        lags = await Lags(self._admin, within=30).of(self.queue, {self.queue: 2}, {})
        return lags[self.queue, partition] == 0

    def work(self, folder: Path, **sections: Any) -> AbstractAsyncContextManager[Workshop]:
        opening = partial(KafkaTransport, group=self.queue, retry_topics="blocking")
        return workshop(self.app, folder, broker_url=self.server.url, opening=opening, **sections)


@pytest.fixture
def orders(kafka: KafkaServer) -> Orders:
    return Orders(kafka)


async def test_after_its_last_attempt_a_record_is_a_dead_letter_its_partition_goes_on_and_a_redrive_comes_back(
    orders: Orders, tmp_path: Path
) -> None:
    mended = False

    @orders.app.handler(orders.queue)
    async def handle(message: Message) -> None:
        name = message.data["order"]
        orders.seen.append(f"{name} {message.retry_count}")
        if name == "broken" and not mended:
            raise ConnectionError("nobody there")

    orders.put(0, "broken", "second", "third")
    async with orders.work(tmp_path) as shop:
        await until(lambda: orders.seen[-1:] == ["third 0"])
        assert orders.seen == ["broken 0", "broken 1", "broken 2", "second 0", "third 0"]
        [letter] = await shop.letters()
        assert [each.attempt for each in letter.failures] == [1, 2, 3]
        await until(shop.empty)

        mended = True
        await shop.redrive(letter)
        [letter] = await until(lambda: shop.letters(status=Status.RESOLVED))

    assert orders.seen[5:] == ["broken 0"]
    topics = {each for each in orders.server.topics() if each.startswith(orders.queue)}
    assert topics == {orders.queue, f"{orders.queue}_retry"}


async def test_handlers_of_two_partitions_run_beside_each_other_and_those_of_one_never(
    orders: Orders, tmp_path: Path
) -> None:
    running: Counter[str] = Counter()
    together = asyncio.Event()

    @orders.app.handler(orders.queue)
    async def handle(message: Message) -> None:
        partition = message.data["order"][0]
        running[partition] += 1
        assert running[partition] == 1
        if len(+running) == 2:
            together.set()
        await together.wait()
        await asyncio.sleep(0)
        running[partition] -= 1
        orders.seen.append(message.data["order"])

    for partition in "ab":
        orders.put("ab".index(partition), *(f"{partition}{number}" for number in range(10)))
    async with orders.work(tmp_path, worker={"concurrency": 4}) as shop:
        await until(shop.empty)
        assert await shop.letters() == []
    for partition in "ab":
        mine = [each for each in orders.seen if each.startswith(partition)]
        assert mine == [f"{partition}{number}" for number in range(10)]


APP = """
import os, signal
from pathlib import Path

from redrive import App, Message, Retry

app = App("shop", retry=Retry(3, [{delay!r}]))


@app.handler({queue!r}, name="charge")
async def charge(message: Message) -> None:
    order = message.data["order"]
    with Path("seen").open("a") as seen:
        print(order, message.retry_count, file=seen)
    if order == "hasty" and not Path("mended").exists():
        raise ConnectionError("not yet")
    if order == "deadly" and message.retry_count == 0:
        raise ConnectionError("not yet")
    if order == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
"""
SETTINGS = """
[app]
name = "{group}"
[broker]
url = "{url}"
[broker.kafka]
retry_topics = "blocking"
"""


class Service:
    """A folder with an app and its settings, whose workers are processes that may die."""

    def __init__(self, folder: Path, orders: Orders, delay: str) -> None:
        self.desk, self._folder = Desk(folder), folder
        self._group = Kafka(orders.server.address, orders.queue)
        self._started: list[Started] = []
        (folder / "app.py").write_text(APP.format(queue=orders.queue, delay=delay))
        (folder / "redrive.toml").write_text(SETTINGS.format(url=orders.server.url, group=orders.queue))

    def work(self, *arguments: str) -> Started:
        """The broker is told of those who died before, so that nobody waits until it notices."""
        self._group.bury(living=())
        started = Started(REDRIVE, "work", "app:app", *arguments, cwd=self._folder, env=os.environ)
        self._started.append(started)
        return started

    @property
    def seen(self) -> list[str]:
        """Every attempt, in order: what was tried, and how often before."""
        file = self._folder / "seen"
        return file.read_text().splitlines() if file.exists() else []

    def mend(self) -> None:
        (self._folder / "mended").touch()

    def kill(self) -> None:
        for each in self._started:
            each.kill()


@pytest.fixture
def service(orders: Orders, tmp_path: Path) -> Iterator[Callable[[str], Service]]:
    opened: list[Service] = []

    def make(delay: str) -> Service:
        opened.append(Service(tmp_path, orders, delay))
        return opened[-1]

    yield make
    for each in opened:
        each.kill()


async def test_a_worker_that_is_killed_while_a_retry_waits_loses_nothing_and_the_next_goes_on_in_order(
    orders: Orders, service: Callable[[str], Service]
) -> None:
    shop = service("1h")
    orders.put(0, "hasty", "second", "third")
    killed = shop.work()
    await until(lambda: shop.seen == ["hasty 0"])
    orders.put(1, "other")
    await until(lambda: shop.seen == ["hasty 0", "other 0"])
    await until(lambda: orders.is_done(1))  # whatever else the worker held for done is committed with it
    killed.kill()
    assert await killed.wait() == -signal.SIGKILL

    shop.mend()
    assert await shop.work("--drain").wait() == 0

    assert shop.seen == ["hasty 0", "other 0", "hasty 0", "second 0", "third 0"]


async def test_a_record_that_kills_at_its_second_attempt_is_quarantined_after_three_deaths(
    orders: Orders, service: Callable[[str], Service]
) -> None:
    """It comes again at its first attempt each time, which its process survives."""
    shop, deaths = service("10ms"), 0
    orders.put(0, "deadly", "second", "third")
    while await shop.work("--drain").wait() == -signal.SIGKILL:
        deaths += 1
        assert deaths <= MAX_DEATHS, "it goes on killing"

    assert shop.seen == ["deadly 0", "deadly 1"] * MAX_DEATHS + ["second 0", "third 0"]
    listed = await asyncio.to_thread(shop.desk.process, "list", "--output", "json")
    [letter] = json.loads(listed.stdout)
    assert letter["status"] == "QUARANTINED"
