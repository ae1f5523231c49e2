"""One delivery's way through its handler, up to a decision. Settling it is the consumer's work."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import structlog

from redrive import faults
from redrive.deadline import within
from redrive.failure import Failure, FailureKind, Host, attempts_in, capture
from redrive.handler import Handler, Middleware, around
from redrive.policy import Decision, Drop, FailurePolicy, RetryAfter, SendToDeadLetter
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from redrive.clock import Clock
    from redrive.telemetry.counts import HandlerCounts
    from redrive.telemetry.spans import Spans
    from redrive.threads import HandlerThreads
    from redrive.transports import Delivery

log = structlog.get_logger("redrive.consumer")


class Failed(msgspec.Struct, frozen=True):
    """What is to be done, and everything that went wrong so far, oldest first. Not the exception itself: its trace
    leads to the frame that holds this, and only the garbage collector could part them.
    """

    decision: Decision
    failures: tuple[Failure, ...]
    first_attempt_at: datetime


class Attempts:
    """Runs a handler on a delivery: once, or again in place while the policy says so."""

    def __init__(
        self,
        handler: Handler,
        policy: FailurePolicy,
        *,
        middleware: Sequence[Middleware],
        threads: HandlerThreads,
        timeout: float | None,
        clock: Clock,
        host: Host,
        counts: HandlerCounts,
        spans: Spans | None = None,
    ) -> None:
        self.handler = handler
        self.policy = policy
        self._middleware = middleware
        self._threads = threads
        self._timeout = timeout
        self._clock = clock
        self._host = host
        self._counts = counts
        self._spans = spans
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, delivery: Delivery, before: Failed | None = None) -> Failed | None:
        """None: the handler succeeded. Being cancelled passes through: that is no failure. `before`: how it failed
        the last time, if it was kept since and has not been delivered anew.
        """
        failures = before.failures if before is not None else attempts_in(delivery.trail) if delivery.trail else ()
        attempt = _attempt(delivery, failures) if failures else delivery.attempt
        loop = self._loop = self._loop or asyncio.get_running_loop()  # once: asking is dear
        timeout, spans, name = self._timeout, self._spans, self.handler.name
        first_attempt_at = before.first_attempt_at if before else delivery.first_attempt_at
        monotonic = self._clock.monotonic
        since = began = monotonic()  # the time of day costs as much as all of this together, and few fail
        while True:
            span = None if spans is None else spans.handle(delivery, handler=name, attempt=attempt)
            try:
                if not self.handler.is_async:
                    await self._threads.room()  # outside of the timeout: a call that was never made has not failed
                faults.point("worker.before_handler")
                called = self._call(delivery)
                await (called if timeout is None else within(timeout, loop, called))
                faults.point("worker.after_handler")
            except BaseException as error:  # whatever a handler raises is a failure to decide about
                if span is not None:
                    span.end(error)
                if not _is_failure(error, asyncio.current_task(loop)):
                    raise
                now = self._clock.now()
                if first_attempt_at is None:
                    first_attempt_at = now - timedelta(seconds=monotonic() - since)
                failed = self._judge(error, attempt, failures, first_attempt_at, now)
                self._counts.count_failure(monotonic() - began, dropped=isinstance(failed.decision, Drop))
            else:
                self._counts.count_success(monotonic() - began)
                if span is not None:
                    span.end()
                return None
            decision = failed.decision
            if not (isinstance(decision, RetryAfter) and decision.in_place):
                return failed
            await self._clock.sleep(decision.delay)
            began = monotonic()
            attempt, failures = attempt + 1, failed.failures

    def _call(self, delivery: Delivery) -> Awaitable[object]:
        if not self._middleware:  # without a coroutine of our own around it: that costs, for every message
            return self.handler.run(delivery.message, self._threads)
        return around(self._middleware, delivery, lambda: self._innermost(delivery))()

    async def _innermost(self, delivery: Delivery) -> None:
        await self.handler.run(delivery.message, self._threads)

    def _judge(
        self,
        error: BaseException,
        attempt: int,
        before: tuple[Failure, ...],
        first_attempt_at: datetime,
        now: datetime,
    ) -> Failed:
        try:
            kind = self.policy.classify(error)
            elapsed = (now - first_attempt_at).total_seconds()
            decision = self.policy.decide(error, kind, attempt=attempt, elapsed=elapsed)
        except Exception as judging:  # noqa: BLE001  without a judgement it would run for ever, and never be counted
            log.error("a failure could not be judged", queue=self.handler.queue, **error_facts(judging))  # noqa: TRY400  a traceback may show the payload
            kind, decision = FailureKind.CRITICAL, SendToDeadLetter("it could not be judged")
            error = judging  # the handler's own is the context of it, and recorded with it
        failure = capture(error, attempt=attempt, at=now, kind=kind, handler=self.handler.name, host=self._host)
        return Failed(decision, (*before, failure), first_attempt_at)


def _attempt(delivery: Delivery, failures: tuple[Failure, ...]) -> int:
    """The number of the attempt to come. The broker counts deliveries, the trail knows the retries in place."""
    return max(delivery.attempt, failures[-1].attempt + 1 if failures else 1)


def _is_failure(error: BaseException, task: asyncio.Task[None] | None) -> bool:
    """Whether the handler raised it, in the task that runs it: whatever it is, it must not end the work of all
    others, again and again. Only Ctrl-C does.

    A handler that awaits something cancelled raises CancelledError, and nobody has cancelled the handler. Python
    raises GeneratorExit in a coroutine that it throws away, and then its task is not the current one.
    """
    if isinstance(error, asyncio.CancelledError):
        return task is not None and not task.cancelling()
    if isinstance(error, GeneratorExit):
        return task is not None and task is _current_task()
    return not isinstance(error, KeyboardInterrupt)


def _current_task() -> asyncio.Task[None] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs any more
        return None
