"""The metrics of a server: the store is asked once for all who ask, and what is not known is not told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from redrive.errors import Unreachable
from redrive.metrics_wiring import ServerMetrics
from redrive.statistics import StoreNumbers
from redrive.testing.clock import ManualClock
from support.scraped import value


class Store:
    """Answers when it is let, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.let = asyncio.Event()
        self.let.set()
        self.error: Exception | None = None

    async def numbers(self) -> StoreNumbers:
        self.asked += 1
        await self.let.wait()
        if self.error is not None:
            raise self.error
        return StoreNumbers(
            by_status={"PENDING": self.asked},
            open_by_queue={},
            oldest=None,
            transitions=(),
            redrives=(),
            runs_by_status={},
            unindexed=0,
        )


def of(store: Any, clock: ManualClock | None = None) -> ServerMetrics:
    return ServerMetrics(store, clock or ManualClock())


def pending(text: bytes) -> float:
    return value(text.decode(), "redrive_dead_letters", status="PENDING")


async def test_those_who_ask_at_once_are_told_the_same_and_the_store_is_asked_once() -> None:
    store = Store()
    store.let.clear()
    metrics = of(store)
    asking = [asyncio.create_task(metrics.text()) for _ in range(300)]
    await asyncio.sleep(0)
    store.let.set()

    assert {pending(each) for each in await asyncio.gather(*asking)} == {1}
    assert store.asked == 1


async def test_an_answer_is_kept_for_a_second() -> None:
    store, clock = Store(), ManualClock()
    metrics = of(store, clock)
    told = []
    for _ in range(4):
        told.append(pending(await metrics.text()))
        clock.advance(0.5)

    assert told == [1, 1, 2, 2]


async def test_one_who_goes_away_takes_the_answer_from_nobody() -> None:
    store = Store()
    store.let.clear()
    metrics = of(store)
    first, second = (asyncio.create_task(metrics.text()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    store.let.set()

    assert pending(await second) == 1
    assert (first.cancelled(), store.asked) == (True, 1)


@pytest.mark.parametrize(
    ("error", "complaints"),
    [(Unreachable("the store is away", remedy="bring it back"), 0), (ZeroDivisionError("quotes a letter"), 1)],
    ids=["away", "anything else"],
)
async def test_a_store_that_fails_is_told_as_not_up_and_no_old_number_with_it(
    error: Exception, complaints: int
) -> None:
    store, clock = Store(), ManualClock()
    metrics = of(store, clock)
    assert value((await metrics.text()).decode(), "redrive_store_up") == 1
    store.error = error
    with capture_logs() as logs:
        for _ in range(3):  # it is complained about once
            clock.advance(15)
            text = (await metrics.text()).decode()

    assert value(text, "redrive_store_up") == 0
    assert "redrive_dead_letters{" not in text
    assert len(logs) == complaints
    assert "quotes a letter" not in str(logs)


async def test_a_store_that_hangs_is_told_as_not_up_before_prometheus_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("redrive.metrics_wiring._STORE_ANSWERS_WITHIN", 0.01)
    store = Store()
    store.let.clear()

    assert value((await of(store).text()).decode(), "redrive_store_up") == 0


async def test_the_loop_is_free_while_metrics_are_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, loop = of(Store()), asyncio.get_running_loop()

    def written() -> bytes:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(timeout=5)
        return b"text"

    monkeypatch.setattr(metrics._exposition, "text", written)

    assert await metrics.text() == b"text"
