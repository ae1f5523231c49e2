"""F9, F10, R26: PostgreSQL is away at the start, goes away in the middle, comes and goes, is slow. Letters go to
the spool or are not acknowledged, the server is left alone, and when it is back everything goes on by itself, each
letter once.

Attempts to connect are counted by a proxy between us and the server.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.lab import places
from chaos.lab.embedded import Embedded
from chaos.lab.proxy import Proxy
from chaos.lab.rows import rows
from chaos.lab.scenarios import Scenario, StoreBack
from chaos.lab.supervisor import Experiment, Nursery
from redrive import wiring
from redrive.access import local
from redrive.app import App
from redrive.errors import Permanent
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.secret_url import SecretUrl
from redrive.settings import (
    BrokerSettings,
    JournalSettings,
    Settings,
    SpoolSettings,
    StoreSettings,
    WorkerSettings,
)
from redrive.worker import Worker
from support import postgres_server
from support.patience import until
from support.postgres_server import PrivatePostgres

CONCURRENCY = 10
POOL = 3
UNHURRIED = 30.0
"""A lease that no process loses because the machine is busy: nobody dies here, so nothing may be handled twice."""


@pytest.fixture(scope="module")
def server() -> Iterator[PrivatePostgres]:
    started = postgres_server.own()
    yield started
    started.clean_up()


@pytest.fixture
def proxy(server: PrivatePostgres) -> Iterator[Proxy]:
    with Proxy(server.new_database()) as between:
        yield between
        between.speak_again()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for. A store that is away is asked every second, not later and later."""
    monkeypatch.setattr("redrive.availability.DEADLINE", 2.0)
    monkeypatch.setattr("redrive.availability._LAST", 1.0)
    monkeypatch.setattr("redrive.stores.postgres_engine._GRACE", 0.5)
    monkeypatch.setattr("redrive.worker._SPOOL_EVERY", 0.1)
    monkeypatch.setattr("redrive.worker._TALLY_EVERY", 0.1)


class Stopped:
    """The server's process ends, and is started again."""

    hanging = 0

    def __init__(self, server: PrivatePostgres, _proxy: Proxy) -> None:
        self.begin, self.end = server.stop, server.start


class Silent:
    """Nothing arrives any more in either direction."""

    hanging = 5
    """Statements that may be under way: the driver cancels each of them, by a connection of its own."""

    def __init__(self, _server: PrivatePostgres, proxy: Proxy) -> None:
        self.begin, self.end = proxy.fall_silent, proxy.speak_again


Outage = Stopped | Silent


@pytest.fixture(params=[Stopped, Silent])
def outage(request: pytest.FixtureRequest, server: PrivatePostgres, proxy: Proxy) -> Iterator[Outage]:
    kind: Callable[[PrivatePostgres, Proxy], Outage] = request.param
    yield kind(server, proxy)
    server.start()


