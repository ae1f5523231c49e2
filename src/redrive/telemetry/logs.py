"""Structured logs: one event, one line, JSON unless a person is looking."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, Literal

import msgspec
import structlog

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
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def _as_json(event: Any, **options: Any) -> str:
    """In ASCII: what a terminal or a log viewer would take for more than text stays escaped."""
    try:
        written = _encoder.encode(event)
    except (TypeError, ValueError, RecursionError):
        written = b""
    plain = written and written.isascii() and b"\x7f" not in written
    return written.decode() if plain else json.dumps(event, **options)
