"""Structured logs: one event, one line, JSON unless a person is looking.

A line bears what its event is given, and what holds for all that is logged meanwhile: `request_id` while a request
is answered, `run_id` while a redrive run is carried out, `trace_id` and `span_id` while a span is current.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import structlog

from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from structlog.typing import EventDict

_encoder = msgspec.json.Encoder()

LogFormat = Literal["auto", "json", "console"]


def configure_logs(*, level: str = "info", style: LogFormat = "auto") -> None:
    """Once per process, by the front doors only: a library must leave its user's logging alone."""
    wants_console = style == "console" or (style == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if wants_console
        else structlog.processors.JSONRenderer(serializer=_as_json)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            with_trace,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *([_escaped] if wants_console else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.lastResort = _Relay(logging.WARNING)


def with_trace(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A processor of structlog: which trace and span the line belongs to. Nothing is imported for it: whoever has
    begun a span has done that.
    """
    tracing = sys.modules.get("opentelemetry.trace")
    if tracing is not None:
        current = tracing.get_current_span().get_span_context()
        if current.is_valid:
            event["trace_id"] = f"{current.trace_id:032x}"
            event["span_id"] = f"{current.span_id:016x}"
    return event


def _escaped(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """For people: what would move their cursor, break the line or turn it round is shown as an escape (TH2)."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = ascii(value)[1:-1]
    return event


class _Relay(logging.Handler):
    """What other libraries log and nobody handles, as lines of ours: Python would print it as plain text, a stack
    trace over many lines. An app that has set up its own logging is not met here.
    """

    def emit(self, record: logging.LogRecord) -> None:
        try:
            error = record.exc_info[1] if record.exc_info else None
            facts = {} if error is None else error_facts(error)
            structlog.get_logger(record.name).log(record.levelno, record.getMessage(), logger=record.name, **facts)
        except Exception:  # noqa: BLE001  as every handler of logging
            self.handleError(record)


def _as_json(event: Any, **options: Any) -> str:
    """In ASCII: what a terminal or a log viewer would take for more than text stays escaped."""
    try:
        written = _encoder.encode(event)
    except (TypeError, ValueError, RecursionError):
        written = b""
    plain = written and written.isascii() and b"\x7f" not in written
    return written.decode() if plain else json.dumps(event, **options)
