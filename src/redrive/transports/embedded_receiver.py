"""One `receive` on the embedded broker: what was fetched, and how it waits for more.

1. While fewer than `prefetch` deliveries are unsettled, it leases as many as are missing, in one transaction.
2. While there is plenty, it does so as soon as deliveries are being settled, in the transaction that settles them:
   the next ones are there when they are asked for.
3. Nothing due: it waits until a send, retry or release of this process wakes it, until the next delayed message
   is due by the clock, or for one poll (in the event loop's time), then looks what there is, others' included.
4. Closed or cancelled, it waits for a fetch under way and gives back what was never handed out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from redrive.epoch import moment
from redrive.transports import Delivery
from redrive.transports.embedded_lease import Lease
from redrive.transports.embedded_row import decode_message
from redrive.transports.embedded_table import LEASED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from redrive.clock import Clock
    from redrive.group_commit import GroupCommit
    from redrive.transports.embedded_lease import Leases
    from redrive.transports.embedded_row import Row
    from redrive.transports.embedded_table import MessageTable, Outlook, Place


@dataclass(slots=True)
class Surroundings:
    """What the receivers of one transport share."""

    file: GroupCommit[MessageTable]
    leases: Leases
    clock: Clock
    poll: float
    receivers: dict[str, set[Receiver]] = field(default_factory=dict)
    """Who looks into the queue of that name."""

    def ring(self, name: str) -> None:
        """Something was put into that queue."""
        for receiver in self.receivers.get(name, ()):
            receiver.wake()


class Receiver:
    """A holder of leases: `unsettled` counts what it fetched and nobody has settled."""

    def __init__(self, place: Place, prefetch: int, around: Surroundings) -> None:
        self.unsettled = 0
        self._place = place
        self._prefetch = prefetch
        self._around = around
        self._fetched: deque[tuple[Row, Lease]] = deque()
        self._fetching: asyncio.Task[bool] | None = None
        self._plenty = False
        self._identity = ""
        self._woken = asyncio.Event()
        self._stopped = False

    @property
    def _missing(self) -> int:
        return self._prefetch - self.unsettled

    def wake(self) -> None:
        """Something may be due, or there is room for more."""
        self._woken.set()
        if self._plenty and self._missing > 0 and not self._stopped:
            self._fetch()

    async def deliveries(self) -> AsyncGenerator[Delivery]:
        for name in self._place:
            self._around.receivers.setdefault(name, set()).add(self)
        try:
            while not self._stopped:
                while self._fetched:
                    row, lease = self._fetched.popleft()
                    if lease.lost:
                        self._around.leases.settle(lease)
                    else:
                        yield self._delivery(row, lease)
                await self._replenish()
        finally:
            for name in self._place:
                self._around.receivers[name].discard(self)
            await self._give_back(await self.stop())

    async def stop(self) -> list[Lease]:
        """Ends the iterator. Gives what was fetched and not handed out, still leased. Safe to repeat."""
        self._stopped = True
        self.wake()
        if self._fetching is not None and not self._fetching.done():
            await asyncio.wait({self._fetching})
        unused = [lease for _, lease in self._fetched]
        self._fetched.clear()
        return unused

    async def _give_back(self, unused: list[Lease]) -> None:
        for lease in unused:
            self._around.leases.settle(lease)
        if unused:
            await self._around.file.run(lambda table: table.release(unused))
            for name in self._place:
                self._around.ring(name)

    async def _replenish(self) -> None:
        self._woken.clear()
        if self._missing <= 0:
            await self._woken.wait()
        elif not await asyncio.shield(self._fetch()):
            await self._until_due()

    def _fetch(self) -> asyncio.Task[bool]:
        """The fetch under way, or a new one. A task of its own: rows leased after its receiver was cancelled must
        be known, or they would wait until their lease runs out.
        """
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._lease_missing())
            self._fetching.add_done_callback(_excuse)
        return self._fetching

    async def _lease_missing(self) -> bool:
        leases = self._around.leases
        await leases.renew_if_late()
        now, missing = leases.now(), self._missing
        if missing <= 0:  # an ack that failed has taken its place again; SQLite reads -1 as no limit
            return False
        fetched = await self._around.file.run(
            lambda table: table.lease(self._place, now=now, until=now + leases.span, limit=missing)
        )
        self._identity = f"embedded:{fetched.broker}:"
        self._plenty = len(fetched.rows) == missing
        for row in fetched.rows:
            lease = Lease(row.id, fetched.token + row.id, row.due_at, now, self)
            leases.take(lease)
            self._fetched.append((row, lease))
        self._woken.set()
        return bool(fetched.rows)

    async def _until_due(self) -> None:
        while not self._stopped and not self._fetched:
            self._woken.clear()
            outlook = await self._around.file.look(self._peek)
            if outlook.due:
                return
            await self._pause(outlook.next_due)

    def _peek(self, table: MessageTable) -> Outlook:
        return table.peek(self._place, self._around.leases.now())

    async def _pause(self, next_due: int | None) -> None:
        poll = asyncio.get_running_loop().call_later(self._around.poll, self.wake)
        alarm = None if next_due is None else asyncio.create_task(self._sleep_until(next_due))
        try:
            await self._woken.wait()
        finally:
            poll.cancel()
            if alarm is not None:
                alarm.cancel()

    async def _sleep_until(self, due: int) -> None:
        await self._around.clock.sleep(max(due - self._around.leases.now(), 0) / 1_000_000)
        self.wake()

    def _delivery(self, row: Row, lease: Lease) -> Delivery:
        first = row.first_attempt_at
        return Delivery(
            message=decode_message(row),
            queue=self._place.queue,
            identity=f"{self._identity}{row.id}",
            attempt=row.attempt,
            redelivered=row.state == LEASED,
            first_attempt_at=None if first is None else moment(first),
            trail=row.trail,
            receipt=lease,
            due_since=moment(row.due_at),
        )


def _excuse(fetching: asyncio.Task[bool]) -> None:
    # One that failed ahead of time needs no complaint: the next is asked for by the iterator, which complains.
    if not fetching.cancelled():
        fetching.exception()
