"""Threads of handlers that hang: others take their place, and calls wait when too many are lost."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
import structlog

from redrive import App, Retry
from redrive.handler import in_thread
from redrive.testing import bench_for
from redrive.threads import HandlerThreads
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def end() -> Iterator[threading.Event]:
    """What hangs, hangs until this."""
    event = threading.Event()
    yield event
    event.set()


async def hang(threads: HandlerThreads, end: threading.Event) -> None:
    """A call that hangs in its thread, and whose caller has gone."""
    began = threading.Event()

    def work() -> None:
        began.set()
        end.wait()

    call = asyncio.create_task(in_thread(threads, work))
    await until(began.is_set)
    call.cancel()
    await asyncio.wait({call})


async def test_a_call_begins_though_others_hang(end: threading.Event) -> None:
    threads = HandlerThreads(1)
    for _ in range(2):
        await hang(threads, end)
    await threads.room()

    assert await in_thread(threads, lambda: 17) == 17
    threads.shutdown()


async def test_when_too_many_hang_calls_wait_until_one_ends_and_it_is_logged_once(end: threading.Event) -> None:
    threads = HandlerThreads(1)
    for _ in range(3):
        await hang(threads, end)
    with structlog.testing.capture_logs() as logs:
        waiting = [asyncio.create_task(threads.room()) for _ in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)

        end.set()
        await asyncio.gather(*waiting)
    assert [entry["threads"] for entry in logs] == [3]
    threads.shutdown()


async def test_messages_behind_handlers_that_hang_are_handled_and_not_blamed(end: threading.Event) -> None:
    app, runs = App("shop"), []

    @app.handler("orders", retry=Retry(1), timeout="100ms", concurrency=2)
    def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])
        if order["number"] < 2:
            end.wait()

    async with bench_for(app) as bench:
        for number in range(8):
            await bench.send("orders", {"number": number})
        await bench.run_until_quiet()

        assert sorted(letter.message.data["number"] for letter in bench.letters) == [0, 1]
    assert sorted(runs) == list(range(8))
