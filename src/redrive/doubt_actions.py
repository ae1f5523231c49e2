"""The desk's part about letters in doubt: sent or not, nobody knows, and their run has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.access import Permission
from redrive.dead_letter import Transition
from redrive.pace import Pace
from redrive.redriving import LEASE, Redriver
from redrive.run import WINDOW, Settled
from redrive.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.clock import Clock
    from redrive.dead_letter import Actor, Claim
    from redrive.redriving import Outcome
    from redrive.run import Run
    from redrive.stores import RunStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport


class DoubtActions(Standing):
    _runs: RunStore
    _transport: Transport
    _spans: Spans | None
    _clock: Clock

    async def take_as_sent(self, run: Run, reason: str, *, at_most: int | None = None) -> int:
        """Somebody has looked, and they were sent: REDRIVEN until they come back or are confirmed (T7)."""
        await self._may_everywhere(Permission.REDRIVE)
        by, taken, changed = self._because(reason), 0, 0
        while claims := await self._doubtful(run, WINDOW if at_most is None else min(WINDOW, at_most - taken), by):
            sent = [Settled(claim, Transition.SENT, by.reason) for claim in claims]
            changed += await self._runs.settle_together(sent, by=by, decided=True)
            taken += len(claims)
        return changed

    async def send_again(
        self,
        run: Run,
        *,
        rate: float | None = None,
        at_most: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Outcome]:
        """Under the same redrive ids, so that a copy which was sent and the one to come are known as one (T6)."""
        await self._may_everywhere(Permission.REDRIVE)
        redriver = Redriver(
            store=self._runs,
            transport=self._transport,
            actor=self._by(),
            to_origin=run.plan.to_origin,
            spans=self._spans,
        )

        async def take(number: int) -> list[Claim]:
            return await self._doubtful(run, number, self._by())

        pace = Pace(rate, self._clock)
        return await redriver.send_begun(take, pace=pace, at_most=at_most, on_progress=on_progress)

    async def _doubtful(self, run: Run, at_most: int, by: Actor) -> list[Claim]:
        if not at_most:
            return []
        return await self._runs.take_doubtful(run.id, owner=by.name, at_most=at_most, lease=LEASE, by=by)
