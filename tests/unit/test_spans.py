"""What is told of steps, by whom and in which order, and what is left behind of it: nothing."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextlib import aclosing
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive.app import App
from redrive.crew import Crew
from redrive.headers import header
from redrive.settings import Settings
from redrive.telemetry.detail import Detail
from redrive.telemetry.logs import configure_logs
from redrive.telemetry.spans import Together, told
from redrive.testing.letters import a_message
from redrive.transports import Delivery, open_transport
from support.traced import TRACEPARENT, Traced, id_of, parent_of, trace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.telemetry.spans import Span, Spans


def a_delivery() -> Delivery:
    return Delivery(
        message=a_message(),
        queue="orders",
        identity="1",
        attempt=1,
        redelivered=False,
        first_attempt_at=None,
        trail=None,
        receipt=None,
    )


def all_steps(spans: Spans, error: BaseException | None = None) -> None:
    delivery = a_delivery()
    received = spans.receive(delivery)
    begins: tuple[Callable[[], Span], ...] = (
        lambda: spans.handle(delivery, handler="charge", attempt=1),
        lambda: spans.retry(delivery, delay=1.0),
        lambda: spans.dead_letter(delivery),
        lambda: spans.confirm(delivery),
        lambda: spans.redrive(delivery.message, "orders", run_id="17"),
        lambda: spans.send(delivery.message, "orders")[0],
    )
    for begin in begins:
        step = begin()
        step.note(letter_id="17")
        step.end(error)
        step.end(error)
    received.end(error)
    received.end(error)


@pytest.mark.parametrize("error", [None, ValueError("canary"), asyncio.CancelledError()])
def test_every_step_is_told_once_and_leaves_the_context_as_it_was(error: BaseException | None) -> None:
    traced, before = Traced(), copy_context()
    all_steps(traced.spans, error)
    assert copy_context() == before
    told_of = [span.name.split()[0] for span in traced.exported()]
    assert told_of == ["receive", "process", "retry", "dead_letter", "confirm", "redrive", "send"]


async def test_messages_that_are_traced_share_a_task_as_others_do() -> None:
    traced, tasks, ended = Traced(), set(), asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        with told(traced.spans.receive(delivery)), told(traced.spans.handle(delivery, handler="h", attempt=1)):
            tasks.add(asyncio.current_task())
        if len(traced.exported("process orders")) == 20:
            ended.set()

    crew = Crew(20, 20, handle, lambda _delivery, _error: None)
    for _ in range(20):
        crew.give(a_delivery())
    await ended.wait()
    assert len(tasks) < 10


def test_a_step_that_nobody_follows_ends_as_its_block_does() -> None:
    with told(None) as span:
        span.note(sink="store")
    with pytest.raises(ValueError, match="ours"), told(None):
        raise ValueError("ours")


def test_a_detailed_line_bears_the_ids_of_the_span_that_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    logged, traced = io.StringIO(), Traced()
    monkeypatch.setattr(sys, "stderr", logged)
    configure_logs(level="debug", style="json")
    try:
        all_steps(Together([traced.spans, Detail()]))
    finally:
        structlog.reset_defaults()

    lines: list[dict[str, Any]] = [json.loads(line) for line in logged.getvalue().splitlines()]
    by_event = {line["event"]: line.get("span_id") for line in lines}
    [process], [received] = traced.exported("process orders"), traced.exported("receive orders")
    assert by_event["handler ended"] == f"{id_of(process):016x}"
    assert by_event["message received"] == by_event["message settled"] == f"{id_of(received):016x}"


async def test_what_an_app_sends_is_received_in_the_trace_that_it_was_sent_in() -> None:
    traced = Traced()
    transport = open_transport("embedded:///:memory:")
    app = App("checkout")
    async with aclosing(transport.receive("orders", prefetch=2)) as deliveries:
        with app.lent(transport, traced.spans):
            await app.send("orders", {})
            with told(traced.spans.receive(a_delivery())):  # as in a handler
                sent = await app.send("orders", {}, headers=(("priority", "high"),))
        for _ in range(2):
            with told(traced.spans.receive(await anext(deliveries))):
                pass
    await transport.close()

    first, second = traced.exported("send orders")
    outer, *received = traced.exported("receive orders")
    assert [parent_of(each) for each in received] == [id_of(first), id_of(second)]
    assert [trace_of(each) for each in received] == [trace_of(first), trace_of(second)]
    assert parent_of(second) == id_of(outer)
    assert sent.headers[0] == ("priority", "high")
    assert [name for name, _ in sent.headers[1:]] == ["traceparent"]


async def test_a_traceparent_that_the_app_has_written_itself_stays() -> None:
    traced = Traced()
    transport = open_transport("embedded:///:memory:")
    app = App("checkout")
    with app.lent(transport, Together([traced.spans, Detail()])):
        sent = await app.send("orders", {}, headers=(("traceparent", TRACEPARENT),))
    await transport.close()
    assert sent.headers == (("traceparent", TRACEPARENT),)


async def test_without_anybody_who_follows_nothing_is_added() -> None:
    transport = open_transport("embedded:///:memory:")
    async with App("checkout", transport=transport) as app:
        sent = await app.send("orders", {})
    assert header(sent.headers, "traceparent") is None


async def test_a_process_that_only_sends_follows_what_it_sends_if_the_settings_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    given = {"broker": {"url": f"embedded:///{tmp_path}/broker.db"}, "tracing": {"enabled": True}}
    async with App("checkout", settings=Settings.model_validate(given)) as app:
        sent = await app.send("orders", {})
    assert str(header(sent.headers, "traceparent")).startswith("00-")
