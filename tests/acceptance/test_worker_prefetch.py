"""How many messages a worker fetches ahead of those it has in hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App
from redrive.transports.embedded import EmbeddedTransport
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

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
