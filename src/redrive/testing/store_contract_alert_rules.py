"""Rules of alerts on what a store really tells: each kind is so when it should be, and not before."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from redrive.alerts.observed import ProcessReport, ProcessRole
from redrive.alerts.rule import DEFAULTS, RuleKind
from redrive.privacy.maskers import Maskers
from redrive.run import RunChange
from redrive.testing.letters import NOON, a_group, an_entry
from redrive.testing.store_case import ANN, StoreCase
from redrive.testing.store_runs import a_plan, recorded
from redrive.watching import Watch

if TYPE_CHECKING:
    from redrive.stores import Store
    from redrive.testing.clock import ManualClock

EVERY = 15.0


class Looking:
    """Somebody who looks at one rule again and again."""

    def __init__(self, store: Store, clock: ManualClock, kind: RuleKind, **given: Any) -> None:
        self._store = store
        self._clock = clock
        self._holder = str(kind)
        self._watch = Watch(
            [replace(DEFAULTS[kind], **given)],
            store=store,
            tell=_nobody,
            masks=Maskers(),
            clock=clock,
            holder=self._holder,
            every=EVERY,
        )

    async def after(self, seconds: float = 0.0) -> list[str]:
        """The keys of what is so after so long; meanwhile it was looked as often as is usual."""
        for _ in range(int(seconds // EVERY)):
            self._clock.advance(EVERY)
            await self._watch.look()
        self._clock.advance(seconds % EVERY)
        await self._watch.look()
        found = [each.key for each in await self._store.incidents(firing=True)]
        await self._store.end_duty("alerts", holder=self._holder, done=False)
        return found


async def _nobody(_alert: object, _channels: object) -> None:
    return None


class AlertRuleContract(StoreCase):
    async def test_numbers_of_letters_are_told_when_they_are_too_many(
        self, store: Store, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON)
        growth = Looking(store, clock, RuleKind.GROWTH, threshold=2)
        assert await growth.after() == []
        await store.record_together([an_entry(at=NOON) for _ in range(3)])
        assert await growth.after(30) == ["growth"]
        clock.advance(3600)
        assert await growth.after() == []

        pending = Looking(store, clock, RuleKind.PENDING, threshold=2, window=60.0)
        assert await pending.after(75) == ["pending"]
        assert await Looking(store, clock, RuleKind.PENDING, threshold=3, window=60.0).after(75) == []

        assert await Looking(store, clock, RuleKind.AGE, window=7200.0).after() == []
        clock.set_wall(NOON + timedelta(seconds=7201))
        assert await Looking(store, clock, RuleKind.AGE, window=7200.0).after() == ["age"]

    async def test_a_cause_that_accelerates_and_a_run_that_failed_are_told(
        self, store: Store, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON)
        faster = Looking(store, clock, RuleKind.ACCELERATING_GROUP, at_least=3)
        await store.record_together([an_entry(group="a", at=NOON - timedelta(hours=each)) for each in (5, 0, 0)])
        assert await faster.after() == []
        await store.record(an_entry(group="a", at=NOON))
        assert await faster.after() == [f"accelerating_group/{a_group('a').id}"]

        failed = Looking(store, clock, RuleKind.FAILED_RUN)
        assert await failed.after() == []
        await recorded(store, 1)
        run = await store.create_run(a_plan(), by=ANN)
        await store.change_run(run.id, RunChange.FAIL, by=ANN)
        assert await failed.after() == [f"failed_run/{run.id}"]

    async def test_processes_that_are_gone_and_spools_in_use_are_told(
        self, store: Store, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON)
        report = ProcessReport(id="c", role=ProcessRole.COLLECTOR, host="h1", pid=1, queues=("orders",))
        worker = replace(report, id="w", role=ProcessRole.WORKER, queues=("mails",))
        await store.report(report)
        await store.report(replace(worker, spool="/spool", spooled_bytes=70, spooled_for=0.0))

        assert await Looking(store, clock, RuleKind.COLLECTOR_DOWN).after(120) == []
        assert await Looking(store, clock, RuleKind.COLLECTOR_DOWN).after(90) == ["collector_down/orders"]
        assert await Looking(store, clock, RuleKind.WORKER_DOWN).after(90) == ["worker_down/mails"]
        assert await Looking(store, clock, RuleKind.SPOOL).after(90) == ["spool/h1"]
        await store.report(replace(worker, id="w2"))
        await store.report(replace(worker, id="w3", spool="/spool"))
        assert await Looking(store, clock, RuleKind.SPOOL).after(90) == []
