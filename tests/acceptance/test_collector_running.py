"""`redrive collect` while the store or the broker is away, and how it ends."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive.availability import Availability
from redrive.clock import SystemClock
from redrive.collector import Collector
from redrive.dead_letter import Recorded
from redrive.errors import Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.transports import Names
from redrive.transports.embedded import EmbeddedTransport
from support.collecting import (
    collector,
    holds,
    hurry,
    letters,
    nothing_in,
    opened,
    ready,
    rejected,
)
from support.desk import Desk
from support.patience import until
from support.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
    from pathlib import Path

    from redrive.dead_letter import Entry
    from redrive.stores import DeadLetterStore
    from redrive.transports import Delivery, QueueDepth

REDRIVE = [sys.executable, "-c", "from redrive.cli.main import main; main()"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


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


# What it tells


async def test_what_it_has_collected_is_told_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.collector._TELL_EVERY", Ticking.TICK)
    clock = Ticking()
    async with opened(tmp_path) as (store, transport):
        with structlog.testing.capture_logs() as logs:
            collecting = collector(transport, store, clock=clock)
            running = asyncio.create_task(collecting.run())
            for number in (1, 2):
                await transport.send(rejected(b"%d" % number), queue="orders_dlq")
                told_by = await until(lambda: _told(logs)[-1:] == [number] and clock.ticks)  # noqa: B023  awaited
                await until(lambda: clock.ticks > told_by + 2)  # noqa: B023  as above
            collecting.stop()
            await running
    assert _told(logs) == [1, 2]


def _told(logs: Sequence[Mapping[str, Any]]) -> list[int]:
    return [line["new"] for line in logs if line["event"] == "collected"]


# What the tests stand on


class Ticking(SystemClock):
    """Counts how often it was the time to tell."""

    TICK = 0.0123

    def __init__(self) -> None:
        self.ticks = 0

    async def sleep(self, seconds: float) -> None:
        self.ticks += seconds == self.TICK
        await super().sleep(seconds)


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
        await self._before([entry])
        self.refusals += entry.message.body == self._refuses
        self._refuse([entry])
        return await self._store.record(entry)

    async def record_together(self, entries: Sequence[Entry]) -> list[tuple[str, Recorded]]:
        await self._before(entries)
        self._refuse(entries)
        return await self._store.record_together(entries)

    async def _before(self, entries: Sequence[Entry]) -> None:
        self.entries.extend(entries)
        await self.go_on.wait()
        if self._fails:
            raise self._fails.pop()

    def _refuse(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.message.body == self._refuses:
                raise ValueError(f"cannot keep {entry.message.body!r}")
