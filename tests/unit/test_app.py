from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from redrive import App, DeadLetter, Delivery, Message, Retry, fixed
from redrive.control import RedriveTicket, stamp
from redrive.errors import ConfigurationError
from redrive.handler import Handler, around
from redrive.planning import plan
from redrive.settings import Settings
from redrive.testing.clock import InstantClock
from redrive.transports import Transport, open_transport

NOW = datetime(2026, 2, 28, tzinfo=UTC)
MESSAGE = Message.create(id="m-1", sent_at=NOW, queue="orders", data={"order_id": 123})
DELIVERY = Delivery(
    message=MESSAGE,
    queue="orders",
    identity="1",
    attempt=1,
    redelivered=False,
    first_attempt_at=None,
    trail=None,
    receipt=None,
)


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="handler") as pool:
        yield pool


def test_a_decorated_function_takes_the_messages_of_its_queue() -> None:
    app, retry = App("checkout"), Retry(3)

    @app.handler("orders", retry=retry, kinds={KeyError: "permanent"}, timeout="30s", concurrency=4)
    async def charge(order: dict[str, Any]) -> None: ...

    handler = app.handlers["orders"]
    assert charge is handler
    assert handler.name.endswith("charge")
    assert (handler.retry, handler.timeout, handler.concurrency) == (retry, 30.0, 4)
    assert handler.kinds == {KeyError: "permanent"}
    assert handler.payload_type == "dict"


def test_what_is_not_said_is_left_to_the_settings() -> None:
    app = App("checkout")

    @app.handler("orders")
    def charge(order: dict[str, Any]) -> None: ...

    handler = app.handlers["orders"]
    assert (handler.retry, handler.kinds, handler.timeout, handler.concurrency) == (None, None, None, None)


def test_a_handler_can_be_called_as_the_function_it_is() -> None:
    app = App("checkout")

    @app.handler("orders", name="doubling")
    def double(order: int) -> int:
        return order * 2

    assert double(21) == 42
    assert double.name == "doubling"


def test_a_handler_has_a_hook_for_its_dead_letters() -> None:
    app = App("checkout")

    @app.handler("orders")
    async def charge(order: dict[str, Any]) -> None: ...

    @charge.on_dead_letter
    async def tell(letter: DeadLetter) -> None: ...

    assert app.handlers["orders"].hook is tell


def test_an_app_has_a_hook_for_critical_letters() -> None:
    app = App("checkout")

    @app.on_critical
    def wake(letter: DeadLetter) -> None: ...

    assert app.critical_hook is wake


class ProcessOrder:
    """S3's ProcessOrderHandler."""

    max_retries = 5

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.told: list[str] = []

    def process(self, message: Message) -> None:
        self.seen.append(message.data["order_id"])

    def on_dead_letter(self, letter: DeadLetter) -> None:
        self.told.append(letter.id)


class OnlyProcess:
    async def process(self, order: dict[str, Any]) -> None: ...


async def test_s3_a_class_with_process_is_registered_for_a_queue(executor: ThreadPoolExecutor) -> None:
    app = App("checkout")
    handler = app.register("orders", ProcessOrder)
    await handler.run(MESSAGE, executor)
    assert app.handlers["orders"] is handler
    assert handler.name == "ProcessOrder"
    assert handler.function.__self__.seen == [123]  # type: ignore[attr-defined]  # a bound method
    assert handler.hook == handler.function.__self__.on_dead_letter  # type: ignore[attr-defined]


def test_a_class_is_registered_with_all_that_a_function_may_say() -> None:
    class Charge:
        def process(self, order: dict[str, Any]) -> None: ...

    handler = App("checkout").register(
        "orders", Charge, kinds={KeyError: "permanent"}, timeout="30s", concurrency=4
    )

    assert (handler.kinds, handler.timeout, handler.concurrency) == ({KeyError: "permanent"}, 30.0, 4)


def test_s3_max_retries_5_means_that_the_fifth_failure_is_the_last() -> None:
    app = App("checkout", retry=Retry(2, fixed("7s"), immediate=1, budget="1h"))
    app.register("orders", ProcessOrder)
    retry = plan(app, "orders", Settings()).policy.retry
    assert (retry.attempts, retry.delays, retry.immediate, retry.budget) == (5, fixed("7s"), 1, 3600.0)


