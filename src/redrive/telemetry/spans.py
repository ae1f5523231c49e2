"""The steps of a message's way, told to whoever follows it: a trace (`tracing`), or a detailed log (`detail`).

Whoever works with a message knows no more of them than this. None in the place of `Spans`: nobody follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from redrive.message import Headers, Message

if TYPE_CHECKING:
    from redrive.transports import Delivery

Fact = str | int | float | bool


class Span(Protocol):
    """A step that has begun."""

    def note(self, **facts: Fact) -> None:
        """What became known meanwhile: ids, counts and names of ours, nothing that is in a message."""
        ...

    def end(self, error: BaseException | None = None) -> None:
        """Safe to repeat. `error` is what ended it, if not its own end: its type is told, never its text."""
        ...


class Spans(Protocol):
    """Each method begins a step, and none of them raises: a message does not fail because somebody follows it. All
    but `redrive` are ended by the task that began them, the last one first.
    """

    def receive(self, delivery: Delivery) -> Span:
        """A message is in hand, until this one is ended; what else is told meanwhile is a part of it."""
        ...

    def handle(self, delivery: Delivery, *, handler: str, attempt: int) -> Span: ...

    def retry(self, delivery: Delivery, *, delay: float) -> Span:
        """It is put where it waits for its next attempt."""
        ...

    def dead_letter(self, delivery: Delivery) -> Span:
        """It is made durable as a letter, and acknowledged."""
        ...

    def confirm(self, delivery: Delivery) -> Span:
        """Its letter is told that its redrive has succeeded."""
        ...

    def send(self, message: Message, queue: str) -> tuple[Span, Headers]:
        """A message that we have made is sent; the step is the current one until its end. The headers are what its
        consumers need to go on with the same trace: none if the message has such headers already.
        """
        ...

    def redrive(self, message: Message, queue: str, *, stamped: bool = False, run_id: str = "") -> Span:
        """It is sent back to this queue; many may be on their way at the same time. `stamped`: its control headers
        are ours, and not what a producer may have written there.
        """
        ...


Follow = Callable[[Message, str], Span]
"""Begins the step of one message that is sent back to one queue."""


class _Untold:
    def note(self, **facts: Fact) -> None:
        pass

    def end(self, error: BaseException | None = None) -> None:
        pass


UNTOLD: Span = _Untold()
"""A step that nobody follows."""


class told:  # noqa: N801  read as a verb: `with told(span):`
    """The step ends with the block, however that ends. None: nobody follows.

    A class, for every message of a worker that is followed goes through one, and a generator costs twice as much.
    """

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = UNTOLD if span is None else span

    def __enter__(self) -> Span:
        return self._span

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        self._span.end(error)


class _TogetherSpan:
    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans

    def note(self, **facts: Fact) -> None:
        for each in self._spans:
            each.note(**facts)

    def end(self, error: BaseException | None = None) -> None:
        for each in reversed(self._spans):
            each.end(error)


class Together:
    """Several that follow. What the first one begins is around the others, so that their lines bear its ids."""

    def __init__(self, followers: Sequence[Spans]) -> None:
        self._followers = followers

    def receive(self, delivery: Delivery) -> Span:
        return _TogetherSpan([each.receive(delivery) for each in self._followers])

    def handle(self, delivery: Delivery, *, handler: str, attempt: int) -> Span:
        return _TogetherSpan([each.handle(delivery, handler=handler, attempt=attempt) for each in self._followers])

    def retry(self, delivery: Delivery, *, delay: float) -> Span:
        return _TogetherSpan([each.retry(delivery, delay=delay) for each in self._followers])

    def dead_letter(self, delivery: Delivery) -> Span:
        return _TogetherSpan([each.dead_letter(delivery) for each in self._followers])

    def confirm(self, delivery: Delivery) -> Span:
        return _TogetherSpan([each.confirm(delivery) for each in self._followers])

    def send(self, message: Message, queue: str) -> tuple[Span, Headers]:
        begun = [each.send(message, queue) for each in self._followers]
        return _TogetherSpan([span for span, _ in begun]), tuple(pair for _, headers in begun for pair in headers)

    def redrive(self, message: Message, queue: str, *, stamped: bool = False, run_id: str = "") -> Span:
        begun = [each.redrive(message, queue, stamped=stamped, run_id=run_id) for each in self._followers]
        return _TogetherSpan(begun)
