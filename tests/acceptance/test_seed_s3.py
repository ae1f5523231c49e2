"""S3's flow: the envelope, the retry queue, class handlers on a router, the dead-letter queue and its hook."""

from __future__ import annotations

import json
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, DeadLetter, Message
from redrive.errors import ConfigurationError
from redrive.settings import Settings
from redrive.testing import ManualClock, bench_for
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.transports import Transport

DATA = {"order_id": 123, "customer_id": 456, "total": 299.90}
METADATA = {"priority": "high", "correlation_id": "abc-123"}
S3_FIELDS = ["message_id", "timestamp", "version", "source", "queue", "data", "metadata", "error", "retry_count"]


class ProcessOrderHandler:
    max_retries = 5

    def __init__(self, *, fails: bool = True) -> None:
        self.fails = fails
        self.processed: list[Message] = []
        self.dead: list[DeadLetter] = []

    def process(self, message: Message) -> None:
        self.processed.append(message)
        if self.fails:
            raise ConnectionRefusedError("Connection refused")

    def on_dead_letter(self, letter: DeadLetter) -> None:
        self.dead.append(letter)


async def published(app: App) -> Message:
    """S3's `QueueProducer.publish`."""
    return await app.send("orders", DATA, source="checkout-service", metadata=METADATA)


async def received(transport: Transport, queue: str) -> Message:
    async with aclosing(transport.receive(queue, prefetch=1)) as deliveries:
        delivery = await anext(deliveries)
        await transport.release(delivery)
        return delivery.message


async def test_s3_a_message_just_published_has_the_printed_layout() -> None:
    async with bench_for(App("checkout")) as bench:
        message = await published(bench.app)

        envelope = json.loads((await received(bench.transport, "orders")).to_json())

    assert list(envelope) == S3_FIELDS
    assert envelope["message_id"] == message.id
    assert envelope["version"] == "1.0"
    assert envelope["source"] == "checkout-service"
    assert envelope["queue"] == "orders"
    assert (envelope["data"], envelope["metadata"]) == (DATA, METADATA)
    assert (envelope["error"], envelope["retry_count"]) == (None, 0)


async def test_s3_after_its_first_failure_the_message_lies_in_the_retry_queue_as_printed(tmp_path: Path) -> None:
    app, clock = App("checkout"), ManualClock()
    app.register("orders", ProcessOrderHandler)
    async with workshop(app, tmp_path, clock=clock, retry={"initial_delay": "5s", "jitter": "none"}) as shop:
        message = await published(app)
        before = json.loads(message.to_json())
        await until(lambda: _delayed(shop.transport, "orders_retry"))
        await shop.stop()
        clock.advance(5)

        envelope = json.loads((await received(shop.transport, "orders_retry")).to_json())

    assert list(envelope) == S3_FIELDS
    error = envelope.pop("error")
    assert list(error) == ["message", "code", "trace"]
    assert error["message"] == "Connection refused"
    assert error["code"] == "ConnectionRefusedError"
    assert error["trace"].endswith("ConnectionRefusedError: Connection refused")
    assert envelope.pop("retry_count") == 1
    assert envelope == {name: before[name] for name in envelope}  # the same id, the same data, the same time


async def _delayed(transport: Transport, queue: str) -> int:
    depth = (await transport.depths()).get(queue)
    return 0 if depth is None else depth.delayed


async def test_s3_max_retries_of_five_is_five_runs_then_the_hook_once() -> None:
    app, handler = App("checkout"), ProcessOrderHandler()
    app.register("orders", handler)

    async with bench_for(app) as bench:
        message = await published(app)
        await bench.run_until_quiet()

        assert [each.retry_count for each in handler.processed] == [0, 1, 2, 3, 4]
        assert {each.id for each in handler.processed} == {message.id}
        [letter] = handler.dead
        assert letter.id == bench.assert_dead_lettered("orders", attempts=5, count=1).id
        assert letter.message.data == DATA
        assert bench.letters[0].handler == "ProcessOrderHandler"


async def test_s3_a_message_that_succeeds_leaves_nothing_and_calls_no_hook() -> None:
    app, handler = App("checkout"), ProcessOrderHandler(fails=False)
    app.register("orders", handler)

    async with bench_for(app) as bench:
        await published(app)
        await bench.run_until_quiet()

        assert len(handler.processed) == 1
        assert handler.dead == []
        assert bench.letters == ()
        assert await bench.transport.depths() == {}


async def test_s3_the_router_gives_each_queue_its_own_handler() -> None:
    app = App("checkout")
    orders, notifications = ProcessOrderHandler(fails=False), ProcessOrderHandler(fails=False)
    app.register("orders", orders)
    app.register("notifications", notifications)

    async with bench_for(app) as bench:
        await bench.send("orders", {"order_id": 1})
        await bench.send("notifications", {"text": "hello"})
        await bench.run_until_quiet()

    assert [message.data for message in orders.processed] == [{"order_id": 1}]
    assert [message.data for message in notifications.processed] == [{"text": "hello"}]


def test_s3_one_queue_has_one_handler() -> None:
    app = App("checkout")
    app.register("orders", ProcessOrderHandler)

    with pytest.raises(ConfigurationError, match="has a handler already"):
        app.register("orders", ProcessOrderHandler)


@pytest.mark.parametrize("failing_hook", [False, True])
async def test_s3_with_the_queue_as_sink_the_message_lies_in_the_dlq_with_its_last_error(
    *, failing_hook: bool
) -> None:
    app, handler = App("checkout"), ProcessOrderHandler()
    registered = app.register("orders", handler)
    if failing_hook:
        registered.on_dead_letter(_broken)

    settings = Settings.model_validate({"dead_letters": {"sink": "queue"}})
    async with bench_for(app, settings=settings) as bench:
        message = await published(app)
        await bench.run_until_quiet()

        dead = await received(bench.transport, "orders_dlq")
        depths = await bench.transport.depths()

        assert bench.letters == ()
        assert set(depths) == {"orders_dlq"}
        assert depths["orders_dlq"].total == 1

    envelope: dict[str, Any] = json.loads(dead.to_json())
    assert list(envelope) == S3_FIELDS
    assert envelope["message_id"] == message.id
    assert envelope["queue"] == "orders"
    assert envelope["data"] == DATA
    assert envelope["error"]["message"] == "Connection refused"
    assert envelope["retry_count"] == 5  # "Número de tentativas realizadas"
    assert len(handler.dead) == (0 if failing_hook else 1)


def _broken(letter: DeadLetter) -> None:
    raise RuntimeError(f"the pager is broken: {letter.id}")


async def test_s3_class_handlers_wait_as_the_settings_say() -> None:
    app, handler = App("checkout"), ProcessOrderHandler()
    app.register("orders", handler)
    settings = Settings.model_validate({"retry": {"delays": ["1s", "2s"], "jitter": "none", "attempts": 2}})

    async with bench_for(app, settings=settings) as bench:
        await published(app)
        await bench.run_until_quiet()

        times = [failure.at for failure in bench.assert_dead_lettered("orders", attempts=5).failures]
        waits = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        assert waits == [1, 2, 2, 2]  # max_retries is about how often, not about when
