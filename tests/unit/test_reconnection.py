"""Whoever waits for a broker stops waiting when it is cancelled, even if the broker goes away at that moment."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from redrive.errors import Unreachable
from redrive.reconnection import Reconnection
from redrive.testing import ManualClock
from redrive.transports import Transport


async def test_a_broker_that_is_away_while_it_is_cancelled_holds_up_nobody() -> None:
    began = asyncio.Event()

    async def take() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            raise Unreachable("nothing could be given back")

    broker = Reconnection("orders", transport=cast("Transport", None), clock=ManualClock())
    taking = asyncio.create_task(broker.attempt(take))
    await began.wait()
    taking.cancel()

    done, _ = await asyncio.wait({taking}, timeout=10)
    assert done
    with pytest.raises(asyncio.CancelledError):
        await taking


async def test_a_broker_that_goes_away_is_waited_for() -> None:
    async def take() -> None:
        raise Unreachable("gone")

    clock = ManualClock()
    broker = Reconnection("orders", transport=cast("Transport", None), clock=clock)
    taking = asyncio.create_task(broker.attempt(take))
    while not clock.sleeping:
        await asyncio.sleep(0)
    clock.advance(5)
    await taking
    assert not broker.connected
