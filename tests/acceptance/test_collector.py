"""`redrive collect`: what others dead-lettered comes into the store, once, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import structlog

from redrive import App, faults
from redrive.actions import Actions
from redrive.availability import Availability
from redrive.clock import SystemClock
from redrive.collector import Collector
from redrive.dead_letter import Recorded, Status
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.message import ErrorNote
from redrive.stores import open_store
from redrive.testing.letters import NOON
from redrive.transports import Names, open_transport
from redrive.transports.embedded import EmbeddedTransport
from support.dead_letters import an_order, foreign
from support.desk import Desk
from support.patience import until
from support.terminal import on_terminal
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
    from pathlib import Path

    from redrive.dead_letter import DeadLetter, Entry
    from redrive.message import Message
    from redrive.stores import DeadLetterStore
    from redrive.transports import Delivery, QueueDepth, Transport

POINTS = [point for point in faults.POINTS if point.startswith("collector.")]
REDRIVE = [sys.executable, "-c", "from redrive.cli.main import main; main()"]
SOON = {"REDRIVE_BROKER__LEASE": "200ms"}
"""What a killed process held is free again soon."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("redrive.availability._FIRST", 0.02)
    monkeypatch.setattr("redrive.availability._LAST", 0.02)
    monkeypatch.setattr("redrive.collecting._LOOK_AT_STORE", 0.01)
    monkeypatch.setattr("redrive.reconnection._FIRST", 0.02)
    yield
    faults.arm("")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def rejected(body: bytes = b"{}", *, queue: str = "orders", **more: Any) -> Message:
    """As RabbitMQ leaves it in a dead-letter queue."""
    death = {
        "queue": queue,
        "reason": "rejected",
        "count": 2,
        "time": NOON,
        "exchange": "",
        "routing-keys": [queue],
    }
    return foreign(body, queue=f"{queue}_dlq", headers=(("x-death", [death]), ("tenant", b"\xff")), **more)


def in_envelope() -> Message:
    """As S3's consumer leaves it."""
    order = an_order()
    assert order.envelope is not None
    note = ErrorNote("Connection refused", "500", "PDOException...")
    told = msgspec.structs.replace(order.envelope, error=note, retry_count=3)
    return foreign(msgspec.json.encode(told), queue="orders_dlq")


def letters(desk: Desk) -> list[DeadLetter]:
    """Newest first, each with its whole story."""

    async def work(store: DeadLetterStore, _transport: Transport) -> list[DeadLetter]:
        found = await store.find(LetterQuery(limit=500))
        return [letter for each in found if (letter := await store.get(each.id))]

    told: list[DeadLetter] = desk.do(work)
    return told


def collected(desk: Desk, *arguments: str) -> dict[str, Any]:
    ended = desk.redrive("collect", *arguments, "--once", "--output", "json")
    assert ended.code == 0, ended.err
    [row] = json.loads(ended.out)
    return dict(row)


# What comes in


def test_what_rabbitmq_dead_lettered_is_a_letter_of_the_queue_that_rejected_it(desk: Desk) -> None:
    message = rejected(b"\x00\xff")
    desk.send("limbo", [message])

    assert collected(desk, "limbo") == {
        "queue": "limbo",
        "new": 1,
        "again": 0,
        "came_back": 0,
        "quarantined": 0,
        "refused": 0,
    }

    [letter] = letters(desk)
    assert (letter.status, letter.queue, letter.handler) == (Status.PENDING, "orders", "unknown")
    assert (letter.type, letter.attempts) == ("rabbitmq.rejected", 2)
    assert (letter.first_attempt_at, letter.last_attempt_at) == (NOON, NOON)
    assert (letter.message.body, letter.message.headers) == (b"\x00\xff", message.headers)
    assert desk.take("limbo") == []


def test_s3s_envelope_keeps_its_error_and_goes_back_as_if_it_had_never_failed(desk: Desk) -> None:
    desk.send("orders_dlq", [in_envelope()])
    collected(desk, "orders_dlq")

    [letter] = letters(desk)
    assert (letter.queue, letter.type, letter.text, letter.attempts) == ("orders", "500", "Connection refused", 3)
    desk.redrive("retry", letter.id, "--yes")
    [delivery] = desk.take("orders")
    assert (delivery.message.error, delivery.message.retry_count) == (None, 0)


