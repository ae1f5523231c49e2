"""Alerts by themselves: of all servers of a store, one looks, judges and tells.

1. The duty is taken, or kept: for `LEASE` nobody else judges. Whoever cannot hand over gives it back.
2. What an earlier round has decided and not handed over is handed over.
3. Numbers, groups, runs and processes are looked at, and rules judged by them (alerts/judging.py).
4. Incidents are saved with the messages that follow, if the duty is still held: durable.
   Crash here: the messages lie in the store; whoever comes next begins with 2.
5. Messages are handed over to the outbox of this machine: durable, and the same one twice is one.
6. The incidents forget their messages.
   Crash before: the message is handed over once more. Another machine has another outbox: it is told twice there,
   with one id.

Nothing of this is on the way of a message: a channel that is slow holds up its courier, a store that is slow this.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from redrive import faults
from redrive.alerts.conditions import SILENT_AFTER, conditions
from redrive.alerts.explaining import SLACK
from redrive.alerts.incident import handed_over
from redrive.alerts.judging import LOOKED_AT, judge
from redrive.alerts.observed import MOST_RECENT, Observed
from redrive.alerts.rule import BY_QUEUE, SAMPLED, RuleKind
from redrive.errors import RedriveError, Unreachable
from redrive.reporting import REPORT_EVERY
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from redrive.alerts.alert import Alert
    from redrive.alerts.incident import Incident
    from redrive.alerts.observed import EndedRun, Sample
    from redrive.alerts.rule import AlertRule
    from redrive.alerts.store_watch import StoreWatch
    from redrive.clock import Clock
    from redrive.dead_letter import FailureGroup
    from redrive.privacy.maskers import Maskers
    from redrive.stores import Store

log = structlog.get_logger("redrive.alerts")

DUTY = "alerts"
LEASE = 60.0
KEPT = timedelta(days=30)
"""Incidents that are over, and what was said of spools that nobody uses any more."""
MISSED_FOR = timedelta(days=1)
"""Processes that say nothing any more; then nobody expects them."""

_SAMPLES, _MOST_SAMPLES = 120, 1000
_PATIENCE = 5.0
"""Seconds for the last word: a store that is away holds up nobody's end."""
_SEEN_GROUPS = 200


