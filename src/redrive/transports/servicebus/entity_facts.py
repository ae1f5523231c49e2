"""What Service Bus tells of a queue or a subscription, and of one that is to be made."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec

_YEAR = 365 * 86_400.0
_FOR_EVER = 1000 * _YEAR
"""Azure writes a time span for `never`: the longest that .NET can tell."""


class Kind(StrEnum):
    QUEUE = "queue"
    SUBSCRIPTION = "subscription"
    TOPIC = "topic"


class EntityFacts(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    """Without a subqueue."""
    kind: Kind = Kind.QUEUE
    lock: float = 60.0
    """Seconds, as all times here."""
    most_deliveries: int = 10
    sessions: bool = False
    lives: float | None = None
    """How long a message lives that does not say so itself. None: for ever."""
    keeps_expired: bool = False
    """What expires is dead-lettered; else it is gone."""
    keeps_unfiltered: bool = True
    """What its filter cannot be evaluated for is dead-lettered; else it is gone. Subscriptions only."""
    forwards_to: str = ""
    forwards_dead_to: str = ""
    drops_duplicates: float | None = None
    """A message id that was there so short a time ago is accepted and thrown away. None: none is."""
    deleted_when_idle: float | None = None
    enabled: bool = True
    """It takes messages and gives them."""
    active: int = 0
    scheduled: int = 0
    dead: int = 0
    transfer_dead: int = 0


class EntitySpec(msgspec.Struct, frozen=True, kw_only=True):
    """One that holds messages."""

    name: str
    """Its path."""
    max_delivery_count: int
    lock_duration: float
    sessions: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """As people read them."""
        return {
            **({"RequiresSession": True} if self.sessions else {}),
            "MaxDeliveryCount": self.max_delivery_count,
            "LockDuration": f"{self.lock_duration:g}s",
            "DeadLetteringOnMessageExpiration": True,
        }

    @property
    def options(self) -> dict[str, Any]:
        """As the SDK takes them."""
        return {
            "requires_session": self.sessions,
            "max_delivery_count": self.max_delivery_count,
            "lock_duration": timedelta(seconds=self.lock_duration),
            "dead_lettering_on_message_expiration": True,
        }


class QueueSpec(EntitySpec, frozen=True, kw_only=True):
    pass


class SubscriptionSpec(EntitySpec, frozen=True, kw_only=True):
    pass


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str

    @property
    def arguments(self) -> dict[str, Any]:
        return {}


Spec = QueueSpec | SubscriptionSpec | TopicSpec


def seconds(span: timedelta | None) -> float | None:
    """None: for ever."""
    if span is None:
        return None
    told = span.total_seconds()
    return None if told > _FOR_EVER else told
