"""Where things lie that are meant for a queue's name.

Nothing can be sent to a subscription. What is meant for its consumer goes to queues beside it: `topic.name_retry`
for retries and redrives, `topic.name_dlq` for dead letters, by the templates for names that all queues have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure.servicebus import ServiceBusSubQueue

from redrive.servicebus_paths import DEAD_LETTERS, TRANSFER_DEAD_LETTERS, parse

if TYPE_CHECKING:
    from redrive.servicebus_paths import EntityPath
    from redrive.transports import Names

_SUBQUEUES = {
    DEAD_LETTERS: ServiceBusSubQueue.DEAD_LETTER,
    TRANSFER_DEAD_LETTERS: ServiceBusSubQueue.TRANSFER_DEAD_LETTER,
}


def subqueue_of(path: EntityPath) -> ServiceBusSubQueue | None:
    return _SUBQUEUES.get(path.subqueue)


def retries_of(queue: str, names: Names) -> str:
    """Where retries of a queue lie: scheduled in the queue itself, or in one beside a subscription."""
    where = parse(queue)
    return names.retry_of(where.beside) if where.subscription else queue


def dead_of(queue: str, names: Names) -> str:
    where = parse(queue)
    beside = where.subscription and not has_native_dead(queue, names)
    return names.dead_of(where.beside if beside else queue)


def has_native_dead(queue: str, names: Names) -> bool:
    """Its dead letters are the broker's own: in the subqueue that every entity has, but no subqueue."""
    return bool(parse(names.dead_of(queue)).subqueue) and not parse(queue).subqueue


def sendable(name: str, names: Names) -> str:
    """Where something goes that is meant for this name."""
    if not parse(name).subscription:
        return name
    home = names.home_of_dead(name)
    return retries_of(name, names) if home is None else dead_of(home, names)


def is_read_elsewhere(dead: str, names: Names) -> bool:
    """Dead letters of a subscription: in a queue beside it, or in two subqueues."""
    return names.home_of_dead(dead) is not None and receivable(dead, names) != (dead,)


def receivable(name: str, names: Names) -> tuple[str, ...]:
    """All that is read for this name."""
    where = parse(name)
    if where.subscription and where.subqueue and names.home_of_dead(name) is not None:
        return name, f"{retries_of(where.parent, names)}/{where.subqueue}"  # each died where it lay
    if not where.subscription or where.subqueue:
        return (name,)
    if (home := names.home_of_dead(name)) is not None:
        return (dead_of(home, names),)
    return name, retries_of(name, names)
