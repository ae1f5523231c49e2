"""Retry and dead-lettering without an App: S2's manual use."""

from __future__ import annotations

import os
import random
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.clock import Clock, SystemClock
from redrive.dead_letter import Entry
from redrive.failure import Failure, Host, capture
from redrive.fingerprint import fingerprint
from redrive.handler import name_of
from redrive.policy import Decision, Drop, FailurePolicy, RetryAfter

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.message import Message
    from redrive.stores import DeadLetterStore

_DEFAULT_POLICY = FailurePolicy(random=random.random)
_SYSTEM_CLOCK = SystemClock()


async def execute_with_retry(
    message: Message,
    handler: Callable[[Message], Any],
    *,
    policy: FailurePolicy = _DEFAULT_POLICY,
    store: DeadLetterStore | None = None,
    handler_name: str | None = None,
    clock: Clock = _SYSTEM_CLOCK,
) -> bool:
    """Runs the handler until it succeeds (True) or the message is set apart (False), waiting in place.

    A message that fails for good is recorded in the store before this returns. Without a store, the last error
    is raised instead of being lost. A plain `def` handler runs on the event loop: give it a thread yourself.
    """
    try:
        result = handler(message)
        if result is not None:
            await result
    except Exception as error:  # noqa: BLE001  whatever the handler raises is a failure to decide about
        return await _Recovery(message, handler, policy, store, handler_name or name_of(handler), clock).run(error)
    return True


class _Recovery(NamedTuple):
    """The first attempt failed: decide, wait, try again, and at the end set apart."""

    message: Message
    handler: Callable[[Message], Any]
    policy: FailurePolicy
    store: DeadLetterStore | None
    name: str
    clock: Clock

    async def run(self, error: Exception) -> bool:
        failures: tuple[Failure, ...] = (self._captured(error, 1),)
        while isinstance(decision := self._decide(error, failures), RetryAfter):
            await self.clock.sleep(decision.delay)
            try:
                result = self.handler(self.message)
                if result is not None:
                    await result
            except Exception as again:  # noqa: BLE001  as above
                error = again
                failures = (*failures, self._captured(error, len(failures) + 1))
            else:
                return True
        if isinstance(decision, Drop):
            return True
        if self.store is None:
            raise error
        await self.store.record(self._entry(failures))
        return False

    def _decide(self, error: Exception, failures: tuple[Failure, ...]) -> Decision:
        elapsed = (self.clock.now() - failures[0].at).total_seconds()
        return self.policy.decide(error, failures[-1].kind, attempt=len(failures), elapsed=elapsed)

    def _captured(self, error: Exception, attempt: int) -> Failure:
        return capture(
            error,
            attempt=attempt,
            at=self.clock.now(),
            kind=self.policy.classify(error),
            handler=self.name,
            host=Host(name=socket.gethostname(), process=os.getpid()),
        )

    def _entry(self, failures: tuple[Failure, ...]) -> Entry:
        queue = self.message.queue
        return Entry(
            identity=f"message:{queue}:{self.message.id}/{self.name}",
            message=self.message,
            queue=queue,
            handler=self.name,
            failures=failures,
            fingerprint=fingerprint(failures[-1], queue=queue),
            at=self.clock.now(),
            first_attempt_at=failures[0].at,
        )
