"""What `redrive setup` asks of a broker. The driver answers to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from redrive.errors import RedriveError, Unreachable

if TYPE_CHECKING:
    from redrive.transports.rabbitmq.queue_arguments import Version
    from redrive.transports.rabbitmq.topology import BindingSpec, ExchangeSpec, QueueSpec


class QueueLook(msgspec.Struct, frozen=True):
    messages: int
    consumers: int
    silent: bool = False
    """The queue itself does not answer, so nobody knows its numbers: a quorum queue without a leader."""


def not_known(queue: str) -> Unreachable:
    """Of a queue that is silent."""
    return Unreachable(
        f"queue {queue!r} does not answer: nobody knows what is in it",
        remedy="a quorum queue needs most of its nodes: see `rabbitmq-queues quorum_status`",
    )


class DeclarationRefused(RedriveError):
    """The broker will not have it; the text is the broker's own. Nothing was changed."""

    exit_code = 5


class Administration(Protocol):
    """Declarations are safe to repeat. DeclarationRefused when the broker says no, Unreachable when it is away."""

    @property
    def version(self) -> Version:
        """The broker's."""
        ...

    async def look(self, queue: str) -> QueueLook | None:
        """None: there is no such queue. Unreachable too when the node that holds it is away."""
        ...

    async def exchange_exists(self, name: str) -> bool: ...

    async def declare_queue(self, spec: QueueSpec) -> None: ...

    async def declare_exchange(self, spec: ExchangeSpec) -> None: ...

    async def bind(self, spec: BindingSpec) -> None: ...
