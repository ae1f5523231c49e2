"""A broker that moves its own dead letters back, all of a queue at once: what it is asked, and what it tells.

A driver that has it gives its `Mover` by a method `mover`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec


class MoveState(StrEnum):
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"

    @property
    def is_over(self) -> bool:
        return self not in {MoveState.RUNNING, MoveState.CANCELLING}


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One that was begun, and how far it is."""

    queue: str
    """Whose dead letters are moved."""
    after: int = 0
    """When the one before it began, by the broker's clock: this is the first that began later."""
    seen: bool = False
    """The broker has told of it."""
    handle: str = ""
    """By which the broker knows it, as long as it can be cancelled."""
    state: MoveState = MoveState.RUNNING
    moved: int = 0
    """About."""
    total: int | None = None
    """About, when it began. None: the broker does not tell."""
    why: str = ""
    """It failed, as the broker says."""


class Movable(msgspec.Struct, frozen=True, kw_only=True):
    """A dead-letter queue, as it is before anything is moved."""

    queue: str
    ready: int
    """Messages, about."""
    in_other_hands: int
    targets: tuple[str, ...]
    """The queues that have their dead letters there: each message goes back to the one it came from."""
    under_way: Move | None = None
    """Somebody's, which has not ended. There is one at a time."""


class Mover(Protocol):
    """Every method raises Unreachable when the broker is away."""

    fastest: int
    """Messages per second: no higher rate can be asked for."""

    async def movable(self, queue: str) -> Movable:
        """NotFound if there is no such queue."""
        ...

    async def start(self, queue: str, *, rate: int | None) -> Move:
        """Refused if the broker will not: nothing is moved then. Unreachable: it may have begun."""
        ...

    async def look(self, move: Move) -> Move: ...

    async def cancel(self, move: Move) -> None:
        """Asked for; `look` tells when it is so. What was moved stays where it is. Nothing happens if it is
        over.
        """
        ...
