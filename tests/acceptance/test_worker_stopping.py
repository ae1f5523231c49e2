"""How a worker ends: what runs may finish, what waits is given back, nothing is repeated that was done."""

from __future__ import annotations

import asyncio
import signal
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from redrive import App, faults
from redrive.dead_letter import Status
from redrive.errors import Unreachable
from redrive.transports.embedded import EmbeddedTransport
from support.patience import until
from support.plant import Plant
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from redrive.transports import Delivery
    from support.forked import Forked

SLOW = """
@app.handler("orders", concurrency=2)
async def charge(order: dict):
    note("began", order["number"])
    while not Path("go").exists():
        await asyncio.sleep(0.005)
    note("ended", order["number"])
"""
HUNG = """
@app.handler("orders", concurrency=2)
def charge(order: dict):
    note("began", order["number"])
    threading.Event().wait()
"""
STUBBORN = """
@app.handler("orders")
async def charge(order: dict):
    note("began", order["number"])
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
"""
QUICK = """
@app.handler("orders")
async def charge(order: dict):
    await asyncio.sleep(0.001)
    note("ended", order["number"])
"""


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    faults.arm("")


async def ended(process: Forked) -> int:
    await until(lambda: process.poll() is not None)
    return process.wait()


async def test_after_sigterm_what_runs_finishes_and_the_rest_stays_in_the_queue(tmp_path: Path) -> None:
    async with Plant(tmp_path, SLOW) as plant:
        await plant.send("orders", *({"number": number} for number in range(6)))
        with plant.worker() as process:
            await until(lambda: len(plant.notes()) == 2)
            process.send_signal(signal.SIGTERM)
            await until(lambda: plant.logged("stopping"))
            (tmp_path / "go").touch()

            assert await ended(process) == 0
        assert sorted(plant.notes()) == ["began 0", "began 1", "ended 0", "ended 1"]
        depth = await plant.depth("orders")
        assert (depth.ready, depth.leased) == (4, 0)

        with plant.worker("--drain") as process:
            assert await ended(process) == 0
        done = [note for note in plant.notes() if note.startswith("ended")]
        assert sorted(done) == [f"ended {number}" for number in range(6)]  # each once
        assert await plant.letters() == []


@pytest.mark.parametrize("source", [SLOW, HUNG], ids=["a coroutine", "a thread that cannot be stopped"])
async def test_a_second_signal_does_not_wait_and_gives_the_messages_back(tmp_path: Path, source: str) -> None:
    async with Plant(tmp_path, source) as plant:
        await plant.send("orders", *({"number": number} for number in range(3)))
        with plant.worker() as process:
            await until(lambda: len(plant.notes()) == 2)
            process.send_signal(signal.SIGTERM)
            await until(lambda: plant.logged("stopping"))
            process.send_signal(signal.SIGTERM)

            assert await ended(process) == 0
        depth = await plant.depth("orders")
        assert (depth.ready, depth.leased) == (3, 0)
        assert await plant.letters() == []


async def test_a_handler_that_hangs_does_not_keep_the_process_beyond_its_grace(tmp_path: Path) -> None:
    async with Plant(tmp_path, HUNG, worker={"grace": "100ms"}) as plant:
        await plant.send("orders", {"number": 1})
        with plant.worker() as process:
            await until(lambda: len(plant.notes()) == 1)
            process.send_signal(signal.SIGTERM)

            assert await ended(process) == 0
        assert (await plant.depth("orders")).ready == 1


async def test_a_handler_that_swallows_its_cancellation_does_not_keep_the_process(tmp_path: Path) -> None:
    async with Plant(tmp_path, STUBBORN) as plant:
        await plant.send("orders", {"number": 1})
        with plant.worker() as process:
            await until(lambda: len(plant.notes()) == 1)
            process.send_signal(signal.SIGTERM)
            await until(lambda: plant.logged("stopping"))
            process.send_signal(signal.SIGTERM)

            assert await ended(process) == 0
        assert plant.logged("handlers do not end though cancelled, leaving without them")
        depth = await plant.depth("orders")
        assert (depth.ready, depth.leased) == (1, 0)


async def test_under_load_nothing_is_lost_and_nothing_that_was_done_is_repeated(tmp_path: Path) -> None:
    async with Plant(tmp_path, QUICK) as plant:
        await plant.send("orders", *({"number": number} for number in range(300)))
        for _ in range(3):
            before = len(plant.notes())
            if before > 250:  # a slow machine: there is nothing left to be stopped in
                break
            with plant.worker() as process:  # it listens to signals before it begins
                await until(lambda count=before: len(plant.notes()) > count + 10)  # type: ignore[misc]
                process.send_signal(signal.SIGTERM)
                assert await ended(process) == 0
            assert (await plant.depth("orders")).leased == 0
        with plant.worker("--drain") as process:
            assert await ended(process) == 0

        assert sorted(plant.notes()) == sorted(f"ended {number}" for number in range(300))


