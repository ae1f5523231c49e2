"""What `redrive setup` asks of a broker. The driver answers to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from redrive.errors import RedriveError

if TYPE_CHECKING:
    from redrive.transports.rabbitmq.queue_arguments import Version
    from redrive.transports.rabbitmq.topology import BindingSpec, ExchangeSpec, QueueSpec


class QueueLook(msgspec.Struct, frozen=True):
    messages: int
    consumers: int


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
        """None: there is no such queue."""
        ...

    async def exchange_exists(self, name: str) -> bool: ...

    async def declare_queue(self, spec: QueueSpec) -> None: ...

    async def declare_exchange(self, spec: ExchangeSpec) -> None: ...

    async def bind(self, spec: BindingSpec) -> None: ...
