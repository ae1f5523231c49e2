"""Weighs what code and settings say about a queue. Nearer wins: the handler, the queue's settings, the app, the
general settings.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from redrive.consumer import ConsumerOptions
from redrive.errors import ConfigurationError
from redrive.in_order import LONGEST_HOLD
from redrive.ordering import OrderedBy
from redrive.policy import FailurePolicy, Retry
from redrive.schedule import Schedule, explicit, exponential, fixed, linear
from redrive.worker import QueuePlan

if TYPE_CHECKING:
    from redrive.app import App
    from redrive.classification import Kinds, Matcher
    from redrive.failure import FailureKind
    from redrive.handler import Handler
    from redrive.settings import KindsSettings, RetrySettings, Settings

_LOOKED_AT = 100
"""Attempts whose delays are looked at: a schedule that rises has reached its longest by then."""


def plan(app: App, queue: str, settings: Settings) -> QueuePlan:
    handler = app.handlers.get(queue)
    own = settings.for_queue(queue)
    timeout = own.handler_timeout if handler is None or handler.timeout is None else handler.timeout
    concurrency = own.concurrency if handler is None or handler.concurrency is None else handler.concurrency
    return QueuePlan(
        policy=_policy(app, handler, queue, settings),
        options=ConsumerOptions(
            concurrency=concurrency,
            prefetch=own.prefetch,
            grace=settings.worker.grace,
            breaker_failures=own.breaker_failures,
            breaker_pause=own.breaker_pause,
            breaker_dead_letters=own.breaker_mode == "dead_letter",
        ),
        timeout=timeout or None,
        sink=own.dead_letters.sink,
        expire_after=own.dead_letters.expire_after,
        notify_critical=own.dead_letters.notify_critical,
        ordered_by=_order(app, handler, queue, settings),
    )


def _order(app: App, handler: Handler | None, queue: str, settings: Settings) -> OrderedBy | None:
    own = settings.for_queue(queue)
    if own.ordered_by is None:
        return None
    ordered = f"queue {queue!r} is ordered by {own.ordered_by}"
    if own.dead_letters.sink != "store":
        raise ConfigurationError(
            f"{ordered}, and its dead letters go to {own.dead_letters.sink!r}",
            remedy='use sink = "store": only the store can tell what a message has to wait behind',
        )
    longest = _longest_delay(_retry(app, handler, queue, settings))
    if longest > LONGEST_HOLD:
        raise ConfigurationError(
            f"{ordered}, and its retries wait for up to {longest:g} s, while the messages behind them are held;"
            f" {LONGEST_HOLD:g} s is the most",
            remedy="use shorter delays for this queue, or fewer attempts, and let a rule retry what is dead later",
        )
    return OrderedBy.parse(own.ordered_by)


def _longest_delay(retry: Retry) -> float:
    return max((retry.delays.base(number) for number in range(1, min(retry.attempts, _LOOKED_AT))), default=0.0)


def _policy(app: App, handler: Handler | None, queue: str, settings: Settings) -> FailurePolicy:
    levels: list[Kinds | None] = [
        handler.kinds if handler else None,
        _named(settings.for_queue(queue).kinds),
        app.kinds,
        _named(settings.kinds),
    ]
    kinds = [each for each in levels if each]
    return FailurePolicy(_retry(app, handler, queue, settings), kinds=kinds, random=random.random)


def _named(kinds: KindsSettings) -> Kinds:
    named: dict[Matcher, FailureKind | str] = {}
    named.update(kinds.by_name())
    return named


def _retry(app: App, handler: Handler | None, queue: str, settings: Settings) -> Retry:
    if handler is not None and handler.retry is not None:
        return handler.retry
    retry = _general_retry(app, queue, settings)
    if handler is None or handler.attempts is None:
        return retry
    return Retry(
        handler.attempts,
        retry.delays,
        immediate=retry.immediate,
        immediate_delay=retry.immediate_delay,
        budget=retry.budget,
    )


def _general_retry(app: App, queue: str, settings: Settings) -> Retry:
    if settings.broker.loops:
        loop = settings.for_queue(queue).loop
        return Retry(loop.cycles + 1, fixed(loop.ttl))
    own = settings.for_queue(queue).retry
    if own == settings.retry and app.retry is not None:
        return app.retry
    return Retry(
        own.attempts,
        _schedule(own),
        immediate=own.immediate,
        immediate_delay=own.immediate_delay,
        budget=own.budget,
    )


def _schedule(retry: RetrySettings) -> Schedule:
    if retry.delays is not None:
        return explicit(retry.delays, jitter=retry.jitter)
    if retry.schedule == "fixed":
        return fixed(retry.initial_delay, jitter=retry.jitter)
    if retry.schedule == "linear":
        return linear(retry.initial_delay, at_most=retry.max_delay, jitter=retry.jitter)
    return exponential(retry.initial_delay, factor=retry.factor, at_most=retry.max_delay, jitter=retry.jitter)