class Knocks:
    """Attempts to connect since it was made, and how many a process may make."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy, self._before, self._since = proxy, proxy.attempts, time.monotonic()

    @property
    def number(self) -> int:
        return self._proxy.attempts - self._before

    def allowed(self, *, processes: int = 1, hanging: int = 0) -> int:
        """One a second each, and the one that finds out."""
        return processes * (2 + int(time.monotonic() - self._since)) + hanging


class Shop:
    """One handler that fails, but not before the gate is open; what was redriven succeeds."""

    def __init__(self, folder: Path, proxy: Proxy, **settings: Any) -> None:
        self.app = App("shop")
        self.app.handler("orders")(self._order)
        self.gate = asyncio.Event()
        self.gate.set()
        self.in_hand = 0
        self.sent = 0
        self._broker, self._spool, self._database = folder / "broker.db", folder / "spool", proxy.url
        self.settings = Settings(
            broker=BrokerSettings(
                url=SecretUrl(f"embedded:///{self._broker}"), lease=30, **settings.pop("broker", {})
            ),
            store=StoreSettings(
                url=SecretUrl(proxy.url), connect_timeout=0.5, statement_timeout=0.5, **settings.pop("store", {})
            ),
            spool=SpoolSettings(folder=settings.pop("spool", self._spool)),
            journal=JournalSettings(path=folder / "journal.db"),
            worker=WorkerSettings(concurrency=CONCURRENCY),
            **settings,
        )

    @property
    def unhurried(self) -> Settings:
        """For somebody at the desk while the server is well, however busy the machine is."""
        deadlines = {"connect_timeout": UNHURRIED, "statement_timeout": UNHURRIED}
        return self.settings.model_copy(update={"store": self.settings.store.model_copy(update=deadlines)})

    async def _order(self, message: Message) -> None:
        self.in_hand += 1
        await self.gate.wait()
        if not any(name == "x-redrive-id" for name, _ in message.headers):
            raise Permanent("no such customer")

    async def send(self, number: int) -> None:
        for _ in range(number):
            await self.app.send("orders", {"number": self.sent})
            self.sent += 1

    def on_broker(self) -> int:
        return Embedded(str(self._broker)).messages().total()

    def spooled(self) -> bool:
        return bool(places.segments_in_use(self._spool))

    def problems(self) -> list[str]:
        """Unless each message that was sent is one letter with one delivery, and the store agrees with itself."""
        letters = rows(self._database, "SELECT message_id, deliveries FROM letters")
        found = [f"{len(letters)} letters of {self.sent} messages"] if len(letters) != self.sent else []
        found += [f"{deliveries} deliveries of {each}" for each, deliveries in letters if deliveries != 1]
        return found + places.contradictions(self._database)


@asynccontextmanager
async def working(shop: Shop) -> AsyncIterator[Worker]:
    async with wiring.worker(shop.app, shop.settings) as worker:
        running = asyncio.create_task(worker.run())
        try:
            yield worker
            assert not running.done()
        finally:
            worker.stop()
            await running


async def home(shop: Shop, worker: Worker) -> None:
    await until(lambda: worker.ready and not shop.on_broker() and not shop.spooled(), within=60)


async def test_away_at_the_start_letters_wait_in_the_spool_and_move_when_the_server_is_there(
    outage: Outage, proxy: Proxy, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, proxy)
    outage.begin()
    knocks = Knocks(proxy)
    async with working(shop) as worker:
        await shop.send(30)
        await until(lambda: not shop.on_broker())  # durable in the spool, so acknowledged
        await until(lambda: knocks.number >= 3)

        assert not worker.ready
        assert worker.consumers[0].ready
        assert knocks.number <= knocks.allowed()

        outage.end()
        await home(shop, worker)
    assert shop.problems() == []


async def test_gone_in_the_middle_of_a_batch_nothing_is_lost_and_nothing_counted_twice(
    outage: Outage, proxy: Proxy, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, proxy)
    async with working(shop) as worker:
        await shop.send(CONCURRENCY)
        await home(shop, worker)
        shop.gate.clear()
        await shop.send(4 * CONCURRENCY)
        await until(lambda: shop.in_hand == 2 * CONCURRENCY)

        outage.begin()
        knocks = Knocks(proxy)
        shop.gate.set()
        await until(lambda: not shop.on_broker())
        await until(lambda: knocks.number >= 3)

        assert not worker.ready
        assert knocks.number <= knocks.allowed(hanging=outage.hanging)
        outage.end()
        await home(shop, worker)
    assert shop.problems() == []


async def test_coming_and_going_every_second_nothing_is_lost_and_nothing_counted_twice(
    outage: Outage, proxy: Proxy, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, proxy)
    async with working(shop) as worker:
        knocks = Knocks(proxy)
        for _ in range(3):
            for change in (outage.begin, outage.end):
                change()
                await shop.send(20)
                await asyncio.sleep(1)  # the fault itself, not a guess: F9 wants it every second

        # Each time that it is back, a few connections to work by.
        assert knocks.number <= knocks.allowed(hanging=3 * outage.hanging) + 3 * 5
        await home(shop, worker)
    assert shop.problems() == []


async def test_with_no_other_sink_nothing_is_acknowledged_until_the_server_is_back(
    outage: Outage, proxy: Proxy, tmp_path: Path
) -> None:
    (in_the_way := tmp_path / "no folder").write_text("")
    no_queue = {"dead_letter_queue": "{queue}\x07"}
    shop = Shop(tmp_path, proxy, spool=in_the_way, broker=no_queue)
    outage.begin()
    knocks = Knocks(proxy)
    async with working(shop) as worker:
        await shop.send(30)
        await until(lambda: not worker.consumers[0].ready)
        await until(lambda: knocks.number >= 3)

        assert shop.on_broker() == 30
        assert not worker.ready
        assert knocks.number <= knocks.allowed()

        outage.end()
        await home(shop, worker)
    assert shop.problems() == []


async def test_everything_that_uses_the_store_together_leaves_it_alone(proxy: Proxy, tmp_path: Path) -> None:
    """Letters, confirmations, counts, expiry and the spool."""
    shop = Shop(tmp_path, proxy, queues={"orders": {"dead_letters": {"expire_after": 30 * 86_400}}})
    async with working(shop) as worker:
        await shop.send(CONCURRENCY)
        await home(shop, worker)
        shop.gate.clear()
        async with wiring.desk(shop.unhurried, local("test")) as desk:
            letters = [letter.id for letter in await desk.letters(LetterQuery())]
            assert {str(outcome.result) for outcome in await desk.retry(letters)} == {"sent"}
        await until(lambda: shop.in_hand == 2 * CONCURRENCY)

        proxy.refusing = True
        proxy.cut_all()
        knocks = Knocks(proxy)
        shop.gate.set()
        await shop.send(20)
        await until(lambda: not shop.on_broker())
        await until(lambda: knocks.number >= 3)

        assert knocks.number <= knocks.allowed()
        proxy.refusing = False
        await home(shop, worker)
    assert shop.problems() == []


@pytest.mark.parametrize("seconds", [0.6, 3.0], ids=["within the deadline of a statement", "beyond it"])
async def test_f10_a_slow_server_holds_nobody_up_for_ever_and_takes_no_connection_for_itself(
    seconds: float, proxy: Proxy, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, proxy, store={"pool_size": POOL})
    async with working(shop) as worker:
        await shop.send(CONCURRENCY)
        await home(shop, worker)

        proxy.delay = seconds
        knocks = Knocks(proxy)
        await shop.send(8 * CONCURRENCY)
        await until(lambda: not shop.on_broker())  # though every answer takes too long

        assert knocks.number <= knocks.allowed(hanging=Silent.hanging)
        proxy.delay = 0.0
        await home(shop, worker)
        for _ in range(4):  # no more at once than connections: nobody waits in line against a deadline
            answers = await asyncio.gather(*(worker._store.statistics() for _ in range(POOL)))
            assert {answer.total for answer in answers} == {shop.sent}
    assert shop.problems() == []


async def test_a_worker_that_is_stopped_while_the_server_is_silent_leaves_and_loses_nothing(
    proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.stores.postgres_connections._GOODBYE", 0.2)
    monkeypatch.setattr("redrive.stores.folding._LEAVING", 0.2)
    shop = Shop(tmp_path, proxy)
    async with working(shop) as worker:
        await shop.send(CONCURRENCY)
        await home(shop, worker)
        shop.gate.clear()
        await shop.send(2 * CONCURRENCY)
        await until(lambda: shop.in_hand == 2 * CONCURRENCY)
        proxy.fall_silent()
        shop.gate.set()

    proxy.speak_again()
    async with working(shop) as worker:
        await home(shop, worker)
    assert shop.problems() == []


# Several processes


def test_two_processes_drain_the_spools_of_the_dead_at_once_each_letter_once(
    proxy: Proxy, experiment: Callable[..., Experiment], second_nursery: Nursery
) -> None:
    lab, play = experiment(store=proxy.url, lease=UNHURRIED), StoreBack(lots=20)
    for _ in range(4):  # each leaves a spool of its own
        play.set_stage(lab)
    assert len(lab.premises.unplayed()) == 4

    first = lab.start("work")
    lab.nursery = second_nursery
    second = lab.start("work")

    assert (first.wait(), second.wait()) == (0, 0), lab.told()
    assert lab.problems(play.in_flight) == []


def test_two_processes_without_the_server_leave_it_alone_and_bring_everything_home(
    server: PrivatePostgres,
    proxy: Proxy,
    experiment: Callable[..., Experiment],
    second_nursery: Nursery,
    third_nursery: Nursery,
) -> None:
    lab, play = experiment(store=proxy.url, lease=UNHURRIED), Scenario(lots=30)
    assert lab.run("record", letters=1) == 0  # the tables are there
    server.stop()
    knocks, workers = Knocks(proxy), []
    for each in (second_nursery, third_nursery):
        first, lab.nursery = lab.nursery, each
        workers.append(lab.start("work", forever=True))
        lab.nursery = first
    lab.wait_until_they_listen(workers)
    play.set_stage(lab)
    while knocks.number < 4 or lab.premises.broker.messages():
        assert not workers[0].ended_within(0.02)

    assert knocks.number <= knocks.allowed(processes=2)
    assert lab.premises.unplayed()
    server.start()
    while lab.premises.unplayed():
        assert not workers[0].ended_within(0.02)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0], lab.told()
    assert lab.problems(play.in_flight) == []
