"""One delivery's way through its handler, up to a decision. Settling it is the consumer's work."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from redrive import faults
from redrive.failure import Failure, Host, capture, decode_trail
from redrive.handler import Handler, Middleware, around
from redrive.policy import Decision, FailurePolicy, RetryAfter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor

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
        executor: ThreadPoolExecutor,
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
        """None: the handler succeeded. Cancellation and SystemExit pass through: they are no failures."""
        attempt, failures = delivery.attempt, decode_trail(delivery.trail)
        first_attempt_at = delivery.first_attempt_at or self._clock.now()
        while True:
            try:
                await self._once(delivery)
            except Exception as error:  # noqa: BLE001  whatever a handler raises is a failure to decide about
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
        self._observe(failure)
        elapsed = (now - first_attempt_at).total_seconds()
        decision = self.policy.decide(error, kind, attempt=attempt, elapsed=elapsed)
        return Failed(decision, (*before, failure), error, first_attempt_at)
