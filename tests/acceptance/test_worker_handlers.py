"""What becomes of a message, by what its handler does."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import structlog
from pydantic import BaseModel

from redrive import App, DeadLetter, Delivery, Drop, Message, Permanent, Retry, Transient
from redrive.dead_letter import Status
from redrive.settings import Settings
from redrive.testing import Bench, bench_for
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

THRICE = Retry(3, ["5s", "10s"])


def an_app(handler: Callable[..., Any], *, retry: Retry = THRICE, **options: Any) -> App:
    app = App("shop")
    app.handler("orders", retry=retry, **options)(handler)
    return app


def waits(letter: DeadLetter) -> list[float]:
    """Seconds between the attempts."""
    return [(later.at - earlier.at).total_seconds() for earlier, later in pairwise(letter.failures)]


async def handled(bench: Bench, data: Any = None) -> Message:
    message = await bench.send("orders", {"order_id": 17} if data is None else data)
    await bench.run_until_quiet()
    return message


# What a handler raises


async def test_a_dropped_message_is_gone_and_leaves_no_letter() -> None:
    runs: list[int] = []

    async def handler(order: dict[str, int]) -> None:
        runs.append(order["order_id"])
        raise Drop("a duplicate")

    async with bench_for(an_app(handler)) as bench:
        await handled(bench)

        assert runs == [17]
        assert bench.letters == ()
        assert await bench.transport.depths() == {}


async def test_a_handler_that_names_the_time_of_its_retry_gets_it() -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise Transient("the bank is closed", retry_after="1h")

    async with bench_for(an_app(handler)) as bench:
        await handled(bench)

        assert waits(bench.assert_dead_lettered("orders", attempts=3)) == [3600, 3600]


async def test_retries_in_place_and_delayed_ones_are_all_kept_and_all_counted() -> None:
    runs: list[int] = []

    async def handler(message: Message) -> None:
        runs.append(message.retry_count)
        raise ConnectionError(f"attempt number {len(runs)}")

    retry = Retry(6, ["5s", "10s"], immediate=2, immediate_delay="1s")
    async with bench_for(an_app(handler, retry=retry)) as bench:
        await handled(bench)

        letter = bench.assert_dead_lettered("orders", count=1)
        assert len(runs) == letter.attempts == 6
        assert [failure.text for failure in letter.failures] == [
            f"attempt number {number}" for number in range(1, 7)
        ]
        assert [failure.attempt for failure in letter.failures] == [1, 2, 3, 4, 5, 6]
        assert waits(letter) == [1, 1, 5, 10, 10]
        assert runs == [0, 0, 0, 3, 4, 5]  # S3: the number of attempts made


async def test_a_time_budget_ends_the_retries() -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise ConnectionError("away")

    async with bench_for(an_app(handler, retry=Retry(100, "5s", budget="12s"))) as bench:
        await handled(bench)

        assert waits(bench.assert_dead_lettered("orders")) == [5, 5]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_that_ends_the_interpreter_fails_like_any_other(*, is_async: bool) -> None:
    def plain(_order: dict[str, int]) -> None:
        sys.exit("I am done")

    async def coroutine(order: dict[str, int]) -> None:
        plain(order)

    async with bench_for(an_app(coroutine if is_async else plain)) as bench:
        await handled(bench)

        bench.assert_dead_lettered("orders", type="SystemExit", text="I am done", attempts=3)


async def test_a_handler_that_awaits_something_cancelled_fails_like_any_other() -> None:
    async def handler(_order: dict[str, int]) -> None:
        helper = asyncio.ensure_future(asyncio.Event().wait())
        helper.cancel()
        await helper

    async with bench_for(an_app(handler)) as bench:
        await handled(bench)

        bench.assert_dead_lettered("orders", type="CancelledError", attempts=3)


async def test_a_plain_handler_that_raises_stop_iteration_does_not_hang() -> None:
    def handler(_order: dict[str, int]) -> None:
        next(iter(()))

    async with bench_for(an_app(handler)) as bench:
        await handled(bench)

        letter = bench.assert_dead_lettered("orders", type="RuntimeError", attempts=3)
        assert letter.failures[0].chain[0].type == "StopIteration"


async def test_an_exception_that_cannot_be_told_is_still_a_letter() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> NoReturn:
            raise RuntimeError("not even its text")

    async def handler(_order: dict[str, int]) -> None:
        raise Unspeakable

    async with bench_for(an_app(handler)) as bench:
        await handled(bench)

        bench.assert_dead_lettered("orders", type="Unspeakable", attempts=3, count=1)


async def test_a_rule_that_fails_itself_does_not_keep_a_message_for_ever() -> None:
    def rule(error: BaseException) -> bool:
        return bool(error.status == 503)  # type: ignore[attr-defined]  # the mistake under test

    async def handler(_order: dict[str, int]) -> None:
        raise KeyError("customer")

    async with bench_for(an_app(handler, kinds={rule: "transient"})) as bench:
        await handled(bench)

        bench.assert_dead_lettered("orders", type="KeyError", count=1)


# What a handler asks for


@dataclass
class Order:
    order_id: int


class Payment(BaseModel):
    amount: int


@pytest.mark.parametrize("annotation", [Order, Payment, dict, str, bytes])
async def test_what_does_not_decode_is_a_permanent_failure_and_kept_byte_for_byte(annotation: Any) -> None:
    runs: list[Any] = []

    def handler(data: Any) -> None:
        runs.append(data)

    handler.__annotations__ = {"data": annotation}
    body = None if annotation is bytes else b"\xff\xfe{"
    async with bench_for(an_app(handler)) as bench:
        await bench.send_foreign("orders", body)
        await bench.run_until_quiet()

        assert runs == []
        letter = bench.assert_dead_lettered("orders", type="Undecodable", attempts=1)
        assert letter.kind == "permanent"
        assert letter.message.body == body


@pytest.mark.parametrize("body", [b'{"order_id": 1}', b"\x00\xff", b"", None])
async def test_a_queue_that_nobody_handles_sets_its_messages_apart(tmp_path: Path, body: bytes | None) -> None:
    async with workshop(App("shop"), tmp_path, queues=["parcels"]) as shop:
        await shop.send_foreign("parcels", body)
        [letter] = await until(shop.letters)
        await until(shop.empty)

    assert letter.type.endswith("NoHandler")
    assert letter.text == "no handler for queue 'parcels'"
    assert (letter.kind, letter.attempts, letter.message.body) == ("permanent", 1, body)


# Threads, timeouts, concurrency


async def test_a_handler_that_takes_too_long_is_tried_again() -> None:
    started: list[int] = []

    async def handler(_order: dict[str, int]) -> None:
        started.append(1)
        await asyncio.Event().wait()

    async with bench_for(an_app(handler, timeout="20ms")) as bench:
        await handled(bench)

        letter = bench.assert_dead_lettered("orders", type="TimeoutError", attempts=3)
        assert letter.kind == "transient"
        assert len(started) == 3


async def test_plain_handlers_run_in_threads_beside_each_other_with_the_callers_context() -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")
    together = threading.Barrier(3, timeout=20)
    seen: list[str] = []

    def handler(_order: dict[str, int]) -> None:
        together.wait()  # broken unless three of them are in here at once
        assert threading.current_thread() is not threading.main_thread()
        seen.append(tenant.get())

    app = an_app(handler, concurrency=3)

    @app.middleware
    async def set_tenant(_delivery: Delivery, call_next: Callable[[], Awaitable[None]]) -> None:
        tenant.set("acme")
        await call_next()

    async with bench_for(app) as bench:
        for number in range(3):
            await bench.send("orders", {"order_id": number})
        await bench.run_until_quiet()

        bench.assert_nothing_dead_lettered()
    assert seen == ["acme"] * 3


async def test_never_more_than_its_concurrency_of_one_queue_at_once_and_queues_do_not_wait_for_each_other() -> (
    None
):
    app, busy, most = App("shop"), {"orders": 0, "mails": 0}, {"orders": 0, "mails": 0}

    async def work(queue: str) -> None:
        busy[queue] += 1
        most[queue] = max(most[queue], busy[queue])
        for _ in range(5):
            await asyncio.sleep(0)
        busy[queue] -= 1

    @app.handler("orders", concurrency=2)
    async def orders(_order: dict[str, int]) -> None:
        await work("orders")

    @app.handler("mails", concurrency=5)
    async def mails(_mail: dict[str, int]) -> None:
        await work("mails")

    async with bench_for(app) as bench:
        for number in range(20):
            await bench.send("orders", {"number": number})
            await bench.send("mails", {"number": number})
        await bench.run_until_quiet()

        bench.assert_nothing_dead_lettered()
    assert most == {"orders": 2, "mails": 5}


async def test_a_plain_function_around_an_async_one_is_awaited() -> None:
    runs: list[int] = []

    async def charge(order: dict[str, int]) -> None:
        await asyncio.sleep(0)
        runs.append(order["order_id"])

    def timed(order: dict[str, int]) -> Any:
        return charge(order)

    async with bench_for(an_app(timed)) as bench:
        await handled(bench)

    assert runs == [17]


# Middleware


async def test_middleware_is_around_the_handler_the_first_registered_outermost() -> None:
    order: list[str] = []

    async def handler(_order: dict[str, int]) -> None:
        order.append("handler")

    app = an_app(handler)

    def named(name: str) -> None:
        @app.middleware
        async def around(delivery: Delivery, call_next: Callable[[], Awaitable[None]]) -> None:
            order.append(f"{name} before attempt {delivery.attempt}")
            await call_next()
            order.append(f"{name} after")

    named("outer")
    named("inner")
    async with bench_for(app) as bench:
        await handled(bench)

    assert order == [
        "outer before attempt 1",
        "inner before attempt 1",
        "handler",
        "inner after",
        "outer after",
    ]


async def test_middleware_sees_errors_and_its_own_are_failures_of_the_message() -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise TimeoutError("bank")

    app = an_app(handler)

    @app.middleware
    async def translate(_delivery: Delivery, call_next: Callable[[], Awaitable[None]]) -> None:
        try:
            await call_next()
        except TimeoutError as error:
            raise Permanent("it will never answer") from error

    async with bench_for(app) as bench:
        await handled(bench)

        letter = bench.assert_dead_lettered("orders", type="Permanent", attempts=1)
        assert [raised.type for raised in letter.failures[0].chain] == ["TimeoutError", "redrive.errors.Permanent"]


# Hooks


@pytest.mark.parametrize("shape", ["async", "plain", "plain around async"])
async def test_the_hook_is_called_once_with_the_letter_when_it_is_durable(shape: str) -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise ValueError("no customer")

    app, told = an_app(handler), []

    async def remember(letter: DeadLetter) -> None:
        told.append(letter)

    def plain(letter: DeadLetter) -> None:
        told.append(letter)

    def around(letter: DeadLetter) -> Any:
        return remember(letter)

    app.handlers["orders"].on_dead_letter({"async": remember, "plain": plain, "plain around async": around}[shape])
    async with bench_for(app) as bench:
        message = await handled(bench)

        [letter] = told
        assert letter.id == bench.assert_dead_lettered("orders", count=1).id
        assert (letter.message.id, letter.type, letter.attempts) == (message.id, "ValueError", 1)


@pytest.mark.parametrize("error", [RuntimeError("pager broken"), SystemExit(3)])
async def test_a_hook_that_fails_harms_nobody(error: BaseException) -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise ValueError("no customer")

    app = an_app(handler)

    @app.handlers["orders"].on_dead_letter
    def tell(_letter: DeadLetter) -> None:
        raise error

    with structlog.testing.capture_logs() as logs:
        async with bench_for(app) as bench:
            await handled(bench)
            await handled(bench)

            bench.assert_dead_lettered("orders", count=2)
            assert await bench.transport.depths() == {}
    assert [entry["error"] for entry in logs if entry["event"] == "a dead-letter hook failed"] == [
        type(error).__name__
    ] * 2


async def test_a_critical_failure_is_told_and_never_retried() -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise MemoryError("out of memory")

    app, told = an_app(handler), []

    @app.on_critical
    async def page(letter: DeadLetter) -> None:
        told.append((letter.type, letter.kind))

    with structlog.testing.capture_logs() as logs:
        async with bench_for(app) as bench:
            await handled(bench)
            bench.assert_dead_lettered("orders", type="MemoryError", attempts=1, count=1)

    assert told == [("MemoryError", "critical")]
    assert [entry["log_level"] for entry in logs if entry["event"].startswith("message sent")] == ["critical"]


async def test_a_failure_that_is_not_critical_is_told_to_nobody() -> None:
    async def handler(_order: dict[str, int]) -> None:
        raise ValueError("no customer")

    app = an_app(handler)
    told: list[DeadLetter] = []
    app.on_critical(told.append)

    async with bench_for(app) as bench:
        await handled(bench)

    assert told == []


async def test_a_handler_may_send_and_what_it_sends_is_handled() -> None:
    app, mails = App("shop"), []

    @app.handler("orders")
    async def charge(order: dict[str, int]) -> None:
        await app.send("mails", {"order": order["order_id"]})

    @app.handler("mails")
    def mail(data: dict[str, int]) -> None:
        mails.append(data)

    async with bench_for(app, settings=Settings()) as bench:
        await handled(bench)

        bench.assert_nothing_dead_lettered()
        assert mails == [{"order": 17}]
        assert await bench.transport.depths() == {}


async def test_the_letter_of_a_message_that_succeeds_when_it_is_redriven_is_resolved() -> None:
    runs: list[int] = []

    async def handler(order: dict[str, int]) -> None:
        runs.append(order["order_id"])
        if len(runs) == 1:
            raise ValueError("a bug")

    async with bench_for(an_app(handler)) as bench:
        await handled(bench)
        await bench.redrive(bench.assert_dead_lettered("orders"))
        await bench.run_until_quiet()

        [letter] = bench.letters
        assert (letter.status, letter.how, runs) == (Status.RESOLVED, "confirmed", [17, 17])