def test_s3_without_max_retries_the_app_and_the_settings_decide() -> None:
    handler = App("checkout").register("orders", OnlyProcess())
    assert (handler.retry, handler.attempts, handler.hook) == (None, None, None)
    assert handler.is_async


def test_s3_no_retries_at_all_is_one_attempt() -> None:
    class Once(OnlyProcess):
        max_retries = 0

    app = App("checkout")
    app.register("orders", Once)
    assert plan(app, "orders", Settings()).policy.retry.attempts == 1


def test_s3_what_is_said_when_it_is_registered_wins_over_the_class() -> None:
    app, retry = App("checkout"), Retry(9)
    app.register("orders", ProcessOrder, retry=retry)
    assert plan(app, "orders", Settings()).policy.retry is retry


class NeedsADatabase(OnlyProcess):
    def __init__(self, database: str) -> None:
        self.database = database


class WithoutProcess:
    pass


class NotCallable:
    process = "orders"


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (NeedsADatabase, "cannot be made"),
        (WithoutProcess, "no method 'process'"),
        (NotCallable(), "no method 'process'"),
        (lambda order: order, "no method 'process'"),
    ],
    ids=["needs arguments", "no process", "process is no method", "a function"],
)
def test_a_class_that_cannot_handle_anything_is_refused_with_a_remedy(handler: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        App("checkout").register("orders", handler)
    assert refused.value.remedy


def test_an_instance_is_registered_as_it_is() -> None:
    instance = NeedsADatabase("db")
    assert App("checkout").register("orders", instance).function == instance.process


def test_a_second_handler_for_a_queue_is_refused_and_the_first_stays() -> None:
    app = App("checkout")
    first = app.register("orders", ProcessOrder)
    with pytest.raises(ConfigurationError, match="'orders' has a handler already: ProcessOrder") as refused:
        app.handler("orders")(lambda order: order)
    with pytest.raises(ConfigurationError, match="already"):
        app.register("orders", OnlyProcess)
    assert refused.value.remedy
    assert app.handlers == {"orders": first}


@pytest.mark.parametrize("concurrency", [0, -1])
def test_a_concurrency_that_would_never_run_anything_is_refused(concurrency: int) -> None:
    with pytest.raises(ConfigurationError, match="never run"):
        App("checkout").handler("orders", concurrency=concurrency)(lambda order: order)


def test_a_timeout_that_is_no_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        App("checkout").handler("orders", timeout="soon")(lambda order: order)


async def test_the_first_middleware_is_the_outermost() -> None:
    app, happened = App("checkout"), []

    def layer(name: str) -> Callable[..., Any]:
        async def middleware(delivery: Delivery, call_next: Callable[[], Any]) -> None:
            happened.append(f"{name} before {delivery.message.id}")
            await call_next()
            happened.append(f"{name} after")

        return app.middleware(middleware)

    async def handler() -> None:
        happened.append("handler")

    layer("outer")
    layer("inner")
    await around(app.middlewares, DELIVERY, handler)()
    assert happened == ["outer before m-1", "inner before m-1", "handler", "inner after", "outer after"]


async def test_without_middleware_the_call_stays_as_it_is() -> None:
    async def handler() -> None: ...

    assert around([], DELIVERY, handler) is handler


class TestRunning:
    async def test_an_async_handler_runs_on_the_loop(self, executor: ThreadPoolExecutor) -> None:
        ran: list[threading.Thread] = []

        async def handle() -> None:
            ran.append(threading.current_thread())

        await Handler("orders", handle).run(MESSAGE, executor)
        assert ran == [threading.main_thread()]

    async def test_a_plain_handler_runs_in_a_thread_with_the_callers_context(
        self, executor: ThreadPoolExecutor
    ) -> None:
        variable = contextvars.ContextVar("variable", default="nothing")
        seen: list[tuple[str, str]] = []

        def handle() -> None:
            seen.append((threading.current_thread().name, variable.get()))

        variable.set("from the caller")
        await Handler("orders", handle).run(MESSAGE, executor)
        assert seen == [("handler_0", "from the caller")]

    @pytest.mark.parametrize("asynchronous", [True, False])
    async def test_what_it_raises_reaches_the_caller(
        self, executor: ThreadPoolExecutor, *, asynchronous: bool
    ) -> None:
        async def handle() -> None:
            raise KeyError("x")

        def handle_plainly() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            await Handler("orders", handle if asynchronous else handle_plainly).run(MESSAGE, executor)

    async def test_an_async_handler_in_a_plain_decorator_is_awaited(self, executor: ThreadPoolExecutor) -> None:
        handled = []

        async def handle(order: dict[str, Any]) -> None:
            await asyncio.sleep(0)
            handled.append(order)

        @functools.wraps(handle)
        def traced(*args: Any) -> Any:
            return handle(*args)

        await Handler("orders", traced).run(MESSAGE, executor)
        assert handled == [{"order_id": 123}]

    @pytest.mark.parametrize("answer", [17, "text", [], False])
    async def test_what_it_gives_back_does_not_matter(self, executor: ThreadPoolExecutor, answer: object) -> None:
        await Handler("orders", lambda: answer).run(MESSAGE, executor)

    async def test_a_callable_object_that_is_async_runs_on_the_loop(self, executor: ThreadPoolExecutor) -> None:
        class Counting:
            count = 0

            async def __call__(self) -> None:
                self.count += 1

        counting = Counting()
        handler = Handler("orders", counting)
        await handler.run(MESSAGE, executor)
        assert counting.count == 1
        assert handler.name == "Counting"

    def test_a_partial_has_the_name_of_its_function(self) -> None:
        def charge(database: str, order: dict[str, Any]) -> None: ...

        assert Handler("orders", functools.partial(charge, "db")).name.endswith("charge")


@pytest.fixture
def transport() -> Transport:
    return open_transport("embedded:///:memory:")


async def received(transport: Transport, queue: str) -> Message:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
    return delivery.message


async def test_s3_sending_publishes_the_envelope_and_gives_the_message_for_its_id(transport: Transport) -> None:
    async with App("checkout", transport=transport, clock=InstantClock(NOW)) as app:
        sent = await app.send(
            "orders",
            {"order_id": 123},
            source="checkout-service",
            metadata={"priority": "high"},
            headers=(("a", 1), ("a", None)),
            key=b"k",
        )
        arrived = await received(transport, "orders")
    assert arrived == sent
    assert arrived.data == {"order_id": 123}
    assert arrived.metadata == {"priority": "high"}
    assert (arrived.source, arrived.queue, arrived.sent_at) == ("checkout-service", "orders", NOW)
    assert (arrived.headers, arrived.key) == ((("a", 1), ("a", None)), b"k")


async def test_the_source_of_a_message_is_the_app_unless_it_is_said(transport: Transport) -> None:
    async with App("checkout", transport=transport) as app:
        assert (await app.send("orders", None)).source == "checkout"
        assert (await app.send("orders", None, source="")).envelope.source == ""  # type: ignore[union-attr]


async def test_a_delay_that_is_no_duration_sends_nothing(transport: Transport) -> None:
    async with App("checkout", transport=transport) as app:
        with pytest.raises(ValueError, match="is not a duration"):
            await app.send("orders", {}, delay="later")
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            await app.send("orders", object())
        assert await transport.depths() == {}


async def test_a_message_may_be_sent_for_later(transport: Transport) -> None:
    async with App("checkout", transport=transport) as app:
        await app.send("orders", {}, delay="1h")
        assert (await transport.depths())["orders"].delayed == 1


async def test_headers_that_are_passed_on_do_not_make_another_message_a_redrive() -> None:
    class Recording:
        async def send(self, message: Message, *, delay: float) -> None:
            assert (message.queue, delay) == ("receipts", 0)

    app = App("shop")
    app._transport = cast("Any", Recording())
    received = stamp((("tenant", "acme"),), RedriveTicket("redrive-1", "letter-1", 1, "orders"), b"key")
    assert (await app.send("receipts", {}, headers=received)).headers == (("tenant", "acme"),)
