"""The topologies by the names that settings have for them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from redrive.errors import ConfigurationError
from redrive.transports import Names
from redrive.transports.rabbitmq.queue_arguments import QueueType
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.topology_exchange import EXPIRED, DeadLetterExchange
from redrive.transports.rabbitmq.topology_loop import Loop, TtlLoop
from redrive.transports.rabbitmq.topology_plain import PlainQueues

TOPOLOGIES: dict[str, type[Topology]] = {
    "delay-queues": Topology,
    "plain-queues": PlainQueues,
    "ttl-loop": TtlLoop,
    "dead-letter-exchange": DeadLetterExchange,
}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says about a topology; None: the topology's own. Each topology takes what concerns it."""

    topology: str = "delay-queues"
    app: str = ""
    """The exchanges are named after it."""
    retry: str | None = None
    dead: str | None = None
    queue_type: QueueType | None = None
    max_priority: int | None = None
    exchange: str | None = None
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str = "deadletter"
    automatic_dlx: bool = True
    dead_letter_ttl: float | None = None
    loops: Mapping[str, Loop] = {}


def choose(choice: Choice) -> Topology:
    """ConfigurationError if the exchanges of a topology would have no name, or its queues one name."""
    kind = TOPOLOGIES[choice.topology]
    names = Names(retry=choice.retry or kind.templates.retry, dead=choice.dead or kind.templates.dead)
    _check(choice, names)
    if kind is TtlLoop:
        return _loop(choice, names)
    if kind is DeadLetterExchange:
        return _exchange(choice, names)
    return kind(names=names, queue_type=choice.queue_type, max_priority=choice.max_priority)


def _check(choice: Choice, names: Names) -> None:
    if names.retry == names.dead:
        raise ConfigurationError(
            f"retries and dead letters of a queue would both be in {names.dead!r}",
            remedy="let broker.retry_queue and broker.dead_letter_queue differ",
        )
    if choice.max_priority is not None and choice.queue_type != "classic":
        raise ConfigurationError(
            "quorum queues take no x-max-priority",
            remedy='leave max_priority out, or set queue_type = "classic"',
        )


def _loop(choice: Choice, names: Names) -> TtlLoop:
    exchange = choice.exchange or f"{_app(choice)}.workers"
    return TtlLoop(
        names=names,
        queue_type=choice.queue_type,
        max_priority=choice.max_priority,
        exchange=exchange,
        dead_letter_exchange=choice.dead_letter_exchange or f"{exchange}.deadletter",
        loops=dict(choice.loops),
    )


def _exchange(choice: Choice, names: Names) -> DeadLetterExchange:
    expired = None if choice.dead_letter_ttl is None else names.dead + EXPIRED
    return DeadLetterExchange(
        names=Names(names.retry, names.dead, expired),
        queue_type=choice.queue_type,
        max_priority=choice.max_priority,
        exchange=choice.dead_letter_exchange or f"dlx.{_app(choice)}",
        routing_key=choice.dead_letter_routing_key,
        automatic=choice.automatic_dlx,
        dead_letter_ttl=choice.dead_letter_ttl,
    )


def _app(choice: Choice) -> str:
    if not choice.app:
        raise ConfigurationError(
            f"the exchanges of topology {choice.topology!r} are named after the app, and it has no name here",
            remedy='set app.name to what App("…") is called in code, or '
            f"broker.rabbitmq.{'exchange' if choice.topology == 'ttl-loop' else 'dead_letter_exchange'}",
        )
    return choice.app