def test_what_nobody_understands_is_quarantined_with_its_cause(desk: Desk) -> None:
    desk.send("orders_dlq", [foreign(b"?", queue="orders_dlq"), rejected()])

    ended = desk.redrive("collect", "orders_dlq", "--once")

    assert ended.code == 0
    assert "1 of orders_dlq could not be understood" in ended.err
    [unknown] = [letter for letter in letters(desk) if letter.status is Status.QUARANTINED]
    assert (unknown.queue, unknown.message.body) == ("orders", b"?")
    assert unknown.how is not None
    assert unknown.how.startswith("no dialect understands")


async def test_what_our_worker_put_into_the_dead_letter_queue_comes_in_with_its_whole_story(
    tmp_path: Path,
) -> None:
    app = App("shop")

    @app.handler("orders")
    def charge(order: dict[str, int]) -> None:
        raise TimeoutError(f"no customer {order['number']}")

    retry = {"attempts": 3, "delays": ["10ms"], "jitter": "none"}
    async with workshop(app, tmp_path, dead_letters={"sink": "queue"}, retry=retry) as shop:
        await shop.send("orders", {"number": 7})
        await until(lambda: in_queue(shop.transport, "orders_dlq"))
        await shop.stop()
        assert not await shop.letters()

        await collector(shop.transport, shop.store).run(once=True)

        [letter] = await shop.letters()
    assert (letter.queue, letter.type, letter.attempts) == ("orders", "TimeoutError", 3)
    assert letter.handler.endswith("charge")
    assert [failure.attempt for failure in letter.failures] == [1, 2, 3]
    assert letter.failures[-1].frames[-1].function.endswith("charge")


async def test_a_letter_that_the_store_has_by_another_way_is_known(tmp_path: Path) -> None:
    app = App("shop")

    @app.handler("orders")
    def charge(order: dict[str, int]) -> None:
        raise ValueError(f"no customer {order['number']}")

    async with workshop(app, tmp_path, dead_letters={"sink": "both"}) as shop:
        await shop.send("orders", *({"number": number} for number in range(5)))
        await until(lambda: ready(shop.transport, "orders_dlq", 5))
        await shop.stop()
        assert len(await shop.letters()) == 5

        collecting = collector(shop.transport, shop.store)
        await collecting.run(once=True)

        assert (collecting.collected["orders_dlq"].new, collecting.collected["orders_dlq"].again) == (0, 5)
        assert not await shop.transport.depths()
        assert [letter.deliveries for letter in await shop.letters()] == [1] * 5


async def test_a_redriven_letter_that_fails_again_elsewhere_comes_back_to_itself(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, transport):
        await transport.send(rejected(), queue="orders_dlq")
        await collector(transport, store).run(once=True)
        [letter] = await store.find(LetterQuery())
        desk = Actions(store=store, transport=transport, clock=SystemClock(), actor="somebody")
        await desk.retry([letter.id])
        async for delivery in transport.receive("orders", prefetch=1):
            died_again = rejected().headers + delivery.message.headers
            await transport.send(delivery.message.with_headers(died_again), queue="orders_dlq")
            await transport.ack(delivery)
            break

        second = collector(transport, store)
        await second.run(once=True)

        assert second.collected["orders_dlq"].came_back == 1
        [same] = await store.find(LetterQuery())
        assert (same.id, same.generation, same.status) == (letter.id, 2, Status.PENDING)


# Whoever dies meanwhile


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_every_message_is_one_letter(desk: Desk, point: str) -> None:
    sent = [rejected(b"%d" % number) for number in range(30)]
    desk.send("orders_dlq", sent)

    killed = desk.process("collect", "orders_dlq", "--once", faults=f"{point}=kill9:0.3", **SOON)
    assert killed.returncode == -signal.SIGKILL
    finish(desk)

    assert sorted(letter.message.body or b"" for letter in letters(desk)) == sorted(
        each.body or b"" for each in sent
    )


@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit"])
def test_killed_while_the_store_commits_every_message_is_one_letter(desk: Desk, point: str) -> None:
    desk.do(lambda store, _transport: store.signing_key())  # there is a store, with no letter in it
    sent = [rejected(b"%d" % number) for number in range(30)]
    desk.send("orders_dlq", sent)

    killed = desk.process("collect", "orders_dlq", "--once", faults=f"{point}=kill9", **SOON)
    assert killed.returncode == -signal.SIGKILL
    finish(desk)

    assert sorted(letter.message.body or b"" for letter in letters(desk)) == sorted(
        each.body or b"" for each in sent
    )