async def test_drain_waits_for_delayed_retries(tmp_path: Path) -> None:
    source = """
@app.handler("orders", retry=Retry(3, "150ms"))
def charge(order: dict):
    note("tried", order["number"])
    raise TimeoutError
"""
    async with Plant(tmp_path, source) as plant:
        await plant.send("orders", {"number": 1})
        with plant.worker("--drain") as process:
            assert await ended(process) == 0

        assert plant.notes() == ["tried 1"] * 3
        assert [letter.status for letter in await plant.letters()] == [Status.PENDING]


# In this process


async def test_a_worker_that_is_cancelled_gives_back_what_it_has_in_hand(tmp_path: Path) -> None:
    app, began = App("shop"), asyncio.Event()

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        began.set()
        await asyncio.Event().wait()

    async with workshop(app, tmp_path) as shop:
        await shop.send("orders", {"number": 1})
        await began.wait()
        assert shop.running is not None
        shop.running.cancel()
        await asyncio.wait({shop.running})

        depth = await shop.depth("orders")
        assert (depth.ready, depth.leased) == (1, 0)
        shop.running = None


async def test_a_delivery_that_nobody_has_begun_with_when_the_worker_stops_is_given_back(tmp_path: Path) -> None:
    app, runs = App("shop"), []

    @app.handler("orders", concurrency=1)
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])

    async with workshop(app, tmp_path) as shop:
        [consumer] = shop.worker.consumers
        give = consumer._crew.give

        def give_and_finish(delivery: Delivery) -> None:
            give(delivery)
            finishing.append(asyncio.ensure_future(consumer.finish(0)))

        finishing: list[asyncio.Future[None]] = []
        consumer._crew._call = lambda: None  # type: ignore[method-assign]  # nobody comes to begin with it
        consumer._crew.give = give_and_finish  # type: ignore[method-assign]
        await shop.send("orders", {"number": 1})
        await until(lambda: bool(finishing) and finishing[0].done())

        depth = await shop.depth("orders")
        assert (runs, depth.ready, depth.leased) == ([], 1, 0)


async def test_what_a_handler_has_done_is_settled_even_if_nobody_waits_for_handlers(tmp_path: Path) -> None:
    app, runs = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])
        faults.arm("store.before_commit=hang:0.3")  # recording its letter takes a while
        raise ValueError("no customer")

    async with workshop(app, tmp_path) as shop:
        await shop.store.signing_key()
        await shop.send("orders", {"number": 1})
        await until(lambda: runs)
        await shop.stop()

        assert await shop.empty()
        [letter] = await shop.letters()
        assert (letter.message.data, runs) == ({"number": 1}, [1])


async def test_a_worker_stopped_before_it_runs_takes_nothing(tmp_path: Path) -> None:
    app = App("shop")
    app.handler("orders")(lambda _order: None)
    async with workshop(app, tmp_path, start=False) as shop:
        await shop.send("orders", {"number": 1})
        shop.worker.stop()
        await shop.start()

        assert (await shop.depth("orders")).ready == 1


async def test_a_broker_that_goes_away_is_waited_for_and_the_worker_says_so(tmp_path: Path) -> None:
    app, runs = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])

    async with workshop(app, tmp_path) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: runs == [1])
        await until(shop.empty)
        assert shop.worker.ready

        await app.send("orders", {"number": 2}, delay="100ms")
        faults.arm("broker.before_commit=eio")  # when it is due, it cannot be fetched
        await until(lambda: not shop.worker.ready)
        assert runs == [1]
        faults.arm("")
        await until(lambda: runs == [1, 2])
        assert shop.worker.ready


async def test_a_worker_starts_before_its_broker_and_is_ready_when_it_is_there(tmp_path: Path) -> None:
    app, runs = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])

    async with workshop(app, tmp_path, broker_url=f"embedded:///{tmp_path}/later/broker.db") as shop:
        await until(lambda: not shop.worker.ready)
        (tmp_path / "later").mkdir()
        await until(lambda: shop.worker.ready)  # though nothing has come yet
        await shop.send("orders", {"number": 1})
        await until(lambda: runs == [1])


class LeavesBadly(EmbeddedTransport):
    """The real one, away in the moment in which a receiver gives back what it has fetched."""

    away = False

    async def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
        try:
            async with aclosing(super().receive(queue, prefetch=prefetch)) as deliveries:
                async for delivery in deliveries:
                    yield delivery
        finally:
            if self.away:
                raise Unreachable("the broker is away")


async def test_a_worker_that_stops_while_the_broker_is_away_takes_nothing_more(tmp_path: Path) -> None:
    app, runs, going_on = App("shop"), [], asyncio.Event()

    @app.handler("orders", concurrency=2)
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])
        await going_on.wait()

    async with workshop(app, tmp_path, opening=LeavesBadly) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: runs == [1])
        LeavesBadly.away = True
        shop.worker.stop()
        taking = shop.worker.consumers[0]._taking
        assert taking is not None
        await until(taking.done, within=5)  # while the handler still runs
        LeavesBadly.away = False
        await shop.send("orders", {"number": 2})
        going_on.set()
        assert shop.running is not None
        await shop.running

        assert runs == [1]
        assert (await shop.depth("orders")).ready == 1
