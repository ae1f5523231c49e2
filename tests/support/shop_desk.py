"""What several people do at the desk of a shop with dead orders, and a shop that takes any bytes for an order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from redrive.access import local
from redrive.actions import Actions
from redrive.message import Message
from support.desk import LaterClock
from support.patience import until
from support.run_shop import RunShop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.run import Run


class ByteShop(RunShop):
    """Its handler does not look into the body: `outcome` is asked about order 0."""

    async def charge(self, message: Message) -> None:
        self.charged.append(message)
        if (error := self.outcome(0)) is not None:
            raise error


class GatedShop(RunShop):
    """Its handler waits as long as the gate is closed."""

    def __init__(self, folder: Path, *, store_url: str | None = None) -> None:
        super().__init__(folder, store_url=store_url)
        self.gate = asyncio.Event()
        self.gate.set()

    async def charge(self, message: Message) -> None:
        await self.gate.wait()
        await super().charge(message)


async def done(shop: RunShop, *arguments: str) -> str:
    """What a command that ends well writes."""
    ended = await shop.redrive(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def letter_ids(shop: RunShop) -> list[str]:
    """Newest first."""
    return [letter.id for letter in await shop.opened.letters()]


async def carried_out(shop: RunShop, *, engines: int = 1) -> None:
    """All runs, by so many `redrive engine` at once."""
    started = [await shop.started("engine") for _ in range(engines)]
    await until(lambda: _nothing_runs(shop))
    assert [await engine.stop() for engine in started] == [0] * engines


async def carried_out_later(shop: RunShop, run_id: str) -> Run:
    """By somebody for whom the leases of a dead process have run out."""
    clock = LaterClock()
    store = shop.desk.store(clock=clock)
    try:
        actions = Actions(store=store, transport=shop.opened.transport, clock=clock, who=local("somebody"))
        return await actions.carry_out(run_id)
    finally:
        await store.close()


async def all_is_handled(shop: RunShop) -> None:
    """Until nothing is left on the broker, and no handler is busy."""
    await until(shop.opened.empty)


async def _nothing_runs(shop: RunShop) -> bool:
    store: Any = shop.opened.store
    return not await store.runs(active=True)
