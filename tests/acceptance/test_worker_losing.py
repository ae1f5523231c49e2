"""A worker whose delivery somebody else may have: its handler is cancelled, and settles nothing (R20)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from redrive import App
from redrive.transports.embedded import EmbeddedTransport
from redrive.transports.embedded_lease import Lease
from support.patience import until
from support.workshop import Workshop, workshop


async def lose_everything(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if others had taken what is held: the next heartbeat finds out."""
    leases = cast("EmbeddedTransport", shop.transport)._leases

    async def none_of_them(_held: list[Lease], _until: int) -> set[int]:
        return set()

    with monkeypatch.context() as patched:
        patched.setattr(leases, "_extend", none_of_them)
        await leases.renew()


async def test_a_handler_whose_lease_is_lost_is_cancelled_and_the_next_delivery_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, story, may_end = App("shop"), [], asyncio.Event()

    @app.handler("orders")
    async def charge(order: dict[str, Any]) -> None:
        story.append(f"began {order['number']}")
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            story.append("cancelled")
            raise
        story.append("ended")

    async with workshop(app, tmp_path) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: story)
        await lose_everything(shop, monkeypatch)
        await until(lambda: len(story) == 3)
        may_end.set()
        await until(shop.empty)

        assert story == ["began 1", "cancelled", "began 1", "ended"]
        assert await shop.letters() == []


async def test_a_handler_that_swallows_its_cancellation_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, story = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, Any]) -> None:
        story.append(f"began {order['number']}")
        if len(story) == 1:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                story.append("went on")

    async with workshop(app, tmp_path) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: story)
        lease = next(iter(cast("EmbeddedTransport", shop.transport)._leases._held))
        lease.receipt = -1  # somebody else has it, and gives it back
        await lose_everything(shop, monkeypatch)
        await until(lambda: len(story) == 2)
        await until(lambda: not shop.worker.consumers[0].busy)

        assert (await shop.depth("orders")).leased == 1


async def test_a_plain_handler_runs_on_in_its_thread_and_settles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, story, may_end = App("shop"), [], threading.Event()

    @app.handler("orders", concurrency=1)
    def charge(order: dict[str, Any]) -> None:
        story.append(f"began {order['number']}")
        may_end.wait()
        story.append("ended")

    async with workshop(app, tmp_path) as shop:
        await shop.send("orders", {"number": 1})
        await until(lambda: story)
        await lose_everything(shop, monkeypatch)
        await until(lambda: story.count("began 1") == 2)
        assert (await shop.depth("orders")).leased == 1
        may_end.set()
        await until(shop.empty)

    assert story.count("ended") == 2
