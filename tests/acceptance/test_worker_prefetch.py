"""How many messages a worker has in hand: those that run, those that wait, those that are being settled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, Retry
from redrive.transports.embedded import EmbeddedTransport
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from redrive.dead_letter import Entry, Recorded
    from redrive.transports import Delivery


@pytest.mark.parametrize(
    ("worker", "expected"), [({"concurrency": 2}, 2), ({"concurrency": 2, "prefetch": 7}, 7)], ids=["unset", "set"]
)
async def test_a_worker_asks_the_broker_for_as_many_as_the_settings_say(
    tmp_path: Path, worker: dict[str, Any], expected: int
) -> None:
    app, asked = App("shop"), []
    began, go = set[int](), asyncio.Event()

    class Noting(EmbeddedTransport):
        def receive(self, queue: str, *, prefetch: int) -> AsyncGenerator[Delivery]:
            asked.append(prefetch)
            return super().receive(queue, prefetch=prefetch)

    @app.handler("orders")
    async def charge(order: int) -> None:
        began.add(order)
        await go.wait()

    async with workshop(app, tmp_path, opening=Noting, worker=worker) as shop:
        await shop.send("orders", *range(10))
        await until(lambda: len(began) == 2)
        assert asked == [expected]
        go.set()
        await until(shop.empty)
    assert began == set(range(10))


async def test_letters_are_written_together_while_no_more_handlers_run_than_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store takes as long for one letter as for many: handlers do not wait for it."""
    app, running, most = App("shop"), 0, 0
    arriving, go = 0, asyncio.Event()

    @app.handler("orders", retry=Retry(1))
    async def charge(_order: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        raise ValueError("no customer")

    async with workshop(app, tmp_path, worker={"concurrency": 2, "prefetch": 7}) as shop:
        record = shop.store.record

        async def held(entry: Entry) -> tuple[str, Recorded]:
            nonlocal arriving
            arriving += 1
            await go.wait()
            return await record(entry)

        monkeypatch.setattr(shop.store, "record", held)
        await shop.send("orders", *range(20))
        await until(lambda: arriving == 7)
        assert (await shop.transport.depths())["orders"].leased == 7
        go.set()
        await until(shop.empty)
        assert len(await shop.letters()) == 20
    assert most == 2
