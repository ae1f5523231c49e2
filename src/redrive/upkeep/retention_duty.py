"""Retention by itself: of all processes that look after a store, one does it, once in a while (duty.py).

It runs as it does for a person (retention.py). Two at once lose nothing, if one was suspended for longer than its
lease: an archive's folder has a lock, and a letter is purged only as it was archived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from redrive.errors import RedriveError
from redrive.telemetry.error_facts import error_facts
from redrive.upkeep.duty import Duty

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.clock import Clock
    from redrive.keeping import KeepRules
    from redrive.stores.duty_store import DutyStore
    from redrive.upkeep.duty import Lease
    from redrive.upkeep.retention import Retained, Retention

log = structlog.get_logger("redrive.retention")

DUTY = "retention"
LOOK_EVERY = 60.0
NOTE_EVERY = 3600.0
"""So that a machine which is started anew finds a note that is not old."""


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
        self._duty = Duty(DUTY, store=store, clock=clock, holder=holder, every=every)
        self._clock = clock
        self._look_every = min(every, LOOK_EVERY)
        self._batch = batch
        self._rate = rate
        self._note_next = clock.monotonic()

    async def serve(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
                await self._note_clock()
            except RedriveError as error:
                log.warning("retention has not run, it will be tried again", **error_facts(error))
            except Exception as error:  # noqa: BLE001  a task that nobody waits for must not end unseen
                log.error("retention has not run", **error_facts(error))  # noqa: TRY400  no payloads
            await self._clock.sleep(self._look_every)

    async def look(self) -> Retained | None:
        """One run if it is due and nobody else is at it; None: it is not."""
        done = await self._duty.look(self._run)
        if done is not None:
            log.info("retention has run", purged=done.purged, left=done.left, files=done.files)
        return done

    async def _run(self, lease: Lease) -> Retained:
        return await self._make().run(self._rules, batch=self._batch, rate=self._rate, still_ours=lease.check)

    async def _note_clock(self) -> None:
        if self._clock.monotonic() >= self._note_next:
            self._note_next = self._clock.monotonic() + NOTE_EVERY
            await self._make().check_clock(self._rules)
