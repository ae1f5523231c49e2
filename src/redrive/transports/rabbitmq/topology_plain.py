"""S3's topology: `{queue}_retry` and `{queue}_dlq` are queues like any other, and retries are read from theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from redrive.transports.rabbitmq.queue_arguments import queue_arguments
from redrive.transports.rabbitmq.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Iterator


class PlainQueues(Topology, frozen=True, kw_only=True):
    """Its queues have no arguments, unless settings give some: S3's other services declare them with none, and the
    broker refuses who declares the same queue with others. A retry waits its delay (SD11) in a queue of ours, and
    comes from there into `{queue}_retry`.
    """

    writes_envelope: ClassVar[bool] = True

    def consumed(self, queue: str) -> tuple[str, ...]:
        if self.names.home_of_dead(queue) is not None:  # what is dead is not retried there
            return (queue,)
        return queue, self.names.retry_of(queue)

    def _standing(self, queue: str) -> Iterator[tuple[str, str]]:
        yield self.names.dead_of(queue), "dead letters"
        yield self.names.retry_of(queue), "retries"
        yield queue, "messages"

    def _arguments(self, name: str) -> dict[str, Any]:
        dead = self.names.home_of_dead(name) is not None
        return queue_arguments(
            self.queue_type or "classic", self.version, max_priority=None if dead else self.max_priority
        )

    def _returns_to(self, queue: str) -> str:
        return self.names.retry_of(queue)
