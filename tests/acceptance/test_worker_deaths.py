"""Messages whose process died: one that kills is set apart after three deaths, its neighbours are not blamed."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from redrive import App
from redrive.dead_letter import MAX_DEATHS, Status
from redrive.testing import ManualClock
from redrive.transports import open_transport
from redrive.upkeep.journal import Journal
from support.patience import until
from support.plant import Plant
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

POISON = """
@app.handler("orders", concurrency=5)
def charge(order: dict):
    if order["number"] == 13:
        note("died")
        os.kill(os.getpid(), signal.SIGKILL)
    note("done", order["number"])
"""
NEIGHBOUR = """
@app.handler("orders")
async def charge(order: dict):
    for _ in range(40):  # it strikes while the neighbour runs, if that runs beside it
        if Path("running").exists():
            break
        await asyncio.sleep(0.005)
    note("died")
    os.kill(os.getpid(), signal.SIGKILL)

@app.handler("mails")
async def mail(data: dict):
    Path("running").touch()
    await asyncio.sleep(0.2)
    note("done", data["number"])
"""
SHORT_LEASE = {"lease": "300ms"}


async def run_until_it_survives(plant: Plant) -> int:
    """A supervisor: starts the worker again whenever it dies. How often it died."""
    deaths = 0
    while True:
        with plant.worker("--drain") as process:
            await until(lambda running=process: running.poll() is not None)  # type: ignore[misc]
        (plant.folder / "running").unlink(missing_ok=True)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0
            return deaths
        deaths += 1
        assert deaths <= MAX_DEATHS, "it goes on killing"


async def test_a_message_that_kills_its_process_is_quarantined_after_three_deaths_and_the_others_flow(
    tmp_path: Path,
) -> None:
    async with Plant(tmp_path, POISON, broker=SHORT_LEASE) as plant:
        [*_, poison] = await plant.send("orders", *({"number": number} for number in range(14)))
        await plant.send("orders", *({"number": number} for number in range(14, 20)))

        assert await run_until_it_survives(plant) <= MAX_DEATHS

        assert plant.notes().count("died") <= MAX_DEATHS
        assert {note for note in plant.notes() if note != "died"} == {
            f"done {number}" for number in range(20) if number != 13
        }
        [letter] = await plant.letters()
        assert (letter.message.id, letter.status) == (poison.id, Status.QUARANTINED)
        assert letter.how == "3 process deaths"
        assert letter.type.endswith("DiedOfIt")
        assert plant.logged("message quarantined: its process died each time")


async def test_a_neighbour_that_was_running_at_each_death_is_not_blamed_even_in_another_queue(
    tmp_path: Path,
) -> None:
    async with Plant(tmp_path, NEIGHBOUR, broker=SHORT_LEASE) as plant:
        [poison] = await plant.send("orders", {"number": 1})
        await plant.send("mails", {"number": 2})

        await run_until_it_survives(plant)

        assert "done 2" in plant.notes()
        assert [letter.message.id for letter in await plant.letters()] == [poison.id]


# In this process: deliveries that somebody else took and never settled


@asynccontextmanager
async def abandoned(folder: Path, count: int, *, deaths: int = 0) -> AsyncIterator[ManualClock]:
    """`count` orders whose holder is gone, each counted as `deaths` deaths so far."""
    clock = ManualClock()
    holder = open_transport(f"embedded:///{folder}/broker.db", clock=clock, lease=60)
    app = App("sender", clock=clock)
    with app.lent(holder):
        for number in range(count):
            await app.send("orders", {"number": number})
    receiving = holder.receive("orders", prefetch=count)
    held = [await anext(receiving) for _ in range(count)]
    clock.advance(61)
    journal = Journal(folder / "journal.db", clock=clock)
    for delivery in held:
        for _ in range(deaths):
            await journal.begin(delivery.identity)
    await journal.close()
    yield clock
    await receiving.aclose()
    await holder.close()


async def counted_deaths(shop: Workshop) -> int:
    """Of the first message, as the journal has it."""
    journal: Journal = shop.worker._journal
    [identity] = await journal._run(
        lambda connection: [
            row[0] for row in connection.execute("SELECT coalesce(max(deaths), 0) FROM probable_deaths")
        ]
    )
    return int(identity)


async def test_after_one_death_what_was_in_hand_runs_beside_each_other(tmp_path: Path) -> None:
    app, together = App("shop"), asyncio.Barrier(3)

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        await together.wait()  # for ever, unless three are in here at once

    async with abandoned(tmp_path, 3) as clock, workshop(app, tmp_path, clock=clock) as shop:
        await until(shop.empty)

        assert await shop.letters() == []
        assert await counted_deaths(shop) == 0


async def test_after_two_deaths_they_run_one_at_a_time(tmp_path: Path) -> None:
    app, inside, most = App("shop"), 0, 0

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(10):
            await asyncio.sleep(0)
        inside -= 1

    async with abandoned(tmp_path, 5, deaths=1) as clock, workshop(app, tmp_path, clock=clock) as shop:
        await until(shop.empty)

        assert most == 1
        assert await counted_deaths(shop) == 0


async def test_after_three_deaths_a_message_is_quarantined_unrun(tmp_path: Path) -> None:
    app, runs = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])

    async with abandoned(tmp_path, 1, deaths=2) as clock, workshop(app, tmp_path, clock=clock) as shop:
        await until(shop.empty)

        [letter] = await shop.letters()
        assert (letter.status, letter.how, runs) == (Status.QUARANTINED, "3 process deaths", [])
        assert letter.failures[0].text == "the process died 3 times while it handled this message"
        assert await counted_deaths(shop) == 0  # a person who releases it gives it a new start


async def test_a_message_that_fails_without_killing_anybody_is_forgotten(tmp_path: Path) -> None:
    app = App("shop")

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        raise ValueError("no customer")

    async with abandoned(tmp_path, 1, deaths=1) as clock, workshop(app, tmp_path, clock=clock) as shop:
        [letter] = await until(shop.letters)
        await until(shop.empty)

        assert letter.status is Status.PENDING
        assert await counted_deaths(shop) == 0


async def test_a_message_that_is_given_back_when_the_worker_stops_is_forgotten(tmp_path: Path) -> None:
    app, began = App("shop"), asyncio.Event()

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        began.set()
        await asyncio.Event().wait()

    async with abandoned(tmp_path, 1, deaths=1) as clock, workshop(app, tmp_path, clock=clock) as shop:
        await began.wait()
        assert await counted_deaths(shop) == 2
        await shop.stop()

        assert (await shop.depth("orders")).ready == 1
        assert await counted_deaths(shop) == 0


async def test_without_a_journal_messages_are_handled_all_the_same(tmp_path: Path) -> None:
    app, runs = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])

    async with abandoned(tmp_path, 2) as clock:
        (tmp_path / "journal.db").mkdir()
        async with workshop(app, tmp_path, clock=clock) as shop:
            await until(shop.empty)

            assert sorted(runs) == [0, 1]
            assert await shop.letters() == []
