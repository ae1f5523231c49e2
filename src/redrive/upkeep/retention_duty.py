"""Retention by itself: of all processes that look after a store, one does it, once in a while.

1. The duty is taken: nobody else begins it while the lease lives, nor before it is due again.
   Crash here or later: the lease runs out, and another process begins.
2. Retention runs as it does for a person (retention.py), and the lease is renewed beside it. What goes wrong is
   logged; the lease is left to run out, so that the next try comes some minutes later, here or elsewhere.
3. The duty is ended, and due again after `every`.
   Crash before: it is done once more, and finds nothing to do.

Two at once lose nothing, if one was suspended for longer than its lease: an archive's folder has a lock, and a
letter is purged only as it was archived.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from redrive import faults
from redrive.duration import short
from redrive.errors import RedriveError, Refused
from redrive.telemetry.error_facts import error_facts
from redrive.upkeep.clock_note import JUMP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.keeping import KeepRules
    from redrive.stores.duty_store import DutyStore
    from redrive.upkeep.retention import Retained, Retention

log = structlog.get_logger("redrive.retention")

DUTY = "retention"
LEASE = 300.0
LOOK_EVERY = 60.0


class RetentionDuty:
    """`make` gives what carries out one run. `holder`: a name that no other process has."""

    def __init__(
        self,
        rules: KeepRules,
        make: Callable[[], Retention],
        *,
        store: DutyStore,
        clock: Clock,
        holder: str,
        every: float,
        batch: int,
        rate: float | None = None,
    ) -> None:
        self._rules = rules
        self._make = make
        self._store = store
        self._clock = clock
        self._holder = holder
        self._every = every
        self._batch = batch
        self._rate = rate

    async def serve(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
            except RedriveError as error:
                log.warning("retention has not run, it will be tried again", **error_facts(error))
            except Exception as error:  # noqa: BLE001  a task that nobody waits for must not end unseen
                log.error("retention has not run", **error_facts(error))  # noqa: TRY400  no payloads
            await self._clock.sleep(min(self._every, LOOK_EVERY))

    async def look(self) -> Retained | None:
        """One run if it is due and nobody else is at it; None: it is not."""
        store_time = await self._store.take_duty(DUTY, holder=self._holder, every=self._every, lease=LEASE)
        if store_time is None:
            return None
        faults.point("duty.taken")
        try:
            self._compare_clocks(store_time)
            async with self._held():
                done = await self._make().run(self._rules, batch=self._batch, rate=self._rate, attended=False)
        except asyncio.CancelledError:
            await self._store.end_duty(DUTY, holder=self._holder, done=False)  # another one need not wait for it
            raise
        faults.point("duty.before_end")
        await self._store.end_duty(DUTY, holder=self._holder, done=True)
        log.info("retention has run", purged=done.purged, left=done.left, files=done.files)
        return done

    def _compare_clocks(self, store_time: datetime) -> None:
        """F21: a server has a clock of its own. Of two that differ so much one is wrong, whichever it is."""
        apart = abs((self._clock.now() - store_time).total_seconds())
        if apart > JUMP:
            raise Refused(
                f"the clocks of this machine and of the store are {short(apart)} apart: nothing was purged",
                remedy="set them right",
            )

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        """The lease is renewed meanwhile."""
        holding = asyncio.create_task(self._hold(), name="redrive-retention-lease")
        try:
            yield
        finally:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)

    async def _hold(self) -> None:
        held = True
        while held:
            await self._clock.sleep(LEASE / 3)
            try:
                held = await self._store.hold_duty(DUTY, holder=self._holder, lease=LEASE)
            except RedriveError as error:
                log.warning("retention's lease was not renewed, it will be tried again", **error_facts(error))
