"""What the settings allow to be lost: decisions that somebody may have made on purpose, and should know of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.duration import short
from redrive.examined_retention import examine_retention
from redrive.finding import ok, problem, warn
from redrive.transports.delays import LADDER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from redrive.finding import Finding
    from redrive.settings import QueueSettings, Settings

_DAY = 86400.0
_SHORT_LEASE = 10.0
_PRODUCTION = ("prod", "live")
_LONGEST_WAIT = LADDER[-1] / 1e3


class Handled(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it is worked on: what the app says in code and what the settings say."""

    name: str
    timeout: float | None
    """Seconds that a handler may take; None: any time."""
    waits: tuple[float, ...]
    """Every delay of its retries in their order, in seconds, at their longest."""
    budget: float | None

    @property
    def lasts(self) -> float:
        """Seconds from the first attempt to the last one, without what the handlers take."""
        whole = sum(self.waits)
        return whole if self.budget is None else min(whole, self.budget)


def examine_settings(settings: Settings, queues: Collection[Handled]) -> list[Finding]:
    found = [
        *_memory(settings),
        *examine_retention(settings),
        *_privacy(settings),
        *_environment(settings),
        *_broker(settings),
        *(each for queue in queues for each in _queue(settings, queue)),
    ]
    return found or [ok("settings", "no setting lets go of messages")]


def is_production(settings: Settings) -> bool:
    return settings.app.environment.lower().startswith(_PRODUCTION)


def _memory(settings: Settings) -> Iterator[Finding]:
    for name, url in (("broker.url", settings.broker.url), ("store.url", settings.store.url)):
        if ":memory:" in url.reveal().partition("?")[0]:
            what = f"{name} names no file: everything is gone when the process ends"
            yield problem("memory-only", what, f"name a file in {name}; :memory: is for tests")


def _privacy(settings: Settings) -> Iterator[Finding]:
    production = is_production(settings)
    told = problem if production else warn
    if not settings.masking.enabled:
        what = "masking is off: whoever may see letters sees what is personal in them"
        yield told("masking", what, "set masking.enabled")
    for name, queue in settings.queues.items():
        if queue.masking.enabled is False and settings.masking.enabled:
            what = "masking is off for it: whoever may see its letters sees what is personal in them"
            yield told("masking", what, f"set queues.{name}.masking.enabled", queue=name)
    if not production:
        return
    if settings.masking.enabled and settings.masking.search_key is None:
        what = "masked values are hashed with a key that is in the store: who has a copy of it can try values out"
        yield warn("search-key", what, "set masking.search_key, the same for all who use the store")
    if not settings.encryption.enabled:
        what = "messages are written to disks as they are: who has a copy of the store can read them"
        yield warn("encryption-off", what, "make a key with `redrive keys new`, and set encryption.enabled")
    if settings.audit.key is None:
        what = f"the ledger's key is in {settings.audit.key_path}: each machine makes its own, and may lose it"
        yield warn("ledger-key", what, "set audit.key, the same for all who use the store")


def _environment(settings: Settings) -> Iterator[Finding]:
    shared = not settings.store.url.reveal().startswith("sqlite:")
    if shared and not settings.app.environment:
        what = "the store is on a server and no environment is named: workers of another one may use it too"
        yield warn("environment", what, "set app.environment, such as 'production'")


def _broker(settings: Settings) -> Iterator[Finding]:
    broker = settings.broker
    if broker.on_rabbitmq and not broker.rabbitmq.persistent:
        what = "what the app sends is not persistent: lost when the broker stops"
        yield problem("persistent", what, "set broker.rabbitmq.persistent")
    if broker.on_rabbitmq and broker.rabbitmq.consumer_timeout < settings.worker.grace:
        what = "the broker takes messages back before workers that stop have finished them"
        yield warn("grace", what, "set worker.grace below broker.rabbitmq.consumer_timeout")
    if not broker.has_server and broker.lease < _SHORT_LEASE:
        what = (
            f"a lease ends {short(broker.lease)} after its last heartbeat: a worker that stands still for so long"
            " loses its messages to another one, and they are handled twice"
        )
        yield warn("lease", what, f"set broker.lease to {short(_SHORT_LEASE)} or more")
    if broker.on_kafka and broker.kafka.start == "latest":
        what = "a new consumer group begins at the end: what was sent before its first start is never read"
        yield warn("kafka-start", what, "set broker.kafka.start = 'earliest'")


def _queue(settings: Settings, queue: Handled) -> Iterator[Finding]:
    own = settings.for_queue(queue.name)
    after = own.dead_letters.expire_after
    if after is not None:
        yield _expires(after, queue.name)
    yield from _breaker(own, queue.name)
    yield from _sink(settings, own, queue.name)
    yield from _retries(settings, own, queue)
    if queue.timeout is None and not settings.broker.on_rabbitmq:  # RabbitMQ's own limit is told with the broker
        what = "its handler has no timeout: one that hangs holds its message, and its place, for ever"
        yield warn("handler-timeout", what, "set handler_timeout for it", queue=queue.name)


def _expires(after: float, queue: str) -> Finding:
    what = f"letters that nobody has looked at for {short(after)} are discarded"
    told = problem if after < _DAY else warn
    return told("expire-after", what, "leave expire_after out for that queue, or let it be longer", queue=queue)


def _breaker(own: QueueSettings, queue: str) -> Iterator[Finding]:
    if own.breaker_mode != "dead_letter" or own.breaker_failures == 0:
        return
    what = "while its breaker is open, every message is dead-lettered without being tried"
    if own.dead_letters.expire_after is not None:
        what += f", and discarded after {short(own.dead_letters.expire_after)}"
        yield problem("breaker", what, "set breaker_mode = 'pause', or no expire_after", queue=queue)
    else:
        yield warn("breaker", what, "set breaker_mode = 'pause': messages wait in the queue", queue=queue)


def _sink(settings: Settings, own: QueueSettings, queue: str) -> Iterator[Finding]:
    if own.dead_letters.sink != "queue":
        return
    dead = settings.broker.names.dead_of(queue)
    if dead in settings.collector.queues:
        return
    what = f"its dead letters go into {dead!r}, which nobody collects: the broker's own limits hold for them"
    yield warn("sink", what, f"name {dead!r} in collector.queues, or set sink = 'store'", queue=queue)


def _retries(settings: Settings, own: QueueSettings, queue: Handled) -> Iterator[Finding]:
    longest = max(queue.waits, default=0.0)
    if settings.broker.on_rabbitmq and longest > _LONGEST_WAIT:
        what = f"retries should wait up to {short(longest)}; delay queues of RabbitMQ wait {short(_LONGEST_WAIT)}"
        yield warn("retry-delay", what, "let a rule retry dead letters that late instead", queue=queue.name)
    if queue.budget is not None and queue.waits and queue.budget < queue.waits[0]:
        what = f"its first retry may wait {short(queue.waits[0])}, beyond its budget of {short(queue.budget)}"
        yield warn("retry-budget", what, "raise retry.budget, or shorten the first delay", queue=queue.name)
    after = own.dead_letters.assume_after
    if after is not None and after < queue.lasts:
        what = (
            f"a redrive is assumed to have succeeded after {short(after)}, while its retries may last"
            f" {short(queue.lasts)}"
        )
        yield warn("assume-after", what, f"set assume_after to {short(queue.lasts)} or more", queue=queue.name)
