"""Where letters go when the store is away, when everything is away, and how they come home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import structlog

from redrive import App, DeadLetter, faults
from redrive.transports import Names
from support.patience import until
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.transports import QueueDepth

NO_QUEUE_CAN_BE_CALLED_THAT = Names(dead="\x07{queue}")


class Shop:
    def __init__(self) -> None:
        self.app = App("shop")
        self.runs: list[int] = []
        self.told: list[DeadLetter] = []
        handler = self.app.handler("orders", concurrency=10)(self.charge)
        handler.on_dead_letter(self.told.append)

    def charge(self, order: dict[str, int]) -> None:
        self.runs.append(order["number"])
        raise ValueError("no customer")


@pytest.fixture(autouse=True)
def quick_upkeep(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("redrive.worker._SPOOL_EVERY", 0.02)
    monkeypatch.setattr("redrive.worker._TALLY_EVERY", 0.02)
    monkeypatch.setattr("redrive.availability._FIRST", 0.02)
    monkeypatch.setattr("redrive.availability._LAST", 0.02)
    monkeypatch.setattr("redrive.settling._SINK_FIRST", 0.02)
    yield
    faults.arm("")


def away(folder: Path) -> str:
    """A store in a folder that does not exist; once it is made, the store is there."""
    return f"sqlite:///{folder}/away/letters.db"


async def numbers_in(shop: Workshop) -> list[int]:
    return sorted(letter.message.data["number"] for letter in await shop.letters(limit=100))


async def test_while_the_store_is_away_letters_go_to_the_spool_and_from_there_into_it_each_once(
    tmp_path: Path,
) -> None:
    here = Shop()
    async with workshop(here.app, tmp_path, store_url=away(tmp_path)) as shop:
        await shop.send("orders", *({"number": number} for number in range(10)))
        await until(shop.empty)  # durable in the spool, so acknowledged
        assert shop.spool.pending().segments >= 1
        assert shop.worker.consumers[0].ready  # it goes on
        assert not shop.worker.ready  # and tells that something is missing

        (tmp_path / "away").mkdir()
        await until(lambda: not shop.spool.pending().segments)
        await until(lambda: shop.worker.ready)

        assert await numbers_in(shop) == list(range(10))
        assert {letter.deliveries for letter in await shop.letters()} == {1}
        assert sorted(here.runs) == list(range(10))
        assert len(here.told) == 10


async def test_what_the_store_refuses_for_a_reason_of_its_own_goes_to_the_spool_too(tmp_path: Path) -> None:
    here = Shop()
    async with workshop(here.app, tmp_path) as shop:
        await shop.store.signing_key()  # the file is made, and works
        faults.arm("store.before_commit=raise")
        await shop.send("orders", {"number": 1})
        await until(shop.empty)
        await until(lambda: shop.spool.pending().segments)
        faults.arm("")

        await until(lambda: not shop.spool.pending().segments)
        assert await numbers_in(shop) == [1]
        assert here.runs == [1]


async def test_when_nothing_takes_a_letter_its_message_is_not_acknowledged_and_consumption_pauses(
    tmp_path: Path,
) -> None:
    here, (spool, names) = Shop(), no_sink(tmp_path)
    with structlog.testing.capture_logs() as logs:
        async with workshop(here.app, tmp_path, store_url=away(tmp_path), spool_folder=spool, names=names) as shop:
            await shop.send("orders", {"number": 0})
            await until(lambda: not shop.worker.consumers[0].ready)
            await shop.send("orders", *({"number": number} for number in range(1, 30)))
            await until(lambda: any(line["event"].startswith("no sink takes") for line in logs))
            waiting = await settled_depth(shop)

            assert waiting.total == 30  # everything is still the broker's
            assert len(here.runs) <= 2  # one more was on its way, and no other of the ten places is used

            (tmp_path / "away").mkdir()
            await until(shop.empty)

            assert shop.worker.ready
            assert await numbers_in(shop) == list(range(30))
            assert len(here.runs) == 30  # whoever waited was not handled again
    critical = [line for line in logs if line["event"] == "no sink takes dead letters, consumption pauses"]
    assert critical[0]["log_level"] == "critical"
    assert all(name in critical[0]["error"] for name in ("store:", "spool:", "queue:"))


def no_sink(folder: Path) -> tuple[Path, Names]:
    in_the_way = folder / "spool"
    in_the_way.write_text("a file where the folder should be")
    return in_the_way, NO_QUEUE_CAN_BE_CALLED_THAT


async def settled_depth(shop: Workshop) -> QueueDepth:
    """The queue when what was fetched and not begun has been given back."""
    consumer = shop.worker.consumers[0]

    async def given_back() -> bool:
        return (await shop.depth("orders")).leased == len(consumer._crew.running)

    await until(given_back)
    return await shop.depth("orders")


async def test_a_worker_that_stops_while_nothing_takes_letters_gives_the_message_back(tmp_path: Path) -> None:
    here, (spool, names) = Shop(), no_sink(tmp_path)
    async with workshop(
        here.app,
        tmp_path,
        store_url=away(tmp_path),
        spool_folder=spool,
        names=names,
        worker={"grace": "50ms"},
    ) as shop:
        await shop.send("orders", {"number": 0})
        await until(lambda: not shop.worker.consumers[0].ready)
        shop.worker.stop()
        assert shop.running is not None
        await shop.running

        depth = await shop.depth("orders")
        assert (depth.ready, depth.leased) == (1, 0)


async def test_with_store_and_spool_away_the_dead_letter_queue_takes_it(tmp_path: Path) -> None:
    here = Shop()
    spool, _ = no_sink(tmp_path)
    async with workshop(here.app, tmp_path, store_url=away(tmp_path), spool_folder=spool) as shop:
        [message] = await shop.send("orders", {"number": 1})
        await until(lambda: here.told)

        assert set(await shop.transport.depths()) == {"orders_dlq"}
        assert here.told[0].message.id == message.id


async def test_a_worker_finds_out_that_its_store_is_away_and_that_it_is_back_though_nothing_fails(
    tmp_path: Path,
) -> None:
    async with workshop(Shop().app, tmp_path, store_url=away(tmp_path)) as shop:
        await until(lambda: not shop.worker.ready)

        (tmp_path / "away").mkdir()
        await until(lambda: shop.worker.ready)


async def test_a_worker_whose_letters_go_to_the_brokers_own_queue_needs_no_store_to_be_ready(
    tmp_path: Path,
) -> None:
    here = Shop()
    async with workshop(here.app, tmp_path, store_url=away(tmp_path), dead_letters={"sink": "queue"}) as shop:
        await until(lambda: shop.worker._availability.away)

        assert shop.worker.ready
