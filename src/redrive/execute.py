"""Retry and dead-lettering without an App: S2's manual use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import socket
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive import control
from redrive.clock import Clock, SystemClock
from redrive.dead_letter import Actor, Entry
from redrive.errors import RedriveError
from redrive.failure import Failure, Host, capture
from redrive.fingerprint import fingerprint
from redrive.handler import name_of
from redrive.policy import Decision, Drop, FailurePolicy, RetryAfter

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.control import RedriveTicket
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

    A handler that raises `Drop` is done with the message: True. A message that fails for good is recorded in the
    store before this returns. Without a store, the last error is raised instead of being lost. A plain `def`
    handler runs on the event loop: give it a thread yourself.
    """
    try:
        result = handler(message)
        if result is not None and isawaitable(result):
            await result
    except Exception as error:  # noqa: BLE001  whatever the handler raises is a failure to decide about
        return await _Recovery(message, handler, policy, store, handler_name or name_of(handler), clock).run(error)
    if store is not None and message.headers:
        await _confirm(message, store, handler_name or name_of(handler))
    return True


async def _ticket(message: Message, store: DeadLetterStore) -> RedriveTicket | None:
    if not control.carries_ticket(message.headers):
        return None
    return control.read_ticket(message.headers, message.queue, await store.signing_key())


async def _confirm(message: Message, store: DeadLetterStore, name: str) -> None:
    """T10 for a redriven message. If the store is away its letter stays REDRIVEN, which is true."""
    with contextlib.suppress(RedriveError):
        ticket = await _ticket(message, store)
        if ticket is not None:
            await store.confirm(ticket, by=Actor("execute_with_retry", f"{name} succeeded"))


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
                if isawaitable(result):
                    await result
            except Exception as again:  # noqa: BLE001  as above
                error = again
                failures = (*failures, self._captured(error, len(failures) + 1))
            else:
                return await self._done()
        if isinstance(decision, Drop):
            return await self._done()
        if self.store is None:
            raise error
        await self.store.record(self._entry(failures, await _ticket(self.message, self.store)))
        return False

    async def _done(self) -> bool:
        if self.store is not None:
            await _confirm(self.message, self.store, self.name)
        return True

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

    def _entry(self, failures: tuple[Failure, ...], ticket: RedriveTicket | None) -> Entry:
        message, queue = self.message, self.message.queue
        return Entry(
            identity=_identity(message, self.name),
            message=message.with_headers(control.strip(message.headers)) if ticket else message,
            queue=queue,
            handler=self.name,
            failures=failures,
            fingerprint=fingerprint(failures[-1], queue=queue),
            at=self.clock.now(),
            first_attempt_at=failures[0].at,
            ticket=ticket,
        )


def _identity(message: Message, handler: str) -> str:
    """With the lengths, so that no two ids and queues run into each other, and with what the message holds: a
    producer that uses one id twice must not hide a message behind another (TH6).
    """
    held = hashlib.sha256()
    for part in (message.body, message.key):
        held.update(b"-" if part is None else b"%d:" % len(part) + part)
    name = f"{len(message.queue)}:{message.queue}:{len(message.id)}:{message.id}"
    return f"message:{name}:{held.hexdigest()}/{handler}"
