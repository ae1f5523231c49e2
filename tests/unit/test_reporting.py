"""What a process reports of itself: since when something is wrong, and a last word."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from redrive.alerts.observed import ProcessReport, ProcessRole
from redrive.errors import Unreachable
from redrive.reporting import REPORT_EVERY, Reporter, Seen, of_worker
from redrive.stores.alert_store import AlertStore
from redrive.testing.clock import ManualClock
from redrive.upkeep.spool import SpoolState
from redrive.worker import Worker
from support.patience import until


class ReportedTo:
    """In the place of a store: what was said last, and whether somebody has gone."""

    def __init__(self) -> None:
        self.away = False
        self.reports: list[ProcessReport] = []
        self.gone: list[str] = []

    async def report(self, report: ProcessReport) -> None:
        if self.away:
            raise Unreachable("the store is away")
        self.reports.append(report)

    async def say_goodbye(self, process_id: str) -> None:
        if self.away:
            raise Unreachable("the store is away")
        self.gone.append(process_id)


def a_reporter(seen: list[Seen], store: Any = None, clock: ManualClock | None = None) -> Reporter:
    return Reporter(
        ProcessRole.WORKER,
        lambda: seen[-1],
        store=cast("AlertStore", store or ReportedTo()),
        clock=clock or ManualClock(),
    )


def test_it_is_told_since_when_a_queue_is_not_worked_on_and_letters_are_spooled() -> None:
    clock, seen = ManualClock(), [Seen({"orders": True, "mails": True})]
    reporter = a_reporter(seen, clock=clock)
    well = reporter.report()
    assert (well.queues, well.unready, well.spooled_for) == (("orders", "mails"), {}, None)

    seen.append(Seen({"orders": True, "mails": False}, spooled_bytes=7))
    reporter.report()
    clock.advance(30)
    ill = reporter.report()
    assert (ill.unready, ill.spooled_bytes, ill.spooled_for) == ({"mails": 30.0}, 7, 30.0)

    seen.append(Seen({"orders": True, "mails": True}))
    again = reporter.report()
    assert (again.unready, again.spooled_for, again.id) == ({}, None, well.id)


async def test_a_store_that_is_away_is_told_when_it_is_back() -> None:
    store, clock = ReportedTo(), ManualClock()
    store.away = True
    serving = asyncio.create_task(a_reporter([Seen({"orders": True})], store, clock).serve())
    await asyncio.sleep(0)
    store.away = False

    def reported() -> bool:
        clock.advance(REPORT_EVERY)
        return bool(store.reports)

    await until(reported)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_a_last_word_that_nobody_takes_holds_up_nobody() -> None:
    store = ReportedTo()
    reporter = a_reporter([Seen({})], store)
    store.away = True
    await reporter.say_goodbye()
    store.away = False
    await reporter.say_goodbye()

    assert store.gone == [reporter.report().id]


async def test_whoever_ends_and_leaves_letters_in_its_spool_says_that_last() -> None:
    store = ReportedTo()
    reporter = a_reporter([Seen({"orders": False}, 70, "/spool")], store)
    await reporter.say_goodbye()

    (last,) = store.reports
    assert (last.queues, last.unready, last.spool, last.spooled_bytes) == ((), {}, "/spool", 70)
    assert store.gone == []


class Working:
    """In the place of a worker."""

    def __init__(self, store: ReportedTo) -> None:
        self.store = store
        self.consumers: list[Any] = []

    def spooled(self) -> SpoolState:
        return SpoolState(0, 0, 0)


async def test_whoever_ends_says_goodbye_and_whoever_crashes_is_missed() -> None:
    store = ReportedTo()
    worker = cast("Worker", Working(store))
    async with of_worker(worker, ManualClock()):
        await until(lambda: store.reports)
    assert store.gone == [store.reports[0].id]

    async def crash() -> None:
        async with of_worker(worker, ManualClock()):
            await until(lambda: len(store.reports) == 2)
            raise RuntimeError("a broker that answers nonsense")

    with pytest.raises(RuntimeError):
        await crash()
    assert len(store.gone) == 1
