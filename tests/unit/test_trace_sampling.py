"""What is foreseen of a trace is what OpenTelemetry's SDK would have decided, and nothing else changes by it."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_ON,
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    TraceIdRatioBased,
)

from redrive.message import Headers
from redrive.telemetry.sampling import Foresight, KnownTraceIds
from redrive.telemetry.spans import told
from redrive.telemetry.tracing import OpenTelemetrySpans, context_of
from redrive.testing.letters import a_message
from redrive.transports import Delivery
from support.traced import TRACE, TRACEPARENT, trace_of

UNSAMPLED = f"{TRACEPARENT[:-2]}00"
SEEN = Context()


class Counted(KnownTraceIds):
    """How many spans were begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0

    def generate_span_id(self) -> int:
        self.begun += 1
        return super().generate_span_id()


class Shop:
    def __init__(self, sampler: Sampler) -> None:
        self.ids, self._exporter = Counted(), InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, id_generator=self.ids, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        foresight = Foresight.of(self.provider)
        self.spans = OpenTelemetrySpans(self.provider.get_tracer("redrive"), system="redrive", foresight=foresight)

    def handles(self, *, headers: Headers = (), ask: bool = False) -> trace.SpanContext | None:
        """What the handler finds, if it asks; then it traces something itself."""
        delivery = a_delivery(headers)
        with told(self.spans.receive(delivery)), told(self.spans.handle(delivery, handler="h", attempt=1)):
            if not ask:
                return None
            found = trace.get_current_span().get_span_context()
            self.provider.get_tracer("app").start_span("its own").end()
            return found

    def exported(self, name: str) -> list[int]:
        return [trace_of(span) for span in self._exporter.get_finished_spans() if span.name == name]


def a_delivery(headers: Headers) -> Delivery:
    return Delivery(
        message=a_message(headers=headers),
        queue="orders",
        identity="1",
        attempt=1,
        redelivered=False,
        first_attempt_at=None,
        trail=None,
        receipt=None,
    )


def foresight(sampler: Sampler) -> Foresight:
    found = Foresight.of(TracerProvider(sampler=sampler, id_generator=KnownTraceIds(), shutdown_on_exit=False))
    assert found is not None
    return found


@pytest.mark.parametrize("ratio", [0.0, 0.01, 0.5, 1.0])
def test_of_every_trace_that_begins_here_the_sdk_decides_the_same(ratio: float) -> None:
    sampler = ParentBasedTraceIdRatio(ratio)
    seen = foresight(sampler)
    for _ in range(2000):
        dropped, trace_id = seen.look(())
        assert trace_id is not None
        decided = sampler.should_sample(SEEN, trace_id, "receive").decision
        assert decided is (Decision.DROP if dropped else Decision.RECORD_AND_SAMPLE)


def test_about_as_many_are_told_of_as_the_ratio_says_each_whole_and_in_a_trace_of_its_own() -> None:
    shop = Shop(ParentBasedTraceIdRatio(0.5))
    for _ in range(400):
        shop.handles()
    received = shop.exported("receive orders")
    assert 120 < len(received) < 280
    assert len(set(received)) == len(received)
    assert shop.exported("process orders") == received


def test_of_a_message_that_nobody_is_told_of_no_span_is_begun() -> None:
    shop = Shop(ParentBasedTraceIdRatio(0.0))
    for headers in ((), (("traceparent", UNSAMPLED),)):
        shop.handles(headers=headers)
    assert shop.ids.begun == 0


def test_what_a_handler_traces_itself_is_a_part_of_the_trace_that_nobody_is_told_of() -> None:
    shop = Shop(ParentBasedTraceIdRatio(0.0))
    found = [shop.handles(ask=True) for _ in range(20)]
    assert all(each is not None and each.is_valid and not each.trace_flags.sampled for each in found)
    assert len({each.trace_id for each in found if each is not None}) == 20
    assert shop.exported("its own") == []


def test_whoever_asks_twice_is_told_the_same() -> None:
    shop = Shop(ParentBasedTraceIdRatio(0.0))
    with told(shop.spans.receive(a_delivery(()))):
        current = trace.get_current_span()
        assert current.get_span_context() == current.get_span_context()
        assert not current.is_recording()
    assert not trace.get_current_span().get_span_context().is_valid


def test_the_producers_decision_holds_with_its_trace_and_its_state() -> None:
    shop = Shop(ParentBasedTraceIdRatio(1.0))
    found = shop.handles(headers=(("traceparent", UNSAMPLED), ("tracestate", "vendor=1")), ask=True)
    assert found is not None
    assert found.trace_id == TRACE
    assert found.trace_state.get("vendor") == "1"
    assert shop.exported("its own") == []
    shop.handles(headers=(("traceparent", TRACEPARENT),), ask=True)
    assert shop.exported("its own") == shop.exported("process orders") == [TRACE]


@pytest.mark.parametrize(
    "said",
    [
        UNSAMPLED,
        TRACEPARENT,
        UNSAMPLED.encode(),
        UNSAMPLED.upper(),
        f" {UNSAMPLED}",
        f"{UNSAMPLED}-more",
        f"01{UNSAMPLED[2:]}",
        f"ff{UNSAMPLED[2:]}",
        f"00-{'0' * 32}-{'1' * 16}-00",
        f"00-{'1' * 32}-{'0' * 16}-00",
        f"{UNSAMPLED[:-2]}02",
        f"{UNSAMPLED[:-2]}03",
        f"{UNSAMPLED}\n",
        "",
        17,
        None,
    ],
    ids=repr,
)
def test_a_parent_is_not_sampled_if_the_propagator_says_so_too(said: Any) -> None:
    headers: Headers = (("traceparent", said),)
    dropped, _ = foresight(DEFAULT_ON).look(headers)
    there = trace.get_current_span(context_of(headers)).get_span_context()
    assert not dropped or (there.is_valid and not there.trace_flags.sampled)
    assert dropped is (said in {UNSAMPLED, f"{UNSAMPLED[:-2]}02"})  # what is rare may go the long way


class Own(ParentBased):
    """An app's, which may decide as it likes."""


@pytest.mark.parametrize(
    "sampler",
    [
        ALWAYS_ON,
        ALWAYS_OFF,
        TraceIdRatioBased(0.1),
        Own(ALWAYS_ON),
        ParentBased(ALWAYS_ON, remote_parent_not_sampled=ALWAYS_ON),
        ParentBased(Own(ALWAYS_ON)),
    ],
    ids=lambda sampler: sampler.get_description()[:60],
)
def test_nothing_is_foreseen_of_samplers_that_may_decide_otherwise(sampler: Sampler) -> None:
    provider = TracerProvider(sampler=sampler, id_generator=KnownTraceIds(), shutdown_on_exit=False)
    assert Foresight.of(provider) is None
    assert Foresight.of(trace.NoOpTracerProvider()) is None


def test_where_an_app_makes_ids_its_own_way_only_parents_are_looked_at() -> None:
    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(0.01), id_generator=RandomIdGenerator(), shutdown_on_exit=False
    )
    seen = Foresight.of(provider)
    assert seen is not None
    assert seen.look(()) == (False, None)
    assert seen.look((("traceparent", UNSAMPLED),)) == (True, None)