async def test_nothing_is_acknowledged_that_the_store_does_not_have(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, transport):
        for number in range(20):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        ack, missing = transport.ack, list[str]()

        async def look_and_ack(delivery: Delivery) -> None:
            kept = {letter.message.id for letter in await store.find(LetterQuery(limit=100))}
            missing.extend({delivery.message.id} - kept)
            await ack(delivery)

        transport.ack = look_and_ack  # type: ignore[method-assign]
        await collector(transport, store).run(once=True)

    assert missing == []


def test_recorded_and_killed_before_the_acknowledgement_it_is_known_the_next_time(desk: Desk) -> None:
    desk.send("orders_dlq", [rejected()])
    assert (
        desk.process("collect", "orders_dlq", "--once", faults="collector.before_ack=kill9", **SOON).returncode < 0
    )
    assert len(letters(desk)) == 1

    row = finish(desk)

    assert (row["new"], row["again"]) == (0, 1)
    [letter] = letters(desk)
    assert len(letter.failures) == 1


def finish(desk: Desk) -> dict[str, Any]:
    """Collects until nothing is left, not even in the hands of the dead."""

    async def nothing_left(_store: DeadLetterStore, transport: Transport) -> bool:
        return not await transport.depths()

    totals: dict[str, Any] = {"new": 0, "again": 0}
    while not desk.do(nothing_left):
        row = collected(desk, "orders_dlq")
        totals = {key: totals[key] + row[key] for key in totals}
    return totals


# Whatever is away


async def test_while_the_store_is_away_nothing_is_acknowledged_and_it_goes_on_by_itself(tmp_path: Path) -> None:
    async with opened(tmp_path, store_url=f"sqlite:///{tmp_path}/away/letters.db") as (store, transport):
        for number in range(50):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        with structlog.testing.capture_logs() as logs:
            collecting = collector(transport, store)
            running = asyncio.create_task(collecting.run())
            await until(lambda: any("the store is away" in line["event"] for line in logs))
            await until(lambda: ready(transport, "orders_dlq", 50))  # given back, all of them

            (tmp_path / "away").mkdir()
            await until(lambda: nothing_in(transport))
            collecting.stop()
            await running

        assert len(await store.find(LetterQuery(limit=100))) == 50
        assert collecting.collected["orders_dlq"].new == 50


async def test_a_store_that_goes_away_in_the_middle_costs_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, transport):
        for number in range(50):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        flaky = Remembering(store, fails=[Unreachable("away") for _ in range(20)])
        collecting = collector(transport, flaky)

        await collecting.run(once=True)

        assert len(await store.find(LetterQuery(limit=100))) == 50
        assert collecting.collected["orders_dlq"].new == 50
        assert not await transport.depths()


async def test_a_letter_that_the_store_refuses_is_told_and_does_not_hold_up_the_others(tmp_path: Path) -> None:
    bad = rejected(b"bad")
    async with opened(tmp_path) as (store, transport):
        for message in (bad, *(rejected(b"%d" % number) for number in range(20))):
            await transport.send(message, queue="orders_dlq")
        picky = Remembering(store, refuses=b"bad")
        collecting = collector(transport, picky)
        with structlog.testing.capture_logs() as logs:
            await collecting.run(once=True)

        assert (collecting.collected["orders_dlq"].new, collecting.collected["orders_dlq"].refused) == (20, 1)
        assert picky.refusals == 1  # no hot loop
        assert await ready(transport, "orders_dlq", 1)
    [told] = [line for line in logs if line["log_level"] == "error"]
    assert told["message_id"] == bad.id
    assert "bad" not in str(told["error"])


async def test_a_broker_that_is_away_is_waited_for(tmp_path: Path) -> None:
    url = f"embedded:///{tmp_path}/away/broker.db"
    async with opened(tmp_path, broker_url=url) as (store, transport):
        with structlog.testing.capture_logs() as logs:
            collecting = collector(transport, store)
            running = asyncio.create_task(collecting.run())
            await until(lambda: any(line["event"] == "broker away" for line in logs))

            (tmp_path / "away").mkdir()
            await transport.send(rejected(), queue="orders_dlq")
            await until(lambda: collecting.collected["orders_dlq"].new)
            collecting.stop()
            await running


