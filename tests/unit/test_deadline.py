"""A time limit: what never waits has none, what waits too long is cancelled, and nothing else is different."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redrive.deadline import within


async def limited(call: Any, seconds: float = 60.0) -> object:
    return await within(seconds, asyncio.get_running_loop(), call)


async def test_what_ends_with_its_first_step_gives_its_result_and_starts_no_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def quick() -> int:
        return 7

    def refuse(*_: object) -> None:
        raise AssertionError("a timer")

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_at", refuse)
    assert await within(1.0, loop, quick()) == 7


async def test_what_waits_gives_its_result_or_its_error() -> None:
    async def waits(error: Exception | None) -> int:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return 7

    assert await limited(waits(None)) == 7
    with pytest.raises(KeyError):
        await limited(waits(KeyError("x")))


async def test_what_waits_too_long_is_cancelled_and_that_is_a_timeout() -> None:
    cancelled = False

    async def hangs() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    with pytest.raises(TimeoutError):
        await limited(hangs(), 0.001)
    task = asyncio.current_task()
    assert task is not None
    assert (cancelled, task.cancelling()) == (True, 0)


async def test_one_that_catches_what_it_waited_for_may_wait_again() -> None:
    failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def insists() -> str:
        try:
            await failing
        except ValueError:
            await asyncio.sleep(0)
            return "caught"
        return "nothing"

    asyncio.get_running_loop().call_soon(failing.set_exception, ValueError())
    assert await limited(insists()) == "caught"


async def test_a_cancellation_from_outside_is_none_of_its_own() -> None:
    task = asyncio.create_task(limited(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_future_can_be_limited_as_well() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, 3)
    assert await limited(future) == 3
