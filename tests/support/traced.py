"""Spans as OpenTelemetry's SDK exports them, kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redrive.telemetry.tracing import OpenTelemetrySpans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

TRACE, PRODUCER = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
TRACEPARENT = f"00-{TRACE:032x}-{PRODUCER:016x}-01"


class Traced:
    """`spans` is for a worker, a desk or an engine; what they tell is exported here."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = OpenTelemetrySpans(self.provider.get_tracer("redrive"), system="redrive")

    def exported(self, name: str | None = None) -> list[ReadableSpan]:
        """In the order of their beginning; of that name, or all."""
        ended = sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        return [span for span in ended if name in {None, span.name}]

    def names(self) -> list[str]:
        return [span.name for span in self.exported()]


def trace_of(span: ReadableSpan) -> int:
    return span.context.trace_id if span.context is not None else 0


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    return span.context.span_id if span.context is not None else 0


def facts(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})
