"""What rules of alerts look at, incidents, and what processes report of themselves."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from msgspec.structs import replace

from redrive.alerts.alert import Alert, Severity, State
from redrive.alerts.incident import Incident, IncidentChange, IncidentStatus
from redrive.alerts.observed import Attempts, ProcessReport, ProcessRole
from redrive.clock import new_id
from redrive.dead_letter import Status
from redrive.errors import NotFound, Refused, UsageError
from redrive.failure import FailureKind
from redrive.run import RunChange, RunStatus
from redrive.statistics import HandlerTally
from redrive.testing.letters import NOON, a_failure, a_group, an_entry
from redrive.testing.store_case import ANN, StoreCase, place
from redrive.testing.store_runs import a_plan, recorded

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore, Store
    from redrive.testing.clock import ManualClock

HOUR = 3600.0


def _alerts(store: DeadLetterStore) -> Store:
    return cast("Store", store)


def an_incident(key: str = "pending", **facts: Any) -> Incident:
    usual: dict[str, Any] = {
        "id": new_id(),
        "rule": key.partition("/")[0],
        "severity": Severity.WARNING,
        "status": IncidentStatus.FIRING,
        "title": "1,001 dead letters are pending",
        "counts": {"pending": 1001},
        "since": NOON,
        "changed_at": NOON,
    }
    return Incident(key=key, **(usual | facts))


def a_message(incident: Incident) -> Alert:
    return Alert(
        id=new_id(),
        dedup_key=incident.key,
        rule=incident.rule,
        severity=incident.severity,
        state=State.RAISED,
        title=incident.title,
        since=incident.since,
        at=incident.since,
    )


async def saved(store: DeadLetterStore, *incidents: Incident, holder: str = "ann") -> list[Incident]:
    await _alerts(store).take_duty("alerts", holder=holder, every=0.0, lease=60.0)
    return await _alerts(store).save_incidents(incidents, duty="alerts", holder=holder)


class ObservingContract(StoreCase):
    async def test_a_sample_holds_what_is_pending_what_came_and_what_handlers_did(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        for status in (Status.PENDING, Status.QUARANTINED, Status.RESOLVED):
            await place(store, status)
        await store.record(an_entry(queue="mails"))
        await store.tally([HandlerTally("charge", "orders", 5, 2)])

        (sample,) = await _alerts(store).take_sample(keep=HOUR, every=60.0)

        assert (sample.at, sample.pending) == (clock.now(), {"orders": 1, "mails": 1})
        assert sample.received == {"orders": 3, "mails": 1}
        assert sample.attempts == (Attempts("charge", "orders", 5, 2),)

    async def test_samples_are_kept_for_others_and_not_for_ever(
        self, store: DeadLetterStore, other: DeadLetterStore, clock: ManualClock
    ) -> None:
        first = clock.now()
        await _alerts(store).take_sample(keep=HOUR, every=60.0)
        clock.advance(30)
        await _alerts(store).take_sample(keep=HOUR, every=60.0)  # too soon to be kept
        clock.advance(30)
        found = await _alerts(other).take_sample(keep=HOUR, every=60.0)
        assert [each.at for each in found] == [first, clock.now()]

        clock.advance(HOUR)
        found = await _alerts(store).take_sample(keep=HOUR, every=60.0)
        assert [(clock.now() - each.at).total_seconds() for each in found] == [HOUR, 0]

    async def test_samples_of_a_clock_that_was_ahead_are_not_compared_with(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON + timedelta(days=400))
        await _alerts(store).take_sample(keep=HOUR, every=60.0)
        clock.set_wall(NOON)

        assert [each.at for each in await _alerts(store).take_sample(keep=HOUR, every=60.0)] == [NOON]

    async def test_letters_of_the_last_time_are_counted_by_group(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON)
        for minutes, name in ((10, "old"), (5, "a"), (4, "a"), (0, "b")):
            await store.record(an_entry(at=NOON - timedelta(minutes=minutes), group=name))
        since = NOON - timedelta(minutes=5)

        found = await _alerts(store).recent_by_group(since, at_most=100)
        assert sorted(found.values()) == [1, 2]
        assert sum((await _alerts(store).recent_by_group(since, at_most=2)).values()) == 2

    async def test_groups_of_critical_letters_are_those_with_open_ones(self, store: DeadLetterStore) -> None:
        critical = (a_failure(kind=FailureKind.CRITICAL),)
        for status in (Status.PENDING, Status.QUARANTINED, Status.RESOLVED):
            await place(store, status, an_entry(failures=critical, group="bad"))
        await place(store, Status.DISCARDED, an_entry(failures=critical, group="gone"))
        await store.record(an_entry(group="usual"))

        found = await _alerts(store).critical_groups(limit=10)
        assert list(found.values()) == [2]
        named = await _alerts(store).groups_named([*found, "nobody"])
        assert [each.pending for each in named.values()] == [1]

    async def test_the_oldest_open_letter_is_that_of_the_scope(self, store: DeadLetterStore) -> None:
        assert await _alerts(store).oldest_open() is None
        await place(store, Status.RESOLVED, an_entry(at=NOON - timedelta(days=9)))
        await store.record(an_entry(at=NOON - timedelta(days=3)))
        await store.record(an_entry(at=NOON - timedelta(days=1), queue="mails"))

        assert await _alerts(store).oldest_open() == NOON - timedelta(days=3)
        assert await _alerts(store).oldest_open(within=("mai*",)) == NOON - timedelta(days=1)

    async def test_runs_that_failed_or_were_stopped_are_told_by_when_they_ended(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        await recorded(_alerts(store), 1)
        ended = {}
        for change in (RunChange.FAIL, RunChange.STOP, RunChange.CANCEL, RunChange.FAIL):
            run = await _alerts(store).create_run(a_plan(), by=ANN)
            clock.advance(60)
            await _alerts(store).change_run(run.id, change, by=ANN)
            ended[run.id] = change
        since = clock.now() - timedelta(seconds=170)  # behind the end of the first

        found = await _alerts(store).failed_runs(since=since, limit=10)
        assert [(each.id, each.status) for each in found] == [
            (run_id, RunStatus.STOPPED if change is RunChange.STOP else RunStatus.FAILED)
            for run_id, change in reversed(list(ended.items())[1:])
            if change is not RunChange.CANCEL
        ]


class IncidentContract(StoreCase):
    async def test_an_incident_comes_back_as_it_was_saved(self, store: DeadLetterStore) -> None:
        incident = an_incident(queue="orders", group_id="g1", snoozed_until=NOON + timedelta(days=1), held=True)
        incident = replace(incident, message=a_message(incident))
        (kept,) = await saved(store, incident)

        assert kept == replace(incident, revision=1)
        assert await _alerts(store).incidents() == [kept]
        assert await _alerts(store).incident(incident.id) == kept
        assert await _alerts(store).incident(incident.id[:13]) == kept

    async def test_only_whoever_has_the_duty_saves_incidents(
        self, store: DeadLetterStore, other: DeadLetterStore, clock: ManualClock
    ) -> None:
        assert await saved(store, an_incident())
        clock.advance(61)
        await _alerts(other).take_duty("alerts", holder="bob", every=0.0, lease=60.0)

        assert not await _alerts(store).save_incidents([an_incident("rate")], duty="alerts", holder="ann")
        assert [each.key for each in await _alerts(store).incidents()] == ["pending"]

    async def test_what_somebody_changed_meanwhile_is_not_written_over(self, store: DeadLetterStore) -> None:
        first, second = await saved(store, an_incident("a"), an_incident("b"))
        await _alerts(store).change_incident(first.id, IncidentChange.ACKNOWLEDGE, by=ANN)

        (kept,) = await saved(store, replace(first, title="x"), replace(second, title="y"))

        assert kept.title == "y"
        assert {each.key: each.title == first.title for each in await _alerts(store).incidents()} == {
            "a": True,
            "b": False,
        }

    async def test_what_was_over_and_not_looked_at_begins_anew_and_what_fires_does_not(
        self, store: DeadLetterStore
    ) -> None:
        over = an_incident(status=IncidentStatus.RESOLVED)
        await saved(store, over)
        (again,) = await saved(store, an_incident())

        assert again.id != over.id
        assert not await saved(store, an_incident())
        assert [each.id for each in await _alerts(store).incidents()] == [again.id]

    async def test_to_be_judged_is_what_fires_is_held_snoozed_or_untold_or_changed_lately(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        clock.set_wall(NOON + timedelta(days=2))
        over = {"status": IncidentStatus.RESOLVED}
        untold = an_incident("untold", **over)
        await saved(
            store,
            an_incident("fires"),
            an_incident("held", held=True, **over),
            an_incident("snoozed", snoozed_until=NOON + timedelta(days=3), **over),
            an_incident("was snoozed", snoozed_until=NOON + timedelta(days=1), **over),
            replace(untold, message=a_message(untold)),
            an_incident("lately", changed_at=NOON + timedelta(days=1), **over),
            an_incident("long ago", **over),
        )

        found = await _alerts(store).incidents_to_judge(since=NOON + timedelta(days=1))
        assert {each.key for each in found} == {"fires", "held", "snoozed", "untold", "lately"}
        assert await _alerts(store).forget_incidents(before=NOON + timedelta(days=2)) == 3
        assert {each.key for each in await _alerts(store).incidents()} == {"fires", "held", "snoozed", "untold"}

    async def test_what_fires_is_listed_first_and_then_the_last_change(self, store: DeadLetterStore) -> None:
        over = {"status": IncidentStatus.RESOLVED, "changed_at": NOON + timedelta(hours=9)}
        later = {"changed_at": NOON + timedelta(hours=1)}
        await saved(store, an_incident("a"), an_incident("b", **later), an_incident("c", **over))

        assert [each.key for each in await _alerts(store).incidents()] == ["b", "a", "c"]
        assert [each.key for each in await _alerts(store).incidents(firing=True, limit=1)] == ["b"]

    async def test_what_is_about_a_queue_is_there_for_those_who_may_know_of_it(
        self, store: DeadLetterStore
    ) -> None:
        of_all, of_orders, of_mails = await saved(
            store, an_incident("a"), an_incident("b", queue="orders"), an_incident("c", queue="mails")
        )
        alerts = _alerts(store)

        assert await alerts.incidents(within=("ord*",)) == [of_orders]
        assert await alerts.incident(of_orders.id, within=("ord*",)) == of_orders
        assert await alerts.incident(of_mails.id, within=("ord*",)) is None
        assert await alerts.incident(of_all.id, within=("ord*",)) is None

    async def test_what_is_about_a_group_of_several_queues_is_for_those_who_may_know_of_all(
        self, store: DeadLetterStore
    ) -> None:
        for queue, name in (("orders", "a"), ("bills", "b")):
            await store.record(an_entry(queue=queue, group=name))
        one, other = a_group("a").id, a_group("b").id
        (kept,) = await saved(store, an_incident("new_group/a", queue="orders", group_id=one))
        assert await _alerts(store).incidents(within=("orders",)) == [kept]

        await store.merge(one, [other], by=ANN)
        assert await _alerts(store).incidents(within=("orders",)) == []
        assert await _alerts(store).incident(kept.id, within=("orders",)) is None
        assert await _alerts(store).incidents(within=("orders", "bills")) == [kept]

    async def test_people_acknowledge_snooze_and_resolve(self, store: DeadLetterStore, clock: ManualClock) -> None:
        (kept,) = await saved(store, an_incident(told=True))
        alerts, until = _alerts(store), clock.now() + timedelta(hours=4)

        seen = await alerts.change_incident(kept.id, IncidentChange.ACKNOWLEDGE, by=ANN)
        assert (seen.acknowledged_by, seen.acknowledged_at) == (ANN.name, clock.now())
        snoozed = await alerts.change_incident(kept.id, IncidentChange.SNOOZE, by=ANN, until=until)
        assert (snoozed.snoozed_by, snoozed.snoozed_until) == (ANN.name, until)
        over = await alerts.change_incident(kept.id, IncidentChange.RESOLVE, by=ANN)
        assert (over.status, over.held) == (IncidentStatus.RESOLVED, True)
        assert over.message is not None
        assert over.message.state is State.RESOLVED
        with pytest.raises(Refused, match="over"):
            await alerts.change_incident(kept.id, IncidentChange.ACKNOWLEDGE, by=ANN)

    async def test_nobody_changes_what_is_not_there_or_names_it_too_shortly(self, store: DeadLetterStore) -> None:
        (one, _) = await saved(store, an_incident("a"), an_incident("b"))
        with pytest.raises(NotFound):
            await _alerts(store).change_incident(new_id(), IncidentChange.ACKNOWLEDGE, by=ANN)
        with pytest.raises(UsageError, match="too short"):
            await _alerts(store).incident(one.id[:7])
        with pytest.raises(UsageError, match="more than one"):
            await _alerts(store).incident(one.id[:8])

    async def test_whoever_changes_one_at_once_changes_it_after_the_other(self, store: DeadLetterStore) -> None:
        (kept,) = await saved(store, an_incident(told=True))
        alerts = _alerts(store)

        await asyncio.gather(
            *(alerts.change_incident(kept.id, IncidentChange.ACKNOWLEDGE, by=ANN) for _ in range(5)),
            alerts.change_incident(kept.id, IncidentChange.WAKE, by=ANN),
        )
        found = await alerts.incident(kept.id)
        assert found is not None
        assert (found.revision, found.acknowledged_by) == (7, ANN.name)


class ProcessContract(StoreCase):
    async def test_what_a_process_said_last_is_what_is_known_of_it(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        report = ProcessReport(
            id="p1",
            role=ProcessRole.WORKER,
            host="h1",
            pid=42,
            queues=("orders", "mails"),
            unready={"mails": 7.5},
            spooled_bytes=70,
            spooled_for=90.0,
        )
        await _alerts(store).report(replace(report, pid=41))
        clock.advance(15)
        await _alerts(store).report(report)
        await _alerts(store).report(replace(report, id="p2"))

        found = await _alerts(store).processes(since=clock.now() - timedelta(days=1), spools_since=clock.now())
        assert [(each.report, each.at) for each in found] == [
            (report, clock.now()),
            (replace(report, id="p2"), clock.now()),
        ]

    async def test_whoever_ends_in_good_order_is_gone_and_who_is_silent_for_long_too(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        for name in ("p1", "p2"):
            await _alerts(store).report(ProcessReport(id=name, role=ProcessRole.WORKER, host="h1", pid=1))
        await _alerts(store).say_goodbye("p1")
        await _alerts(store).say_goodbye("p1")
        assert [
            each.report.id for each in await _alerts(store).processes(since=clock.now(), spools_since=clock.now())
        ] == ["p2"]

        clock.advance(1)
        assert await _alerts(store).processes(since=clock.now(), spools_since=clock.now()) == []

    async def test_of_a_spool_with_letters_in_it_the_last_word_stays_until_somebody_says_that_it_is_empty(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        killed = ProcessReport(
            id="p1",
            role=ProcessRole.WORKER,
            host="h1",
            pid=1,
            queues=("orders",),
            spool="/spool",
            spooled_bytes=70,
            spooled_for=90.0,
        )

        async def known() -> list[ProcessReport]:
            day, month = clock.now() - timedelta(days=1), clock.now() - timedelta(days=30)
            return [each.report for each in await _alerts(store).processes(since=day, spools_since=month)]

        await _alerts(store).report(killed)
        clock.advance(2 * 86400)
        assert await known() == [replace(killed, queues=())]
        other = replace(killed, id="p0", spool="/other", spooled_bytes=0, spooled_for=None)
        await _alerts(store).report(other)
        assert await known() == [other, replace(killed, queues=())]

        successor = replace(killed, id="p2", spooled_bytes=0, spooled_for=None)
        await _alerts(store).report(successor)
        assert await known() == [other, successor]
        await _alerts(store).say_goodbye("p2")
        assert await known() == [other]

    async def test_a_spool_of_which_nobody_has_said_anything_for_long_is_forgotten(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        report = ProcessReport(id="p1", role=ProcessRole.WORKER, host="h1", pid=1, spool="/spool")
        await _alerts(store).report(replace(report, spooled_bytes=7, spooled_for=1.0))
        clock.advance(1)

        assert await _alerts(store).processes(since=clock.now(), spools_since=clock.now()) == []
