"""What keeps a run from doing harm: the canary before it goes on, and the brakes while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from redrive.errors import Unreachable

if TYPE_CHECKING:
    from redrive.clock import Clock
    from redrive.run import Run
    from redrive.stores import RunStore
    from redrive.transports import Transport


class Verdict(NamedTuple):
    good: bool
    why: str = ""


class Brakeman:
    """For one engine's share of one run."""

    def __init__(self, run: Run, *, store: RunStore, transport: Transport, clock: Clock) -> None:
        self._brakes = run.plan.brakes
        self._store = store
        self._transport = transport
        self._clock = clock
        self._errors = 0

    def canary(self, run: Run) -> Verdict | None:
        """Whether the step that was sent is good. None: its outcomes are still waited for."""
        told, canary = run.progress, run.plan.canary
        if told.in_hand or (told.without_word and not self._waited(run)):
            return None
        share = told.came_back / told.sent if told.sent else 0.0
        if share <= canary.at_most_back:
            return Verdict(good=True)
        return Verdict(
            good=False,
            why=f"canary: {told.came_back} of {told.sent} came back, {canary.at_most_back:.0%} are allowed",
        )

    def _waited(self, run: Run) -> bool:
        last = run.progress.last_sent_at
        return last is None or (self._clock.now() - last).total_seconds() >= run.plan.canary.wait

    def sent(self) -> None:
        self._errors = 0

    def failed(self, error: Exception) -> str | None:
        """Why the run has to pause, if it has."""
        self._errors += 1
        if self._brakes.publish_errors is None or self._errors != self._brakes.publish_errors:
            return None
        remedy = getattr(error, "remedy", "")
        why = f"{str(error) or type(error).__name__}{f' ({remedy})' if remedy else ''}"
        return f"{self._errors} publish error{'' if self._errors == 1 else 's'} in a row: {why}"

    async def pull(self, run: Run) -> str | None:
        """Why the run has to pause, if it has: what comes back, what waits in the target."""
        return await self._too_much_back(run) or await self._too_much_waits(run)

    async def _too_much_back(self, run: Run) -> str | None:
        if self._brakes.came_back is None:
            return None
        # Since its last change: whoever resumes a run that was paused for this has decided about those.
        known, back = await self._store.recent_outcomes(run.id, self._brakes.window, since=run.changed_at)
        if back <= self._brakes.came_back * self._brakes.window:
            return None
        return f"{back} of the last {known} outcomes came back"

    async def _too_much_waits(self, run: Run) -> str | None:
        limit, target = self._brakes.backlog, run.plan.target or run.plan.selection.queue
        if limit is None or target is None:
            return None
        try:
            depth = (await self._transport.depths((target,))).get(target)
        except Unreachable:
            return None  # sending will meet it too
        if depth is None or depth.ready <= limit:
            return None
        return f"{depth.ready} messages wait in {target!r}, more than {limit}"
