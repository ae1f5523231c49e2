"""What a message leaves behind in the process that handled it."""

from __future__ import annotations

import gc
import weakref

from redrive import App, Permanent
from redrive.testing import bench_for


async def test_what_a_handler_raised_is_gone_without_the_garbage_collector() -> None:
    """Or each failing message would hold its frames, with its payload, until that comes round."""

    class Refused(Permanent):
        pass

    app = App("shop")
    raised: list[weakref.ref[Refused]] = []

    @app.handler("orders")
    async def handler(_order: dict[str, int]) -> None:
        error = Refused("no customer")
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    async with bench_for(app) as bench:
        gc.collect()
        gc.disable()
        try:
            await bench.send("orders", {"id": 1})
            await bench.run_until_quiet()
            assert [each() for each in raised] == [None]
        finally:
            gc.enable()