class Watch:
    """`tell` hands a message over, for these channels (none of them: all; None: those of its rule). `holder`: a
    name that no other process has. `every`: seconds from one round to the next.
    """

    def __init__(
        self,
        rules: Sequence[AlertRule],
        *,
        store: Store,
        tell: Callable[[Alert, Collection[str] | None], Awaitable[None]],
        masks: Maskers,
        clock: Clock,
        holder: str,
        every: float,
        store_watches: Sequence[StoreWatch] = (),
    ) -> None:
        self._rules = tuple(rules)
        self._store = store
        self._tell = tell
        self._masks = masks
        self._clock = clock
        self._holder = holder
        self._every = every
        self._store_watches = tuple(store_watches)
        self._lease = max(LEASE, 4 * every)
        self._sits_out_until = float("-inf")
        self._looked_at: datetime | None = None
        self._steady_since: datetime | None = None
        # What is over is remembered for as long as it may not be told again, or be taken for new again.
        self._remembered = timedelta(seconds=max((max(each.flood, each.window) for each in rules), default=0.0))

    async def serve(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                await self._round()
                await self._clock.sleep(self._every)
        finally:
            await self._leave()

    async def _round(self) -> None:
        try:
            await self.look()
        except Unreachable as error:
            log.warning("alerts were not looked at: the store is away", **error_facts(error))
            await self._store_failed()
        except Exception as error:  # noqa: BLE001  a task that nobody waits for must not end unseen
            log.error("alerts were not looked at", **error_facts(error))  # noqa: TRY400  no payloads

    async def _store_failed(self) -> None:
        self._steady_since = None
        for each in self._store_watches:
            await self._quietly("nobody could be told that the store is away", each.failed())

    async def _store_answered(self) -> None:
        for each in self._store_watches:
            await self._quietly("nobody could be told that the store is back", each.answered())

    async def _quietly(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001  an outbox that fails is no store that fails
            log.error(what, **error_facts(error))  # noqa: TRY400  no payloads

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._store.end_duty(DUTY, holder=self._holder, done=False)  # nobody has to wait for it
        except (RedriveError, TimeoutError) as error:
            log.warning("the duty of alerts was not given back", **error_facts(error))

    async def look(self) -> list[Incident] | None:
        """One round: the incidents that changed. None: another server sees to it."""
        if self._clock.monotonic() < self._sits_out_until:
            return None
        now = await self._store.take_duty(DUTY, holder=self._holder, every=0.0, lease=self._lease)
        await self._store_answered()
        if now is None:
            self._steady_since = None
            return None
        steady = self._is_steady(now)
        known = await self._store.incidents_to_judge(since=now - self._remembered)
        known = await self._hand_over(known)
        observed = await self._observe(now, known, steady=steady)
        found = await self._save(judge(self._rules, observed, known, mask=self._masks.general.text))
        faults.point("alerts.saved")
        await self._hand_over(found)
        await self._store.forget_incidents(before=now - KEPT)
        return found

    def _is_steady(self, now: datetime) -> bool:
        """Whether rounds have followed each other for long enough that everybody alive has reported meanwhile."""
        last, self._looked_at = self._looked_at, now
        gap = None if last is None else (now - last).total_seconds()
        if self._steady_since is None or gap is None or not 0 <= gap <= 3 * self._every + REPORT_EVERY:
            self._steady_since = now
        return (now - self._steady_since).total_seconds() >= SILENT_AFTER + REPORT_EVERY

    async def _hand_over(self, incidents: Sequence[Incident]) -> list[Incident]:
        """All of them, without the messages that were handed over now."""
        untold = [each for each in incidents if each.message is not None]
        # Whoever was suspended meanwhile must not tell after another one what that one knows better.
        if not untold or not await self._store.hold_duty(DUTY, holder=self._holder, lease=self._lease):
            return list(incidents)
        done = [handed_over(each) for each in untold if await self._told(each)]
        faults.point("alerts.handed_over")
        saved = {each.key: each for each in await self._save(done)}
        if len(done) < len(untold):
            await self._sit_out()
        return [saved.get(each.key, each) for each in incidents]

    async def _told(self, incident: Incident) -> bool:
        if incident.message is None:
            return True
        try:
            await self._tell(incident.message, incident.channels)
        except RedriveError as error:
            log.error("an alert could not be put into the outbox, it will be tried again", **error_facts(error))  # noqa: TRY400  no payloads
            return False
        return True

    async def _sit_out(self) -> None:
        """Another server may have an outbox that works."""
        self._sits_out_until = self._clock.monotonic() + self._lease
        await self._leave()

    async def _save(self, changed: Sequence[Incident]) -> list[Incident]:
        if not changed:
            return []
        return await self._store.save_incidents(changed, duty=DUTY, holder=self._holder)

    # What rules look at

    async def _observe(self, now: datetime, known: Sequence[Incident], *, steady: bool) -> Observed:
        new = {
            window: await self._store.new_groups(now - timedelta(seconds=window), limit=LOOKED_AT)
            for window in self._windows(RuleKind.NEW_GROUP)
        }
        returned = {
            window: await self._store.returned_groups(now - timedelta(seconds=window), limit=LOOKED_AT)
            for window in self._windows(RuleKind.RETURNING_GROUP)
        }
        recent = {window: await self._recent(now, window) for window in self._windows(RuleKind.ACCELERATING_GROUP)}
        critical = await self._store.critical_groups(limit=LOOKED_AT) if self._has(RuleKind.CRITICAL) else {}
        firing = [each.group_id for each in known if each.is_firing and each.group_id]
        named = [*firing, *critical, *_most(recent)]
        named += [each for found in new.values() for each in found.ids]
        named += [each for found in returned.values() for each in found]
        observed = Observed(
            at=now,
            samples=await self._samples(),
            oldest={
                rule.queues: await self._store.oldest_open(within=rule.queues or None)
                for rule in self._rules
                if rule.kind is RuleKind.AGE
            },
            new=new,
            returned=returned,
            recent=recent,
            critical=critical,
            groups=await self._groups(named),
            runs=await self._failed_runs(now),
            processes=tuple(await self._store.processes(since=now - MISSED_FOR, spools_since=now - KEPT)),
            steady=steady,
        )
        too_many = {
            rule.window for rule in self._rules if rule.kind in BY_QUEUE and conditions(rule, observed, ())
        }
        lately = {window: await self._recent(now, window + SLACK) for window in too_many}
        return replace(observed, lately=lately)

    async def _recent(self, now: datetime, seconds: float) -> Mapping[str, int]:
        return await self._store.recent_by_group(now - timedelta(seconds=seconds), at_most=MOST_RECENT)

    def _windows(self, *kinds: RuleKind) -> set[float]:
        return {rule.window for rule in self._rules if rule.kind in kinds}

    def _has(self, kind: RuleKind) -> bool:
        return any(rule.kind is kind for rule in self._rules)

    async def _samples(self) -> tuple[Sample, ...]:
        windows = self._windows(*SAMPLED)
        if not windows:
            return ()
        longest, shortest = max(windows), min(windows)
        every = max(min(longest / _SAMPLES, shortest / 10), longest / _MOST_SAMPLES)
        # One that lies before the longest window is needed too.
        return tuple(await self._store.take_sample(keep=longest + 2 * (every + self._every), every=every))

    async def _groups(self, ids: Sequence[str]) -> dict[str, FailureGroup]:
        found = await self._store.groups_named(ids) if ids else {}
        return {group_id: self._masks.for_queue(group.queue).group(group) for group_id, group in found.items()}

    async def _failed_runs(self, now: datetime) -> tuple[EndedRun, ...]:
        windows = self._windows(RuleKind.FAILED_RUN)
        if not windows:
            return ()
        since = now - timedelta(seconds=max(windows))
        return tuple(await self._store.failed_runs(since=since, limit=LOOKED_AT))


def _most(recent: Mapping[float, Mapping[str, int]]) -> list[str]:
    """Groups with the most letters, of all windows."""
    found: list[str] = []
    for by_group in recent.values():
        found += sorted(by_group, key=lambda each: -by_group[each])[:_SEEN_GROUPS]
    return found
