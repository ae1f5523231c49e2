"""`redrive.testing.bench_for`: the test mode that teams use for their own handlers."""

from __future__ import annotations

import asyncio
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, DeadLetter, Retry, Status, exponential
from redrive.settings import Settings
from redrive.testing import Bench, bench_for
from redrive.testing import worker as documented

if TYPE_CHECKING:
    from pathlib import Path

SHOP = """
from redrive import App

app = App("shop")

class NoCustomer(ValueError):
    pass

@app.handler("orders")
async def charge(order: dict) -> None:
    if "customer" not in order:
        raise NoCustomer("order has no customer")
"""


async def test_the_example_in_its_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.syspath_prepend(tmp_path)
    text = documented.__doc__ or ""
    example = textwrap.dedent(text[text.index("    from redrive.testing") : text.index("What runs is")])
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102  the documentation is what is tested

    await names["test_an_order_without_a_customer_is_set_apart"]()


def flaky(**delays: str) -> App:
    app = App("shop")
    for queue, delay in delays.items():

        @app.handler(queue, name=queue, retry=Retry(4, exponential(delay, at_most=None, jitter="none")))
        def fail(_data: dict[str, int]) -> None:
            raise TimeoutError("away")

    return app


def waits(letter: DeadLetter) -> list[float]:
    return [(later.at - earlier.at).total_seconds() for earlier, later in pairwise(letter.failures)]


async def test_hours_of_retries_take_no_time_and_every_failure_has_its_own() -> None:
    async with bench_for(flaky(orders="1h")) as bench:
        started = bench.clock.now()
        await bench.send("orders", {})
        await bench.run_until_quiet()

        letter = bench.assert_dead_lettered("orders", attempts=4)
        assert waits(letter) == [3600, 7200, 14400]
        assert letter.failures[0].at == letter.first_attempt_at == started
        assert letter.created_at == bench.clock.now()


async def test_queues_with_different_delays_do_not_disturb_each_others_times() -> None:
    async with bench_for(flaky(orders="7s", mails="5m", audits="250ms")) as bench:
        for queue in ("orders", "mails", "audits"):
            await bench.send(queue, {})
        await bench.run_until_quiet()

        assert waits(bench.assert_dead_lettered("orders")) == [7, 14, 28]
        assert waits(bench.assert_dead_lettered("mails")) == [300, 600, 1200]
        assert waits(bench.assert_dead_lettered("audits")) == [0.25, 0.5, 1]


async def test_time_does_not_leap_over_a_message_whose_receiver_was_slow_to_wait_for_it() -> None:
    async with bench_for(flaky(orders="7s", mails="5m")) as bench:
        waits_at_once = bench.clock.sleep

        async def slowly_for_the_short(seconds: float) -> None:
            if seconds < 60:
                await asyncio.sleep(0.05)
            await waits_at_once(seconds)

        bench.clock.sleep = slowly_for_the_short  # type: ignore[method-assign]
        for queue in ("orders", "mails"):
            await bench.send(queue, {})
        await bench.run_until_quiet()

        assert waits(bench.assert_dead_lettered("orders")) == [7, 14, 28]


async def test_a_delayed_message_is_handled_when_it_is_due() -> None:
    app, handled_at = App("shop"), []

    async with bench_for(app) as bench:

        @app.handler("orders")
        def charge(_order: dict[str, int]) -> None:
            handled_at.append(bench.clock.now())

        started = bench.clock.now()
        await bench.send("orders", {}, delay="1d")
        await bench.run_until_quiet()

        assert [(moment - started).total_seconds() for moment in handled_at] == [86400]


async def test_what_it_says_when_an_assertion_fails_names_the_letters_there_are() -> None:
    async with bench_for(flaky(orders="1s")) as bench:
        with pytest.raises(AssertionError, match="there is none"):
            bench.assert_dead_lettered("orders")
        await bench.send("orders", {})
        await bench.send("orders", {})
        await bench.run_until_quiet()

        told = r"orders: TimeoutError: away \(4 attempts, PENDING\)"
        with pytest.raises(AssertionError, match=told):
            bench.assert_dead_lettered("orders", type="ValueError")
        with pytest.raises(AssertionError, match=told):
            bench.assert_dead_lettered("mails")
        with pytest.raises(AssertionError, match="2 dead letters, not 1"):
            bench.assert_dead_lettered("orders", count=1)
        with pytest.raises(AssertionError, match="2 dead letters"):
            bench.assert_nothing_dead_lettered()
        bench.assert_nothing_dead_lettered("mails")


async def test_a_handler_that_hangs_fails_the_test_instead_of_hanging_it() -> None:
    app = App("shop")

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        await asyncio.Event().wait()

    async with bench_for(app) as bench:
        await bench.send("orders", {})
        with pytest.raises(AssertionError, match="not quiet after 50ms: a handler hangs"):
            await bench.run_until_quiet(within="50ms")


async def test_a_letter_is_put_back_and_its_end_is_seen() -> None:
    app = App("shop")
    fixed: list[str] = []

    @app.handler("orders")
    def charge(_order: dict[str, int]) -> None:
        if not fixed:
            raise ValueError("a bug")

    async with bench_for(app) as bench:
        await bench.send("orders", {})
        await bench.run_until_quiet()
        fixed.append("deployed")
        await bench.redrive(*bench.letters)
        assert [letter.status for letter in bench.letters] == [Status.REDRIVEN]
        await bench.run_until_quiet()

        assert [(letter.status, letter.how) for letter in bench.letters] == [(Status.RESOLVED, "confirmed")]
        bench.assert_nothing_dead_lettered()
        with pytest.raises(AssertionError, match="not claimed, restore it first"):
            await bench.redrive(*bench.letters)


async def test_an_open_breaker_does_not_stop_it() -> None:
    settings = Settings.model_validate({"worker": {"breaker_failures": 3, "breaker_pause": "10m"}})
    async with bench_for(flaky(orders="1s"), settings=settings) as bench:
        for _ in range(12):
            await bench.send("orders", {})
        await bench.run_until_quiet()

        bench.assert_dead_lettered("orders", attempts=4, count=12)


async def test_two_benches_share_nothing_and_the_app_has_its_own_broker_back_afterwards() -> None:
    async def one(app: App) -> Bench:
        async with bench_for(app) as bench:
            await app.send("orders", {})
            await bench.run_until_quiet()
            bench.assert_dead_lettered("orders", count=1)
            return bench

    first, second = flaky(orders="1s"), flaky(orders="1s")
    await asyncio.gather(one(first), one(second))
    await one(first)

    assert first._transport is None


async def test_settings_of_the_machine_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "redrive.toml").write_text("[retry]\nattempts = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDRIVE_RETRY__ATTEMPTS", "1")
    app = App("shop")

    @app.handler("orders")
    def charge(_order: dict[str, int]) -> None:
        raise TimeoutError("away")

    async with bench_for(app) as bench:
        await bench.send("orders", {})
        await bench.run_until_quiet()

        bench.assert_dead_lettered("orders", attempts=5)
    assert [each.name for each in tmp_path.iterdir()] == ["redrive.toml"]
