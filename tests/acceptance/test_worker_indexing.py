"""A worker makes its letters searchable by itself, and works on where that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive import App
from redrive.testing import ManualClock
from redrive.testing.letters import an_entry
from support.patience import until
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from pathlib import Path

LETTERS = 60  # more than a batch


def shop_app() -> App:
    app = App("shop")

    @app.handler("orders")
    def charge(_order: dict[str, int]) -> None:
        raise ValueError("no customer")

    return app


async def _searchable(shop: Workshop) -> bool:
    return await shop.store.search_backlog() == 0


async def test_letters_become_searchable_behind_the_work(tmp_path: Path) -> None:
    clock = ManualClock()
    async with workshop(shop_app(), tmp_path, clock=clock, start=False) as shop:
        for _ in range(LETTERS):
            await shop.store.record(an_entry())
        assert await shop.store.search_backlog() == LETTERS

        shop.start()

        await until(lambda: _searchable(shop))
        await shop.send("orders", {"number": 1})
        await until(lambda: _recorded(shop, LETTERS + 1))
        clock.advance(1.0)
        await until(lambda: _searchable(shop))


async def _recorded(shop: Workshop, number: int) -> bool:
    return (await shop.store.statistics()).total == number