@pytest.mark.parametrize("away", ["store", "broker"])
def test_once_does_not_wait_for_what_was_never_there(desk: Desk, away: str) -> None:
    scheme = "sqlite" if away == "store" else "embedded"
    (desk.folder / "redrive.toml").write_text(f'[{away}]\nurl = "{scheme}:///{desk.folder}/away/file.db"\n')

    assert desk.redrive("collect", "orders_dlq", "--once").code == 6


# How it ends


async def test_stopped_it_gives_back_what_it_has_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.collecting._SETTLING", 0.05)
    async with opened(tmp_path) as (store, transport):
        for number in range(30):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        held = Remembering(store, hangs=True)
        collecting = collector(transport, held)
        running = asyncio.create_task(collecting.run())
        await until(lambda: len(held.entries) == 30)

        collecting.stop()
        await running

        assert await ready(transport, "orders_dlq", 30)


async def test_stopped_it_finishes_what_is_being_recorded(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, transport):
        for number in range(30):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        held = Remembering(store, hangs=True)
        collecting = collector(transport, held)
        running = asyncio.create_task(collecting.run())
        await until(lambda: len(held.entries) == 30)

        collecting.stop()
        held.go_on.set()
        await running

        assert collecting.collected["orders_dlq"].new == 30
        assert not await transport.depths()


async def test_once_does_not_end_while_messages_are_ready(tmp_path: Path) -> None:
    transport = SlowToHandOut(f"embedded:///{tmp_path}/broker.db", names=Names())
    store = open_store(f"sqlite:///{tmp_path}/letters.db")
    for number in range(5):
        await transport.send(rejected(b"%d" % number), queue="orders_dlq")

    await collector(transport, store).run(once=True)

    assert len(await store.find(LetterQuery(limit=100))) == 5
    await transport.close()
    await store.close()


def test_no_more_than_the_limit(desk: Desk) -> None:
    desk.send("orders_dlq", [rejected(b"%d" % number) for number in range(12)])
    desk.send("mail_dlq", [rejected(b"%d" % number, queue="mail") for number in range(12)])

    ended = desk.redrive("collect", "orders_dlq", "mail_dlq", "--once", "--limit", "10")

    assert ended.code == 0
    assert len(letters(desk)) == 10
    assert len(desk.take("orders_dlq")) + len(desk.take("mail_dlq")) == 14


async def test_a_rate_spreads_them(tmp_path: Path) -> None:
    clock = Sleepless()
    async with opened(tmp_path) as (store, transport):
        for number in range(10):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        availability = Availability(clock=clock, random=random.random)
        collecting = Collector(
            ["orders_dlq"],
            transport=transport,
            store=store,
            availability=availability,
            clock=clock,
            rate=2,
            limit=10,
        )
        await collecting.run()

        assert len(await store.find(LetterQuery(limit=100))) == 10
    assert clock.slept >= 9 * 0.5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_without_once_it_goes_on_until_a_signal(desk: Desk, number: signal.Signals) -> None:
    (desk.folder / "redrive.toml").write_text('[collector]\nqueues = ["orders_dlq"]\n')
    command = [*REDRIVE, "collect", "-o", "csv"]
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(*command, cwd=desk.folder, stdout=pipe, stderr=pipe)
    async with desk.opened() as (store, transport):
        await transport.send(rejected(), queue="orders_dlq")
        await until(lambda: nothing_in(transport))
        assert len(await store.find(LetterQuery())) == 1

    running.send_signal(number)
    out, err = await running.communicate()

    assert running.returncode == 0, err
    assert out.decode().splitlines()[1:] == ['"orders_dlq",1,0,0,0,0']


async def test_once_interrupted_says_so_and_gives_back_the_rest(desk: Desk) -> None:
    command = [*REDRIVE, "collect", "orders_dlq", "--once", "--rate", "0.01", "-o", "csv"]
    async with desk.opened() as (store, transport):
        for number in range(5):
            await transport.send(rejected(b"%d" % number), queue="orders_dlq")
        pipe = asyncio.subprocess.PIPE
        running = await asyncio.create_subprocess_exec(*command, cwd=desk.folder, stdout=pipe, stderr=pipe)
        await until(lambda: holds(transport, "orders_dlq", 4))

        running.send_signal(signal.SIGINT)
        out, err = await running.communicate()

        assert running.returncode == 130, err
        assert out.decode().splitlines()[1:] == ['"orders_dlq",1,0,0,0,0']
        assert await ready(transport, "orders_dlq", 4)
        assert len(await store.find(LetterQuery())) == 1


