"""F23, F25: a handler takes longer than the broker lets anybody keep a delivery. The broker closes the channel;
the worker takes a new one, the message comes again, and the late end of the first run settles nothing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from redrive import App
from support.patience import until
from support.rabbitmq_server import PrivateRabbit
from support.workshop import workshop

IMPATIENT = "application:set_env(rabbit, {}, {})."


async def test_a_delivery_that_the_broker_takes_back_is_handled_again_and_its_first_run_harms_nobody(
    own_rabbitmq: PrivateRabbit, tmp_path: Path
) -> None:
    for setting, milliseconds in (("consumer_timeout", 1000), ("channel_tick_interval", 200)):
        own_rabbitmq.ctl("eval", IMPATIENT.format(setting, milliseconds))
    app, began, ended, gate = App("shop"), list[int](), list[int](), asyncio.Event()

    @app.handler("orders", concurrency=3)
    async def charge(number: int) -> None:
        began.append(number)
        if number == 0 and began.count(0) == 1:
            await gate.wait()
        ended.append(number)

    async with workshop(app, tmp_path, broker_url=own_rabbitmq.url) as shop:
        await shop.send("orders", *range(5))
        await until(lambda: began.count(0) == 2)
        await until(lambda: 0 in ended)
        gate.set()
        await until(shop.empty)
        await shop.send("orders", 5)
        await until(lambda: 5 in ended)
        await until(shop.empty)

        assert began.count(0) == ended.count(0) == 2
        assert set(ended) == set(range(6))
        assert await shop.letters() == []
        assert shop.running is not None
        assert not shop.running.done()
    assert "unknown delivery tag" not in own_rabbitmq.log
    assert "delivery acknowledgement on channel" in own_rabbitmq.log
