"""What the management API tells about a broker, as plain values. None: it was not told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_VERSION_PARTS = 2


class OverviewFacts(msgspec.Struct, frozen=True, kw_only=True):
    version: str | None = None
    cluster: str | None = None

    @property
    def release(self) -> tuple[int, int] | None:
        """(3, 10) of `3.10.8`; None if the version is no such text."""
        parts = (self.version or "").split(".")[:_VERSION_PARTS]
        if len(parts) < _VERSION_PARTS or not all(part.isascii() and part.isdigit() for part in parts):
            return None
        return int(parts[0]), int(parts[1])


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str | None = None
    """`classic`, `quorum`, `stream`."""
    durable: bool | None = None
    auto_delete: bool | None = None
    exclusive: bool | None = None
    arguments: Mapping[str, Any] = {}
    policy: Mapping[str, Any] = {}
    """The definition that applies: of the policy and the operator's policy together."""
    messages: int | None = None
    ready: int | None = None
    unacked: int | None = None
    held: int | None = None
    """Quorum queues, at-least-once: dead letters that no queue has confirmed yet."""
    consumers: int | None = None
    incoming: float | None = None
    """Messages per second that were published to it, as are the next two."""
    outgoing: float | None = None
    acked: float | None = None
    memory: int | None = None
    bytes: int | None = None
    """Of the bodies of its messages."""
    state: str | None = None
    delivery_limit: int | None = None
    """The limit in force, where the broker tells it (RabbitMQ 4)."""


class ExchangeFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str | None = None
    alternate: str | None = None
    """Where it sends what it cannot route."""
    has_policy: bool = False
    """A policy may name another alternate; the broker does not tell which one."""


class BindingFacts(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    destination: str
    to_queue: bool
    """Else to an exchange."""
    key: str = ""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    running: bool | None = None
    memory_alarm: bool | None = None
    disk_alarm: bool | None = None


class PermissionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Patterns of names; an empty one matches nothing."""

    vhost: str
    configure: str = ""
    write: str = ""
    read: str = ""


class ConnectionFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str | None = None
    user: str | None = None


class ConsumerFacts(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    tag: str | None = None
    prefetch: int | None = None
    active: bool | None = None


class BrokerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an examination looks at. None: the user may not ask for it."""

    overview: OverviewFacts
    queues: tuple[QueueFacts, ...]
    exchanges: tuple[ExchangeFacts, ...]
    bindings: tuple[BindingFacts, ...]
    nodes: tuple[NodeFacts, ...] | None = None
    permissions: tuple[PermissionFacts, ...] | None = None
    connections: tuple[ConnectionFacts, ...] | None = None
    user: str = ""
    vhost: str = "/"
