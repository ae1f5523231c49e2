"""Whatever a handler raises, and whatever goes wrong in judging it: no message runs for ever uncounted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from redrive import App, Retry, Transient
from redrive.errors import ConfigurationError, PublishRefused
from redrive.testing import bench_for
from redrive.transports.embedded import EmbeddedTransport
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive import DeadLetter, Delivery, Message

TWICE = Retry(2, "10ms")


class GreenTimeout(BaseException):
    """As the timeouts of green threads are: no Exception."""


class RateLimited(Transient):
    def __init__(self, who: str) -> None:
        self.who = who


class Misjudged(Transient):
    def __init__(self) -> None:
        self.retry_after = "soon"  # type: ignore[assignment]  # that is the mistake


class RefusesRetries(EmbeddedTransport):
    """The real one, with a limit that every retry exceeds."""

    async def retry(self, delivery: Delivery, message: Message, *, delay: float, trail: bytes) -> None:  # noqa: ARG002  the transport's own signature
        raise PublishRefused("too large", permanent=True)


def an_app(error: BaseException, runs: list[int]) -> App:
    app = App("shop")

    @app.handler("orders", retry=TWICE, concurrency=1)
    async def charge(order: dict[str, int]) -> None:
        runs.append(order["number"])
        if order["number"] == 1:
            raise error

    return app


@pytest.mark.parametrize(
    "error", [GreenTimeout("x"), GeneratorExit(), SystemExit(2)], ids=lambda e: type(e).__name__
)
async def test_whatever_a_handler_raises_is_counted_and_keeps_no_place(
    error: BaseException, tmp_path: Path
) -> None:
    runs: list[int] = []
    async with workshop(an_app(error, runs), tmp_path) as shop:
        await shop.send("orders", {"number": 1}, {"number": 2})
        await until(shop.letters)
        await until(shop.empty)

        [letter] = await shop.letters()
        assert letter.type.endswith(type(error).__name__)
        assert (letter.attempts, sorted(runs)) == (2, [1, 1, 2])


async def test_a_transient_error_that_skips_our_constructor_is_retried_and_counted() -> None:
    runs: list[int] = []
    async with bench_for(an_app(RateLimited("bank"), runs)) as bench:
        await bench.send("orders", {"number": 1})
        await bench.run_until_quiet()

        bench.assert_dead_lettered("orders", attempts=2, count=1)
    assert runs == [1, 1]


async def test_a_failure_that_cannot_be_judged_is_a_critical_letter_with_both_errors() -> None:
    runs: list[int] = []
    told: list[DeadLetter] = []
    app = an_app(Misjudged(), runs)
    app.on_critical(told.append)

    async with bench_for(app) as bench:
        await bench.send("orders", {"number": 1})
        await bench.run_until_quiet()

        letter = bench.assert_dead_lettered("orders", type="TypeError", attempts=1, count=1)
        [failure] = letter.failures
        assert [raised.type.rpartition(".")[2] for raised in failure.chain] == ["Misjudged", "TypeError"]
        assert (letter.kind, [each.id for each in told], runs) == ("critical", [letter.id], [1])


async def test_a_retry_that_the_broker_refuses_for_good_is_a_letter_at_once(tmp_path: Path) -> None:
    runs: list[int] = []
    async with workshop(an_app(TimeoutError("bank"), runs), tmp_path, opening=RefusesRetries) as shop:
        await shop.send("orders", {"number": 1})
        await until(shop.letters)
        await until(shop.empty)

        [letter] = await shop.letters()
        assert (letter.type, letter.attempts, runs) == ("TimeoutError", 1, [1])


@pytest.mark.parametrize("beside", ["orders_retry", "orders_dlq"])
async def test_a_handler_on_the_queue_beside_that_of_another_is_refused(beside: str, tmp_path: Path) -> None:
    app = an_app(TimeoutError("bank"), [])
    app.handler(beside)(lambda _order: None)

    with pytest.raises(ConfigurationError, match=beside) as refused:
        async with workshop(app, tmp_path):
            await asyncio.sleep(0)
    assert "rename" in refused.value.remedy
