"""How many messages an entity holds. Over HTTP, with rights to manage: what a link may do does not tell it."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Count(msgspec.Struct, frozen=True):
    active: int
    """In peek-lock with somebody or not: the broker does not tell them apart."""
    scheduled: int
    dead_lettered: int
    """In its subqueue."""


class Counts(Protocol):
    async def of(self, entity: str) -> Count | None:
        """None: there is no such entity."""
        ...

    async def close(self) -> None: ...
