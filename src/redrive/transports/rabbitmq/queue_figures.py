"""How full and how busy the queues are, as a person reads it: queues of one wait are one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from redrive.transports.inspection import QueueFigures
from redrive.transports.rabbitmq.broker_facts import OverviewFacts
from redrive.transports.rabbitmq.effective import effective, name_without_delay, waits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from redrive.transports import Names
    from redrive.transports.rabbitmq.broker_facts import QueueFacts

N = TypeVar("N", int, float)


def figures_of(queues: Iterable[QueueFacts], wanted: Collection[str], names: Names) -> list[QueueFigures]:
    """By name; `wanted` and what belongs to them, or all but those of one connection alone."""
    shown: dict[str, QueueFigures] = {}
    for each in queues:
        one = _figures(each)
        if not each.exclusive:
            shown[one.name] = _together(shown[one.name], one) if one.name in shown else one
    ours = {each for name in wanted for each in (name, names.retry_of(name), names.dead_of(name))}
    return [each for name, each in sorted(shown.items()) if not ours or name in ours]


def _figures(queue: QueueFacts) -> QueueFigures:
    rules = effective(queue, OverviewFacts())
    delayed = waits(queue, rules)
    return QueueFigures(
        name=name_without_delay(queue, rules),
        type=queue.type,
        ready=0 if delayed else queue.ready,
        delayed=queue.ready if delayed else 0,
        unacked=queue.unacked,
        consumers=queue.consumers,
        incoming=queue.incoming,
        outgoing=queue.outgoing,
    )


def _together(one: QueueFigures, other: QueueFigures) -> QueueFigures:
    return QueueFigures(
        name=one.name,
        type=one.type if one.type == other.type else None,
        ready=_sum(one.ready, other.ready),
        delayed=_sum(one.delayed, other.delayed),
        unacked=_sum(one.unacked, other.unacked),
        consumers=_sum(one.consumers, other.consumers),
        incoming=_sum(one.incoming, other.incoming),
        outgoing=_sum(one.outgoing, other.outgoing),
    )


def _sum(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
