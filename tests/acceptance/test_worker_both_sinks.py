"""`sink = "both"`: a letter is in the store and in the dead-letter queue before its message is acknowledged."""

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

BOTH = {"sink": "both"}
NO_QUEUE_CAN_BE_CALLED_THAT = Names(dead="\x07{queue}")


class Shop:
    def __init__(self) -> None:
        self.app = App("shop")
        self.told: list[DeadLetter] = []
        self.app.handler("orders")(self.charge).on_dead_letter(self.told.append)

    def charge(self, order: dict[str, int]) -> None:
        raise ValueError(f"no customer {order}")


@pytest.fixture(autouse=True)
def quick_upkeep(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("redrive.worker._SPOOL_EVERY", 0.02)
    monkeypatch.setattr("redrive.availability._FIRST", 0.02)
    monkeypatch.setattr("redrive.availability._LAST", 0.02)
    yield
    faults.arm("")


async def in_dead_letter_queue(shop: Workshop) -> int:
    return (await shop.depth("orders_dlq")).total


async def test_a_letter_is_in_the_store_and_in_the_dead_letter_queue(tmp_path: Path) -> None:
    here = Shop()
    with structlog.testing.capture_logs() as logs:
        async with workshop(here.app, tmp_path, dead_letters=BOTH) as shop:
            [message] = await shop.send("orders", {"number": 1})
            await until(lambda: here.told)

            [letter] = await shop.letters()
            assert letter.message.id == message.id
            assert await in_dead_letter_queue(shop) == 1
            assert (await shop.depth("orders")).total == 0
            assert shop.worker.ready
    [line] = [line for line in logs if line["event"] == "message sent to dead letter queue"]
    assert (line["sink"], line["letter_id"]) == ("store and queue", letter.id)


async def test_nothing_is_acknowledged_before_both_have_it(tmp_path: Path) -> None:
    here = Shop()
    async with workshop(here.app, tmp_path, dead_letters=BOTH) as shop:
        send, depths = shop.transport.send, []

        async def look_and_send(*given: object, **named: object) -> None:
            if named.get("queue") == "orders_dlq":
                depths.append(((await shop.depth("orders")).leased, len(await shop.letters())))
            await send(*given, **named)  # type: ignore[arg-type]

        shop.transport.send = look_and_send  # type: ignore[method-assign]
        await shop.send("orders", {"number": 1})
        await until(lambda: here.told)

    assert depths == [(1, 1)]  # in the store, still held


async def test_while_the_store_is_away_spool_and_queue_have_it(tmp_path: Path) -> None:
    here = Shop()
    async with workshop(
        here.app, tmp_path, dead_letters=BOTH, store_url=f"sqlite:///{tmp_path}/away/letters.db"
    ) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: here.told)
        assert shop.spool.pending().segments
        assert await in_dead_letter_queue(shop) == 1

        (tmp_path / "away").mkdir()
        await until(lambda: not shop.spool.pending().segments)
        assert len(await shop.letters()) == 1


async def test_while_the_queue_takes_nothing_the_store_is_enough_and_it_is_told(tmp_path: Path) -> None:
    here = Shop()
    with structlog.testing.capture_logs() as logs:
        async with workshop(here.app, tmp_path, dead_letters=BOTH, names=NO_QUEUE_CAN_BE_CALLED_THAT) as shop:
            await shop.send("orders", {"number": 1})
            await until(lambda: here.told)

            assert [letter.deliveries for letter in await shop.letters()] == [1]
            assert await shop.empty()
    assert "dead letter not in the dead-letter queue as well" in {line["event"] for line in logs}


async def test_while_neither_store_nor_spool_take_it_the_queue_is_enough(tmp_path: Path) -> None:
    here, spool = Shop(), tmp_path / "spool"
    spool.write_text("a file where the folder should be")
    away = f"sqlite:///{tmp_path}/away/letters.db"
    async with workshop(here.app, tmp_path, dead_letters=BOTH, store_url=away, spool_folder=spool) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: here.told)

        assert set(await shop.transport.depths()) == {"orders_dlq"}
