"""The log in detail (S2's EnableDetailedLogging): a line at debug level for each step of each message.

Retries, dead letters and changes of runs have lines of their own, at any level; these are the steps between them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from redrive.control import LETTER
from redrive.failure import type_name
from redrive.headers import header

if TYPE_CHECKING:
    from redrive.message import Headers, Message
    from redrive.telemetry.spans import Fact, Span
    from redrive.transports import Delivery

log = structlog.get_logger("redrive.detail")


class _Line:
    """Written when the step ends, with how long it took and the type of what ended it."""

    def __init__(self, event: str, **facts: Fact) -> None:
        self._event = event
        self._facts = facts
        self._began = time.perf_counter()
        self._ended = False

    def note(self, **facts: Fact) -> None:
        self._facts |= facts

    def end(self, error: BaseException | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if error is not None:
            self._facts["error"] = type_name(type(error))
        log.debug(self._event, **self._facts, seconds=round(time.perf_counter() - self._began, 6))


class Detail:
    def receive(self, delivery: Delivery) -> Span:
        log.debug("message received", **_about(delivery), redelivered=delivery.redelivered)
        return _Line("message settled", **_about(delivery))

    def handle(self, delivery: Delivery, *, handler: str, attempt: int) -> Span:
        return _Line("handler ended", **_about(delivery) | {"attempt": attempt}, handler=handler)

    def retry(self, delivery: Delivery, *, delay: float) -> Span:
        return _Line("message put back for a retry", **_about(delivery), delay=round(delay, 3))

    def dead_letter(self, delivery: Delivery) -> Span:
        return _Line("dead letter made durable", **_about(delivery))

    def confirm(self, delivery: Delivery) -> Span:
        return _Line("redrive confirmed", **_about(delivery))

    def send(self, message: Message, queue: str) -> tuple[Span, Headers]:
        return _Line("message sent", queue=queue, message_id=message.id), ()

    def redrive(self, message: Message, queue: str, *, stamped: bool = False, run_id: str = "") -> Span:  # noqa: ARG002  every line of a run bears it
        line = _Line("message sent back", queue=queue, message_id=message.id)
        if stamped:
            line.note(letter_id=str(header(message.headers, LETTER)))
        return line


def _about(delivery: Delivery) -> dict[str, Fact]:
    return {"queue": delivery.queue, "message_id": delivery.message.id, "attempt": delivery.attempt}