def test_on_a_terminal_there_is_a_bar_and_then_the_table(desk: Desk) -> None:
    desk.send("orders_dlq", [rejected(b"%d" % number) for number in range(5)])

    seen = on_terminal(desk.folder, "collect", "orders_dlq", "--once")

    assert seen.code == 0
    assert "Collecting" in seen.text
    assert "COLLECTED" in seen.text


@pytest.mark.parametrize("names", [[""], ["orders_dlq", ""]])
def test_a_queue_has_a_name(desk: Desk, names: list[str]) -> None:
    assert desk.redrive("collect", *names, "--once").code == 2


def test_an_empty_queue_is_nothing_to_complain_about(desk: Desk) -> None:
    ended = desk.redrive("collect", "orders_dlq", "--once")

    assert ended.code == 0
    assert ended.out.split()[-6:] == ["orders_dlq", "0", "0", "0", "0", "0"]


def test_without_any_queue_it_says_what_to_do(desk: Desk) -> None:
    ended = desk.redrive("collect", "--once")

    assert ended.code == 2
    assert "[collector] queues" in ended.err


# What the tests stand on


class Sleepless(SystemClock):
    """Counts the time that others want to sleep, and lets it pass at once."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    async def sleep(self, seconds: float) -> None:
        if seconds < 5:  # not what tells now and then
            self.slept += seconds
            await asyncio.sleep(0)
        else:
            await asyncio.Event().wait()


class SlowToHandOut(EmbeddedTransport):
    """Hands out nothing before somebody has looked four times at how much there is."""

    looks = 0

    async def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        await until(lambda: self.looks >= 4)
        async with aclosing(super().receive(queue, prefetch=prefetch)) as deliveries:
            async for delivery in deliveries:
                yield delivery

    async def depths(self, queues: Collection[str] = ()) -> Mapping[str, QueueDepth]:
        self.looks += 1
        return await super().depths(queues)


class Remembering:
    """A real store that remembers what it was asked to record, and may refuse, be away or hang first."""

    def __init__(
        self,
        store: DeadLetterStore,
        *,
        refuses: bytes | None = None,
        fails: list[Exception] | None = None,
        hangs: bool = False,
    ) -> None:
        self._store = store
        self._refuses = refuses
        self._fails = fails or []
        self.entries: list[Entry] = []
        self.refusals = 0
        self.go_on = asyncio.Event()
        if not hangs:
            self.go_on.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def record(self, entry: Entry) -> tuple[str, Recorded]:
        self.entries.append(entry)
        await self.go_on.wait()
        if entry.message.body == self._refuses:
            self.refusals += 1
            raise ValueError(f"cannot keep {entry.message.body!r}")
        if self._fails:
            raise self._fails.pop()
        return await self._store.record(entry)


def collector(transport: Transport, store: Any, *queues: str) -> Collector:
    clock = SystemClock()
    return Collector(
        queues or ("orders_dlq",),
        transport=transport,
        store=store,
        availability=Availability(clock=clock, random=random.random),
        clock=clock,
    )


@asynccontextmanager
async def opened(
    folder: Path, *, store_url: str | None = None, broker_url: str | None = None
) -> AsyncIterator[tuple[DeadLetterStore, Transport]]:
    store = open_store(store_url or f"sqlite:///{folder}/letters.db")
    transport = open_transport(broker_url or f"embedded:///{folder}/broker.db", names=Names())
    try:
        yield store, transport
    finally:
        await transport.close()
        await store.close()


async def in_queue(transport: Transport, queue: str) -> QueueDepth | None:
    return (await transport.depths((queue,))).get(queue)


async def nothing_in(transport: Transport) -> bool:
    return not await transport.depths()


async def holds(transport: Transport, queue: str, number: int) -> bool:
    depth = await in_queue(transport, queue)
    return depth is not None and depth.total == number


async def ready(transport: Transport, queue: str, number: int) -> bool:
    depth = await in_queue(transport, queue)
    return depth is not None and (depth.ready, depth.leased) == (number, 0)
