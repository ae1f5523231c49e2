"""Work that one process of all that share a store does at a time.

1. The duty is taken: nobody else begins it while the lease lives, nor before it is due again.
   Crash here or later: the lease runs out, and another process begins.
2. The work is done, and the lease is renewed beside it. The work asks the lease before everything that cannot be
   undone, and goes no further once it is lost. What goes wrong is raised; the lease is left to run out, so that
   the next try comes some minutes later, here or elsewhere.
3. The duty is ended, and due again after `every`.
   Crash before: it is done once more, and finds nothing to do.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import structlog

from redrive import faults
from redrive.duration import short
from redrive.errors import RedriveError, Refused
from redrive.telemetry.error_facts import error_facts
from redrive.upkeep.clock_note import JUMP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.stores.duty_store import DutyStore

log = structlog.get_logger("redrive.duty")

T = TypeVar("T")

LEASE = 300.0


class Lease:
    """`at`: the store's time when the duty was taken."""

    def __init__(self, name: str, at: datetime, clock: Clock) -> None:
        self.at = at
        self._name = name
        self._clock = clock
        self._held_until = clock.monotonic() + LEASE

    def renewed(self, since: float) -> None:
        """`since`: when the store was asked, which may have been some time ago."""
        self._held_until = since + LEASE

    def lose(self) -> None:
        self._held_until = self._clock.monotonic()

    def check(self) -> None:
        """Refused if another process may have the duty by now, or will in a moment."""
        if self._clock.monotonic() >= self._held_until:
            raise Refused(
                f"the lease of {self._name} was lost: it stops here, and whoever has it goes on",
                remedy="nothing, unless it happens often: then see why the store answers so slowly",
            )


class Duty:
    """`holder`: a name that no other process has."""

    def __init__(self, name: str, *, store: DutyStore, clock: Clock, holder: str, every: float) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._holder = holder
        self._every = every

    async def look(self, work: Callable[[Lease], Awaitable[T]]) -> T | None:
        """Does the work if it is due and nobody else is at it; None: it is not."""
        asked = self._clock.monotonic()
        at = await self._store.take_duty(self._name, holder=self._holder, every=self._every, lease=LEASE)
        if at is None:
            return None
        faults.point("duty.taken")
        lease = Lease(self._name, at, self._clock)
        lease.renewed(asked)
        try:
            self._compare_clocks(at)
            async with self._held(lease):
                done = await work(lease)
        except asyncio.CancelledError:
            with suppress(RedriveError):  # else it would take the place of the cancellation, and nothing would end
                await self._store.end_duty(self._name, holder=self._holder, done=False)  # so that nobody waits
            raise
        faults.point("duty.before_end")
        await self._store.end_duty(self._name, holder=self._holder, done=True)
        return done

    def _compare_clocks(self, store_time: datetime) -> None:
        """F21: a server has a clock of its own. Of two that differ so much one is wrong, whichever it is."""
        apart = abs((self._clock.now() - store_time).total_seconds())
        if apart > JUMP:
            raise Refused(
                f"the clocks of this machine and of the store are {short(apart)} apart: nothing was changed",
                remedy="set them right",
            )

    @asynccontextmanager
    async def _held(self, lease: Lease) -> AsyncIterator[None]:
        """The lease is renewed meanwhile."""
        holding = asyncio.create_task(self._hold(lease), name=f"redrive-{self._name}-lease")
        try:
            yield
        finally:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)

    async def _hold(self, lease: Lease) -> None:
        while True:
            await self._clock.sleep(LEASE / 3)
            asked = self._clock.monotonic()
            try:
                if not await self._store.hold_duty(self._name, holder=self._holder, lease=LEASE):
                    lease.lose()
                    return
                lease.renewed(asked)
            except RedriveError as error:
                log.warning(
                    "a lease was not renewed, it will be tried again", duty=self._name, **error_facts(error)
                )
