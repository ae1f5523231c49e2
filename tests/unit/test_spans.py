"""What is told of steps, by whom and in which order, and what is left behind of it: nothing."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from redrive.crew import Crew
from redrive.telemetry.detail import Detail
from redrive.telemetry.logs import configure_logs
from redrive.telemetry.spans import Together, told
from redrive.testing.letters import a_message
from redrive.transports import Delivery
from support.traced import Traced, id_of

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
    assert told_of == ["receive", "process", "retry", "dead_letter", "confirm", "redrive"]


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
