"""One queue: every way in which the broker may lose what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.duration import short
from redrive.finding import problem, warn
from redrive.transports.rabbitmq.binding_routes import Routes
from redrive.transports.rabbitmq.broker_facts import OverviewFacts, QueueFacts
from redrive.transports.rabbitmq.effective import REJECT_PUBLISH, Effective
from redrive.transports.rabbitmq.examined_dead_letters import examine_dead_letters
from redrive.transports.rabbitmq.returning import OFTEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding

_NO_MIRRORS_SINCE = (4, 0)
_RUNNING = frozenset({None, "running", "idle", "flow"})
_POLICY = "set a policy (rabbitmqctl set_policy): arguments of an existing queue cannot be changed"


class ExaminedQueue(msgspec.Struct, frozen=True, kw_only=True):
    facts: QueueFacts
    rules: Effective
    routes: Routes
    overview: OverviewFacts
    keeps_dead_letters: bool
    """Failures end here, and wait for a person."""

    @property
    def name(self) -> str:
        return self.facts.name


def examine_queue(queue: ExaminedQueue) -> Iterator[Finding]:
    yield from _lasting(queue)
    yield from _state(queue)
    yield from _expiring(queue)
    if queue.facts.type == "stream":
        return  # it has no dead letters, and keeps what was read
    yield from _replicated(queue)
    yield from _dropping(queue)
    yield from _ttl(queue)
    yield from _delivery_limit(queue)
    yield from examine_dead_letters(queue)
    yield from _uncollected(queue)


def _lasting(queue: ExaminedQueue) -> Iterator[Finding]:
    again = "delete it when it is empty and declare it durable, without auto-delete"
    if queue.facts.durable is False:
        yield problem("durable", "is not durable: gone when the broker restarts", again, queue=queue.name)
    if queue.facts.auto_delete:
        what = "is auto-delete: gone with its last consumer, messages included"
        yield problem("durable", what, again, queue=queue.name)


def _state(queue: ExaminedQueue) -> Iterator[Finding]:
    if queue.facts.state not in _RUNNING:
        yield problem("state", f"is {queue.facts.state}", "start the nodes that hold it", queue=queue.name)


def _expiring(queue: ExaminedQueue) -> Iterator[Finding]:
    """A queue that expires does not dead-letter what is in it (R25)."""
    rules = queue.rules
    if rules.expires is None:
        return
    what = f"expires when unused for {short(rules.expires / 1e3)}; its messages are then gone, not dead-lettered"
    waits = rules.message_ttl if rules.dead_letter_exchange is not None else None
    if waits is not None and waits < rules.expires:
        yield warn("expires", what, "leave x-expires out, or see that it is declared anew often", queue=queue.name)
    else:
        yield problem("expires", what, "leave x-expires out", queue=queue.name)


def _replicated(queue: ExaminedQueue) -> Iterator[Finding]:
    if queue.rules.is_quorum:
        return
    mirrored = "ha-mode" in queue.facts.policy
    release = queue.overview.release
    if mirrored and release is not None and release >= _NO_MIRRORS_SINCE:
        what = "its policy asks for mirrors, which this broker no longer has: it is on one node only"
        yield problem("classic", what, "make it a quorum queue", queue=queue.name)
        return
    told = "is a mirrored classic queue, which RabbitMQ 4 no longer has"
    what = told if mirrored else "is a classic queue, on one node only"
    yield warn("classic", what, "make it a quorum queue", queue=queue.name)


def _dropping(queue: ExaminedQueue) -> Iterator[Finding]:
    rules = queue.rules
    if not rules.is_limited or rules.overflow.startswith(REJECT_PUBLISH):
        return
    limit = f"{rules.max_length} messages" if rules.max_length is not None else f"{rules.max_bytes} bytes"
    remedy = f"overflow {REJECT_PUBLISH}: {_POLICY}"
    if rules.dead_letter_exchange is None:
        what = f"drops its oldest messages beyond {limit}"
        yield problem("overflow", what, remedy, queue=queue.name)
    else:
        what = f"dead-letters its oldest messages beyond {limit}, at most once"
        yield warn("overflow", what, remedy, queue=queue.name)


def _ttl(queue: ExaminedQueue) -> Iterator[Finding]:
    rules = queue.rules
    if rules.message_ttl is not None and rules.dead_letter_exchange is None:
        age = short(rules.message_ttl / 1e3)
        what = f"messages older than {age} vanish: it has a TTL and no dead-letter exchange"
        yield problem("ttl", what, f"name a dead-letter exchange, or no TTL: {_POLICY}", queue=queue.name)


def _delivery_limit(queue: ExaminedQueue) -> Iterator[Finding]:
    """Every process that stops gives back what it had fetched, handled or not."""
    limit = queue.rules.delivery_limit
    if limit is None:
        return
    if queue.rules.dead_letter_exchange is None:
        what = f"drops a message that was given back {limit} times: it has no dead-letter exchange"
        remedy = f"delivery-limit -1 (RabbitMQ 4), or a dead-letter exchange: {_POLICY}"
        yield problem("delivery-limit", what, remedy, queue=queue.name)
    elif limit <= OFTEN:  # so soon that nobody holds it instead
        what = f"dead-letters a message that was given back {limit} times, though nobody may have handled it"
        yield warn("delivery-limit", what, f"a limit above {OFTEN}, or none: {_POLICY}", queue=queue.name)


def _uncollected(queue: ExaminedQueue) -> Iterator[Finding]:
    waiting = queue.facts.messages or 0
    if queue.keeps_dead_letters and waiting and queue.facts.consumers == 0:
        yield warn(
            "uncollected",
            f"dead letters wait ({waiting:,}), and nobody collects them",
            f"`redrive collect` keeps them in the store, `redrive reprocess --queue {queue.name}` puts them back",
            queue=queue.name,
        )
