"""How much of a queue a worker holds in memory: RabbitMQ counts the messages that are fetched, not their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.finding import warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding
    from redrive.transports.inspection import ExpectedQueue
    from redrive.transports.rabbitmq.broker_facts import QueueFacts

_MUCH = 256 * 2**20
_MIB = 2**20


def examine_memory(expected: ExpectedQueue, facts: QueueFacts) -> Iterator[Finding]:
    """By the messages that are in the queue now."""
    if not (expected.handled and expected.prefetch and facts.messages and facts.bytes):
        return
    each = facts.bytes / facts.messages
    held = each * expected.prefetch
    if held < _MUCH:
        return
    yield warn(
        "memory",
        f"a worker may hold {held / _MIB:,.0f} MiB of it: prefetch {expected.prefetch:,}, and its messages have "
        f"{each / _MIB:,.1f} MiB on average",
        f"set prefetch or concurrency lower for it, such as {max(1, int(_MUCH / each)):,}",
        queue=expected.name,
    )
