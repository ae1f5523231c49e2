"""One delivery's way through its handler, up to a decision. Settling it is the consumer's work."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from redrive import faults
from redrive.failure import Failure, Host, capture, decode_trail
from redrive.handler import Handler, Middleware, around
from redrive.policy import Decision, Drop, FailurePolicy, RetryAfter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from redrive.clock import Clock
    from redrive.transports import Delivery


class Failed(msgspec.Struct, frozen=True):
    """What is to be done, and everything that went wrong so far, oldest first."""

    decision: Decision
    failures: tuple[Failure, ...]
    error: BaseException
    first_attempt_at: datetime


class Attempts:
    """Runs a handler on a delivery: once, or again in place while the policy says so."""

    def __init__(
        self,
        handler: Handler,
        policy: FailurePolicy,
        *,
        middleware: Sequence[Middleware],
        executor: Executor,
        timeout: float | None,
        clock: Clock,
        host: Host,
        observe: Callable[[Failure | None], None],
    ) -> None:
        self.handler = handler
        self.policy = policy
        self._middleware = middleware
        self._executor = executor
        self._timeout = timeout
        self._clock = clock
        self._host = host
        self._observe = observe

    async def run(self, delivery: Delivery) -> Failed | None:
        """None: the handler succeeded. Being cancelled passes through: that is no failure."""
        failures = decode_trail(delivery.trail)
        attempt = _attempt(delivery, failures)
        first_attempt_at = delivery.first_attempt_at or self._clock.now()
        while True:
            try:
                await self._once(delivery)
            except BaseException as error:  # whatever a handler raises is a failure to decide about
                if not _is_failure(error):
                    raise
                failed = self._judge(error, attempt, failures, first_attempt_at)
            else:
                self._observe(None)
                return None
            decision = failed.decision
            if not (isinstance(decision, RetryAfter) and decision.in_place):
                return failed
            await self._clock.sleep(decision.delay)
            attempt, failures = attempt + 1, failed.failures

    async def _once(self, delivery: Delivery) -> None:
        faults.point("worker.before_handler")
        if not self._middleware and self._timeout is None:
            await self.handler.run(delivery.message, self._executor)
        else:
            async with asyncio.timeout(self._timeout):
                await around(self._middleware, delivery, lambda: self._call(delivery))()
        faults.point("worker.after_handler")

    async def _call(self, delivery: Delivery) -> None:
        await self.handler.run(delivery.message, self._executor)

    def _judge(
        self, error: BaseException, attempt: int, before: tuple[Failure, ...], first_attempt_at: datetime
    ) -> Failed:
        kind = self.policy.classify(error)
        now = self._clock.now()
        failure = capture(error, attempt=attempt, at=now, kind=kind, handler=self.handler.name, host=self._host)
        elapsed = (now - first_attempt_at).total_seconds()
        decision = self.policy.decide(error, kind, attempt=attempt, elapsed=elapsed)
        self._observe(None if isinstance(decision, Drop) else failure)  # to drop a message is no failure
        return Failed(decision, (*before, failure), error, first_attempt_at)


def _attempt(delivery: Delivery, failures: tuple[Failure, ...]) -> int:
    """The number of the attempt to come. The broker counts deliveries, the trail knows the retries in place."""
    return max(delivery.attempt, failures[-1].attempt + 1 if failures else 1)


def _is_failure(error: BaseException) -> bool:
    """Whether the handler raised it. A handler that awaits something cancelled raises CancelledError, and nobody
    has cancelled the handler; `sys.exit` in a handler must not end the work of all others, again and again.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, Exception | SystemExit)
