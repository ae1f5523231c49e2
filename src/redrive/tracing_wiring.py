"""Who follows messages, made from the settings: OpenTelemetry's SDK, and the log in detail.

An app that has set a tracer provider up keeps it, and our spans go where its own go. Else a provider is made here,
for us alone: the process may be a part of something larger, whose global one is not ours to set.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from redrive import __version__
from redrive.errors import ConfigurationError
from redrive.telemetry.detail import Detail
from redrive.telemetry.spans import Together

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.sdk.trace.sampling import Sampler

    from redrive.settings import Settings
    from redrive.telemetry.spans import Spans

_EXPORTERS = "opentelemetry_traces_exporter"
_OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
_NAME = "redrive"


@dataclass(frozen=True)
class Opened:
    spans: Spans | None
    flush: Callable[[], object] | None = None
    """Exports what is left, and ends; it may take as long as the exporter's timeout."""

    async def close(self) -> None:
        if self.flush is not None:
            await asyncio.to_thread(self.flush)


def opened(settings: Settings, *, app: str = "") -> Opened:
    """ConfigurationError if traces are wanted and cannot be made."""
    detail: list[Spans] = [Detail()] if settings.log.level == "debug" else []
    if not settings.tracing.enabled or _disabled():
        return Opened(_all_of(detail))
    traces, flush = _traces(settings, app)
    return Opened(_all_of([traces, *detail]), flush)


def _all_of(followers: list[Spans]) -> Spans | None:
    return followers[0] if len(followers) == 1 else Together(followers) if followers else None


def _disabled() -> bool:
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def _traces(settings: Settings, app: str) -> tuple[Spans, Callable[[], object] | None]:
    try:
        from opentelemetry import trace  # noqa: PLC0415  only those who trace have it

        from redrive.telemetry.sampling import Foresight  # noqa: PLC0415  as above
        from redrive.telemetry.tracing import OpenTelemetrySpans  # noqa: PLC0415  as above

        theirs = trace.get_tracer_provider()
        of_the_app = not isinstance(theirs, trace.ProxyTracerProvider)
        provider = theirs if of_the_app else _provider(settings, app)
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"[tracing] is enabled, and the package {missing.name} is not installed",
            remedy="pip install 'redrive[otel]', or set tracing.enabled = false",
        ) from missing
    spans = OpenTelemetrySpans(
        provider.get_tracer(_NAME, __version__), system=_system(settings), foresight=Foresight.of(provider)
    )
    return spans, getattr(provider, "force_flush" if of_the_app else "shutdown", None)


def _system(settings: Settings) -> str:
    """In the words of the conventions; they have none for a broker of ours."""
    broker = settings.broker
    if broker.on_sqs:
        return "aws_sqs"
    if broker.on_servicebus:
        return "servicebus"
    return "kafka" if broker.on_kafka else "rabbitmq" if broker.on_rabbitmq else "redrive"


def _provider(settings: Settings, app: str) -> TracerProvider:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  as above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  as above

    from redrive.telemetry.sampling import KnownTraceIds  # noqa: PLC0415  as above

    exporters = _exporters()
    made = TracerProvider(
        sampler=_sampler(settings),
        id_generator=KnownTraceIds(),
        resource=Resource.create(_about_us(settings, app)),
        shutdown_on_exit=False,
    )
    for exporter in exporters:
        made.add_span_processor(BatchSpanProcessor(exporter))
    return made


def _sampler(settings: Settings) -> Sampler | None:
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio  # noqa: PLC0415  as above

    ratio = settings.tracing.sample_ratio
    return None if ratio is None else ParentBasedTraceIdRatio(ratio)


def _about_us(settings: Settings, app: str) -> dict[str, str]:
    """What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say wins."""
    said = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if os.environ.get("OTEL_SERVICE_NAME"):
        said += ",service.name="
    known = {
        "service.name": settings.app.name or app or _NAME,
        "service.version": settings.app.version,
        "deployment.environment.name": settings.app.environment,
    }
    told = {pair.partition("=")[0].strip() for pair in said.split(",")}
    return {name: value for name, value in known.items() if value and name not in told}


def _exporters() -> list[SpanExporter]:
    named = [each.strip() for each in os.environ.get("OTEL_TRACES_EXPORTER", "").split(",") if each.strip()]
    if not named and not _has_endpoint():
        raise ConfigurationError(
            "[tracing] is enabled, and nothing says where traces go",
            remedy="set OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_TRACES_EXPORTER ('none': ids in the log alone)",
        )
    return [_exporter(each) for each in named or ["otlp"] if each != "none"]


def _has_endpoint() -> bool:
    return any(os.environ.get(f"OTEL_EXPORTER_OTLP_{of}ENDPOINT") for of in ("", "TRACES_"))


def _exporter(name: str) -> SpanExporter:
    """As the packages of OpenTelemetry announce them."""
    announced = _otlp() if name == "otlp" else name
    found = next(iter(entry_points(group=_EXPORTERS, name=announced)), None)
    if found is None:
        raise ConfigurationError(
            f"no package here has the exporter of traces {announced!r}",
            remedy="pip install 'redrive[otel]' has otlp_proto_http and console; see OTEL_TRACES_EXPORTER",
        )
    exporter: SpanExporter = found.load()()
    return exporter


def _otlp() -> str:
    variables = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    wanted = next((os.environ[each] for each in variables if os.environ.get(each)), "http/protobuf")
    if wanted not in _OTLP:
        raise ConfigurationError(
            f"OTLP over {wanted!r} is not known", remedy=f"set {variables[1]} to {' or '.join(_OTLP)}"
        )
    return _OTLP[wanted]
