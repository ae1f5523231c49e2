"""The arguments of a queue, by what it is for, its type and the version of the broker."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

QueueType = Literal["quorum", "classic"]
Version = tuple[int, ...]

_QUORUM_KNOWS_TTL: Version = (3, 10)
"""And dead-letters at least once."""
_HAS_DELIVERY_LIMIT: Version = (4,)
"""From here on a quorum queue drops what was delivered 20 times, unless it is told otherwise."""


class DeadLetterTarget(msgspec.Struct, frozen=True):
    """Where the broker puts what expires or is rejected. `routing_key` None: it keeps the one it came with."""

    exchange: str
    routing_key: str | None = None


def queue_arguments(
    kind: QueueType,
    version: Version,
    *,
    ttl: int | None = None,
    dead_letters: DeadLetterTarget | None = None,
    max_priority: int | None = None,
) -> dict[str, Any]:
    """`ttl` in milliseconds. A broker whose quorum queues know no TTL gets a classic queue for it."""
    made: dict[str, Any] = {}
    quorum = kind == "quorum" and (ttl is None or version >= _QUORUM_KNOWS_TTL)
    if quorum:
        made["x-queue-type"] = "quorum"
    if ttl is not None:
        made["x-message-ttl"] = ttl
    if dead_letters is not None:
        made |= _dead_lettering(dead_letters, safely=quorum and version >= _QUORUM_KNOWS_TTL)
    if quorum and version >= _HAS_DELIVERY_LIMIT:
        made["x-delivery-limit"] = -1
    if max_priority is not None:
        made["x-max-priority"] = max_priority
    return made


def _dead_lettering(target: DeadLetterTarget, *, safely: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"x-dead-letter-exchange": target.exchange}
    if target.routing_key is not None:
        made["x-dead-letter-routing-key"] = target.routing_key
    if safely:  # the broker keeps the message until its target has confirmed it (SD12); it asks for this overflow
        made |= {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
    return made
