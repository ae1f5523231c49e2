"""What a process holds of the embedded broker, and the heartbeat that keeps it.

1. A lease begins when its row is fetched and ends when the delivery is settled.
2. Every third of its time the heartbeat moves the end of all leases ahead, in one transaction. It beats by the
   event loop's own time, for it shows that this process lives; the new end is reckoned by the broker's clock.
3. Before each fetch the same is done if it is late by the clock, so that a process which stood still does not
   take its own messages for a dead one's.
4. A row that somebody else has taken is not moved: the lease is lost, and whoever handles it is told.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.transports import LostLeases


class Holder(Protocol):
    """Who fetched a lease."""

    unsettled: int

    def wake(self) -> None: ...


@dataclass(slots=True, eq=False)
class Lease:
    row_id: int
    receipt: int
    due_at: int
    """When the row was due before it was leased: its place in the order, should it be given back."""
    leased_at: int
    holder: Holder
    lost: bool = False


class Leases:
    """The unsettled leases of one transport, each for `span` microseconds. `extend` moves the end of some to a
    moment, and gives the receipts of those still held. `lost` is told of those that are not.
    """

    def __init__(
        self,
        span: int,
        *,
        now: Callable[[], int],
        extend: Callable[[list[Lease], int], Awaitable[set[int]]],
        lost: LostLeases,
    ) -> None:
        self.span = span
        self._lost = lost
        self.now = now
        self._extend = extend
        self._held: set[Lease] = set()
        self._renewed_at = 0
        self._beating: asyncio.Task[None] | None = None

    def take(self, lease: Lease) -> None:
        if not self._held:
            self._renewed_at = lease.leased_at
        self._held.add(lease)
        lease.holder.unsettled += 1
        if self._beating is None or self._beating.done():  # done: it ended with an earlier event loop
            self._beating = asyncio.create_task(self._beat())

    def settle(self, lease: Lease) -> bool:
        """It is no longer ours to keep, and its holder may fetch another. Whether it was ours."""
        if lease not in self._held:
            return False
        self._held.remove(lease)
        lease.holder.unsettled -= 1
        lease.holder.wake()
        return True

    def held(self) -> list[Lease]:
        return [lease for lease in self._held if not lease.lost]

    async def renew_if_late(self) -> None:
        if self._held and self.now() - self._renewed_at >= self.span // 3:
            await self.renew()

    async def renew(self) -> None:
        """Extends what is held, and marks what somebody else has."""
        held, now = self.held(), self.now()
        if not held:
            return
        kept = await self._extend(held, now + self.span)
        self._renewed_at = now
        for lease in held:
            lease.lost = lease.receipt not in kept
            if lease.lost and lease in self._held:  # it may have been settled meanwhile
                self._lost.tell(lease)

    async def stop(self) -> None:
        if self._beating is not None and not self._beating.done():
            self._beating.cancel()
            await asyncio.wait({self._beating})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.span / 3_000_000)
            # Two more beats come before a lease runs out; if all fail, running out is what leases are for.
            with contextlib.suppress(Exception):
                await self.renew()
