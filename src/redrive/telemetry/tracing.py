"""The steps of a message as spans of OpenTelemetry, by its conventions for messaging.

1. `receive`: from the moment the consumer takes the message until something is done with it. Its parent is what
   the producer wrote into `traceparent`: one message at a time is received, so the conventions allow a parent and
   not only a link, and one trace then tells the whole story. It is the parent of all that follows.
2. `process`: one attempt of the handler, and so the parent of what the handler traces itself. It also links to
   what `traceparent` named, as the conventions ask of the span of a consumer.
3. `retry`, `dead_letter`, `confirm`: how it was settled. A retried message has its headers still, so that the next
   `receive` is in the same trace.
   Of a message whose `receive` is not sampled nothing else is told either, and where that can be foreseen
   (`sampling`) not even that one is begun.
4. `send`: a message that an App makes, below whatever is current there. What it writes into `traceparent` is what
   the consumer's `receive` is below; where the app has written one itself, that stays.
5. `redrive`: begins a trace of its own, for a run sends a million letters and lasts for hours, and links to the
   message's trace. The message keeps its `traceparent` (G2), so that what becomes of it is told in the old trace.

What is in a message is in none of them: ids, sizes, names of queues and types, never a payload, a header's value
or the text of an error. `tracestate` alone goes on with the trace, in its own narrow form. Baggage is not read.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from redrive.control import GENERATION, LETTER, REDRIVE_ID
from redrive.failure import type_name
from redrive.headers import header
from redrive.message import cut
from redrive.telemetry.error_facts import error_facts
from redrive.telemetry.sampling import Dropped
from redrive.telemetry.spans import UNTOLD

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.message import Headers, Message
    from redrive.telemetry.sampling import Foresight
    from redrive.telemetry.spans import Fact, Span
    from redrive.transports import Delivery

    Attributes = dict[str, Fact]

log = structlog.get_logger("redrive.tracing")

_LONGEST = 255
"""Characters of an id or a name: anybody can send long ones."""
_LONGEST_CONTEXT = 512
_PARENT = "traceparent"
_DESTINATION = "messaging.destination.name"
_NOWHERE: Attributes = {}
_RECEIVED = contexts.create_key("redrive-received")
_propagator = TraceContextTextMapPropagator()


class _HeaderGetter(Getter["Headers"]):
    def get(self, carrier: Headers, key: str) -> list[str] | None:
        """Brokers have text or bytes there. Whatever is no short plain text is nothing that a tracer wrote."""
        value = header(carrier, key)
        if isinstance(value, bytes) and len(value) <= _LONGEST_CONTEXT:
            value = value.decode("latin-1")
        plain = isinstance(value, str) and len(value) <= _LONGEST_CONTEXT and value.isascii()
        return [value] if plain else None

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier]


_getter = _HeaderGetter()


def context_of(headers: Headers) -> Context:
    """Where the message was made, as its producer says; an empty one if it does not, or says nonsense."""
    return _propagator.extract(headers, Context(), _getter) if headers else Context()


def _links(created: Context) -> list[Link]:
    there = trace.get_current_span(created).get_span_context()
    return [Link(there)] if there.is_valid else []


class _Step:
    """`current`: what is told and traced until its end is a part of it."""

    def __init__(self, span: trace.Span, *, current: bool = True) -> None:
        self._span = span
        self._token = contexts.attach(trace.set_span_in_context(span)) if current else None
        self._ended = False

    def note(self, **facts: Fact) -> None:
        self._span.set_attributes({f"redrive.{name}": _bounded(fact) for name, fact in facts.items()})

    def end(self, error: BaseException | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        _end(self._span, error)
        if self._token is not None:
            contexts.detach(self._token)


class _Received:
    """Its span ends when something is begun with the message, and stays the parent of that until its own end."""

    def __init__(self, span: trace.Span, delivery: Delivery, about: Attributes, links: list[Link]) -> None:
        self._span = span
        self.delivery = delivery
        self.sampled = span.is_recording()
        self.about = about
        self.links = links
        inside = contexts.set_value(_RECEIVED, self, trace.set_span_in_context(span))
        self._token = contexts.attach(inside)
        self._open = self._attached = True

    def note(self, **facts: Fact) -> None:
        self._span.set_attributes({f"redrive.{name}": _bounded(fact) for name, fact in facts.items()})

    def begun(self, error: BaseException | None = None) -> None:
        if self._open:
            self._open = False
            _end(self._span, error)

    def end(self, error: BaseException | None = None) -> None:
        if self._attached:
            self._attached = False
            self.begun(error)
            contexts.detach(self._token)


class _Passing:
    """A message of whose trace nobody is told. What is told and traced meanwhile is a part of it all the same."""

    __slots__ = ("_token",)

    def __init__(self, span: trace.Span) -> None:
        self._token: Any = contexts.attach(trace.set_span_in_context(span))

    def note(self, **facts: Fact) -> None:
        pass

    def end(self, error: BaseException | None = None) -> None:  # noqa: ARG002  it ends the same with any
        if self._token is not None:
            contexts.detach(self._token)
            self._token = None


class OpenTelemetrySpans:
    """`system` is the broker's name in the conventions."""

    def __init__(self, tracer: trace.Tracer, *, system: str, foresight: Foresight | None = None) -> None:
        self._tracer = tracer
        self._system = system
        self._foresight = foresight
        self._complained = False

    def receive(self, delivery: Delivery) -> Span:
        trace_id = None
        if self._foresight is not None:
            dropped, trace_id = self._foresight.look(delivery.message.headers)
            if dropped:
                return _Passing(Dropped(partial(self._received, delivery, trace_id)))
        return self._begun(lambda: self._receive(delivery, trace_id))

    def handle(self, delivery: Delivery, *, handler: str, attempt: int) -> Span:
        received = _sampled(delivery)
        if received is None:
            return UNTOLD
        return self._begun(lambda: self._handle(received, handler, attempt))

    def retry(self, delivery: Delivery, *, delay: float) -> Span:
        return self._settle(delivery, "retry", {"redrive.delay": delay})

    def dead_letter(self, delivery: Delivery) -> Span:
        return self._settle(delivery, "dead_letter", {})

    def confirm(self, delivery: Delivery) -> Span:
        return self._settle(delivery, "confirm", {})

    def send(self, message: Message, queue: str) -> tuple[Span, Headers]:
        carried: dict[str, str] = {}
        span = self._begun(lambda: self._send(message, queue, carried))
        return span, tuple(carried.items())

    def redrive(self, message: Message, queue: str, *, stamped: bool = False, run_id: str = "") -> Span:
        return self._begun(lambda: self._redrive(message, queue, run_id, stamped=stamped))

    def _begun(self, begin: Callable[[], Span]) -> Span:
        """Samplers and processors may be an app's own, and no message fails because one of them does."""
        try:
            return begin()
        except Exception as error:  # noqa: BLE001  whatever it is, the work goes on untraced
            if not self._complained:
                self._complained = True
                log.warning("a span could not be begun, and others may be missing", **error_facts(error))
            return UNTOLD

    def _receive(self, delivery: Delivery, trace_id: int | None) -> Span:
        about = self._about(delivery.message, delivery.queue) | _place_of(delivery)
        created = context_of(delivery.message.headers)
        span = self._received(delivery, trace_id, about, created)
        return _Received(span, delivery, about, _links(created))

    def _received(
        self,
        delivery: Delivery,
        trace_id: int | None,
        about: Attributes | None = None,
        created: Context | None = None,
    ) -> trace.Span:
        """What nobody is told of is about nothing."""
        if self._foresight is not None:
            self._foresight.say(trace_id)
        facts: Attributes = {"redrive.attempt": delivery.attempt, "redrive.redelivered": delivery.redelivered}
        return self._tracer.start_span(
            f"receive {delivery.queue if about is None else about[_DESTINATION]}",
            context=context_of(delivery.message.headers) if created is None else created,
            kind=SpanKind.CLIENT,
            attributes=None if about is None else about | _operation("receive", "receive") | facts,
        )

    def _handle(self, received: _Received, handler: str, attempt: int) -> Span:
        facts: Attributes = {"redrive.handler": _bounded(handler), "redrive.attempt": attempt}
        return self._part(received, "process", "process", facts, kind=SpanKind.CONSUMER)

    def _settle(self, delivery: Delivery, name: str, facts: Attributes) -> Span:
        received = _sampled(delivery)
        if received is None:
            return UNTOLD
        return self._begun(lambda: self._part(received, "settle", name, facts))

    def _send(self, message: Message, queue: str, carried: dict[str, str]) -> Span:
        attributes = self._about(message, queue) | _operation("send", "send")
        span = self._tracer.start_span(
            f"send {attributes[_DESTINATION]}", kind=SpanKind.PRODUCER, attributes=attributes
        )
        if header(message.headers, _PARENT) is None:
            _propagator.inject(carried, trace.set_span_in_context(span))
        return _Step(span)

    def _redrive(self, message: Message, queue: str, run_id: str, *, stamped: bool) -> Span:
        attributes = self._about(message, queue) | _operation("send", "redrive")
        if run_id:
            attributes["redrive.run_id"] = run_id
        if stamped:
            of = {"redrive.letter_id": LETTER, "redrive.redrive_id": REDRIVE_ID, "redrive.generation": GENERATION}
            attributes |= {name: header(message.headers, control) for name, control in of.items()}
        span = self._tracer.start_span(
            f"redrive {attributes[_DESTINATION]}",
            kind=SpanKind.CLIENT,  # not PRODUCER: its context is not the one that the message carries
            links=_links(context_of(message.headers)),
            attributes=attributes,
        )
        return _Step(span, current=False)

    def _part(
        self, received: _Received, of: str, name: str, facts: Attributes, *, kind: SpanKind = SpanKind.CLIENT
    ) -> Span:
        span = self._tracer.start_span(
            f"{name} {received.about[_DESTINATION]}",
            kind=kind,
            links=received.links if kind is SpanKind.CONSUMER else None,
            attributes=received.about | _operation(of, name) | facts,
        )
        return _Step(span)

    def _about(self, message: Message, queue: str) -> Attributes:
        about: Attributes = {
            "messaging.system": self._system,
            _DESTINATION: _bounded(queue),
            "messaging.message.id": _bounded(message.id),
        }
        if message.body is not None:
            about["messaging.message.body.size"] = len(message.body)
        return about


def _sampled(delivery: Delivery) -> _Received | None:
    """What is told of this message, and now something is begun with it. None: nothing is, or its own span could
    not be begun.
    """
    received: Any = contexts.get_value(_RECEIVED)
    if received is None or received.delivery is not delivery:
        return None
    received.begun()
    return received if received.sampled else None


def _operation(of: str, name: str) -> Attributes:
    return {"messaging.operation.type": of, "messaging.operation.name": name}


def _place_of(delivery: Delivery) -> Attributes:
    """Of a broker that has more to tell than the queue's name."""
    found: Attributes = getattr(delivery.receipt, "place", _NOWHERE)
    return found


def _end(span: trace.Span, error: BaseException | None) -> None:
    with suppress(Exception):  # a processor's own failure is no failure of the message
        if error is not None:
            span.set_attribute("error.type", _bounded(type_name(type(error))))
            span.set_status(Status(StatusCode.ERROR))
        span.end()


def _bounded(fact: Any) -> Any:
    """Text that any exporter can write: without lone surrogates, and not too long."""
    return cut(fact, _LONGEST) if isinstance(fact, str) else fact
