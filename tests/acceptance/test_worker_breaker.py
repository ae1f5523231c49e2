"""A dependency is down: consumption pauses and probes, instead of setting good messages apart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive import App, Drop, Retry
from redrive.breaker import BreakerState
from redrive.testing import ManualClock
from support.patience import until
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from pathlib import Path

FAILURES, CONCURRENCY, PAUSE, MESSAGES = 5, 3, 30.0, 40


class Dependency:
    """Handlers that need something which may be away."""

    def __init__(self, *, attempts: int = 50) -> None:
        self.away = True
        self.tried: list[int] = []
        self.app = App("shop", retry=Retry(attempts, "1000s"))
        self.app.handler("orders", concurrency=CONCURRENCY)(self.charge)

    def charge(self, order: dict[str, int]) -> None:
        self.tried.append(order["number"])
        if order.get("invalid"):
            raise ValueError("no customer")
        if self.away:
            raise ConnectionError("the bank is away")


def options(**more: Any) -> dict[str, Any]:
    return {"worker": {"breaker_failures": FAILURES, "breaker_pause": PAUSE, **more}}


def state(shop: Workshop) -> BreakerState:
    return shop.worker.consumers[0].breaker.state


async def opened(shop: Workshop) -> None:
    """The breaker has opened and what was in hand is settled."""
    await until(lambda: state(shop) is BreakerState.OPEN and not shop.worker.consumers[0].busy)


async def asleep(shop: Workshop) -> None:
    """The consumer waits for the breaker: nothing but time can make it go on."""
    await opened(shop)

    async def nothing_leased() -> bool:
        return not (await shop.depth("orders")).leased

    await until(nothing_leased)


async def test_it_opens_after_so_many_distinct_failures_and_leaves_the_rest_in_the_queue(tmp_path: Path) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, start=False, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        with structlog.testing.capture_logs() as logs:
            shop.start()
            await asleep(shop)

        assert FAILURES <= len(bank.tried) <= FAILURES + CONCURRENCY
        assert (await shop.depth("orders")).ready == MESSAGES - len(bank.tried)
        assert (await shop.depth("orders_retry")).delayed == len(bank.tried)
        assert await shop.letters() == []
        assert not shop.worker.ready
        [line] = [entry for entry in logs if entry["event"] == "breaker opened, consumption pauses"]
        assert (line["queue"], line["error_type"]) == ("orders", "ConnectionError")


async def test_it_probes_with_one_message_after_the_pause_and_waits_longer_each_time(tmp_path: Path) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        await asleep(shop)

        for pause in (PAUSE, 2 * PAUSE, 4 * PAUSE):
            tried = len(bank.tried)
            clock.advance(pause - 1)
            await _breathe(shop)
            assert len(bank.tried) == tried  # not a moment too early
            clock.advance(1)
            await until(partial(_tried, bank, tried + 1))
            await asleep(shop)


def _tried(bank: Dependency, times: int) -> bool:
    return len(bank.tried) == times


async def _breathe(shop: Workshop) -> None:
    """Whoever was woken has had its turn when the broker has answered a few times."""
    for _ in range(5):
        await shop.transport.depths()


def _advanced(clock: ManualClock, seconds: float) -> bool:
    clock.advance(seconds)
    return True


async def test_a_probe_that_succeeds_closes_it_and_everything_flows(tmp_path: Path) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        await asleep(shop)
        bank.away = False
        await until(lambda: _advanced(clock, 5) and state(shop) is BreakerState.CLOSED)
        assert shop.worker.ready

        await until(lambda: _advanced(clock, 10) and len(set(bank.tried)) == MESSAGES)
        await until(lambda: _advanced(clock, 100) and shop.empty())
        assert await shop.letters() == []


async def test_a_queue_to_which_nothing_comes_any_more_is_not_told_as_held_up_for_ever(tmp_path: Path) -> None:
    bank, clock = Dependency(attempts=1), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(FAILURES)))
        await asleep(shop)
        clock.advance(PAUSE)
        assert not shop.worker.ready
        clock.advance(PAUSE)
        assert (state(shop), shop.worker.ready) == (BreakerState.OPEN, True)

        # What it needs is still away. The first one was waited for since before it opened, and so is no probe.
        await shop.send("orders", {"number": 100}, {"number": 101})
        await until(lambda: shop.worker.consumers[0].breaker.opened == 2)
        assert not shop.worker.ready


async def test_one_message_that_fails_again_and_again_does_not_open_it(tmp_path: Path) -> None:
    bank = Dependency(attempts=3 * FAILURES)
    bank.app.handlers["orders"].retry = Retry(3 * FAILURES, "10ms")
    async with workshop(bank.app, tmp_path, **options()) as shop:
        await shop.send("orders", {"number": 1})
        await until(shop.letters)

        assert len(bank.tried) == 3 * FAILURES
        assert state(shop) is BreakerState.CLOSED


async def test_messages_that_are_invalid_are_their_own_fault_and_do_not_open_it(tmp_path: Path) -> None:
    bank = Dependency()
    async with workshop(bank.app, tmp_path, **options()) as shop:
        await shop.send("orders", *({"number": number, "invalid": 1} for number in range(MESSAGES)))
        await until(shop.empty)

        assert state(shop) is BreakerState.CLOSED
        assert (await shop.store.statistics()).by_queue == {"orders": MESSAGES}


async def test_messages_that_their_handler_drops_are_no_failures(tmp_path: Path) -> None:
    app = App("shop")

    @app.handler("orders", name="charge")
    def charge(_order: dict[str, int]) -> None:
        raise Drop("a duplicate")

    async with workshop(app, tmp_path, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        await until(shop.empty)
        assert state(shop) is BreakerState.CLOSED
        await shop.stop()

        [rate] = (await shop.store.statistics()).failure_rates
        assert (rate.handler, rate.succeeded, rate.failed) == ("charge", MESSAGES, 0)


async def test_a_probe_that_is_invalid_is_set_apart_and_another_one_is_tried(tmp_path: Path) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, start=False, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(FAILURES)))
        shop.start()
        await asleep(shop)
        bank.away = False
        await shop.send("orders", {"number": 100, "invalid": 1}, {"number": 101})

        await until(lambda: _advanced(clock, 5) and state(shop) is BreakerState.CLOSED)
        await until(lambda: 101 in bank.tried)

        [letter] = await until(shop.letters)
        assert letter.type == "ValueError"


async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    bank = Dependency(attempts=1)
    async with workshop(bank.app, tmp_path, worker={"breaker_failures": 0}) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        await until(shop.empty)

        assert (await shop.store.statistics()).total == MESSAGES


async def test_in_dead_letter_mode_what_comes_while_it_is_open_is_set_apart_unhandled(tmp_path: Path) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, **options(breaker_mode="dead_letter")) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        await until(lambda: _nothing_in(shop, "orders"))

        letters = await shop.letters(limit=100)
        assert len(letters) == MESSAGES - len(bank.tried)
        assert {letter.type.rpartition(".")[2] for letter in letters} == {"BreakerOpen"}
        assert FAILURES <= len(bank.tried) <= FAILURES + CONCURRENCY


async def _nothing_in(shop: Workshop, queue: str) -> bool:
    return not (await shop.depth(queue)).total


@pytest.mark.parametrize("arrives", ["during the pause", "after it"])
async def test_in_dead_letter_mode_the_first_message_after_the_pause_is_tried(
    tmp_path: Path, arrives: str
) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, **options(breaker_mode="dead_letter")) as shop:
        await shop.send("orders", *({"number": number} for number in range(FAILURES)))
        await opened(shop)
        bank.away = False
        clock.advance(PAUSE - 1 if arrives == "during the pause" else PAUSE)
        await shop.send("orders", {"number": 100})

        if arrives == "during the pause":
            [letter] = await until(shop.letters)
            assert letter.message.data == {"number": 100}
            assert 100 not in bank.tried
        else:
            await until(lambda: state(shop) is BreakerState.CLOSED)
            assert 100 in bank.tried
            assert await shop.letters() == []


async def test_a_worker_stops_at_once_while_it_is_open(tmp_path: Path) -> None:
    bank, clock = Dependency(), ManualClock()
    async with workshop(bank.app, tmp_path, clock=clock, **options()) as shop:
        await shop.send("orders", *({"number": number} for number in range(MESSAGES)))
        await asleep(shop)

        running = shop.running
        shop.worker.stop()

        assert running is not None
        await running
        assert (await shop.depth("orders")).leased == 0
