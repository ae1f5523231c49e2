"""One run per rule however many make them, and silence that is taken for success, on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import time, timedelta
from pathlib import Path

import pytest

from redrive.assuming import Assuming, Silence
from redrive.automatic import AutomaticRuns
from redrive.clock import Clock
from redrive.dead_letter import Actor, Status, Transition, Verdict
from redrive.errors import TransitionRefused
from redrive.rules import AutomaticRule, Window
from redrive.run import Run, RunChange, RunPlan, RunStatus
from redrive.stores import RunStore
from redrive.stores.postgres import PostgresStore
from redrive.stores.sqlite import SqliteStore
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON, an_entry
from redrive.testing.store_case import ANN, ENGINE, StoreCase, claimed, letter, returned, sent
from redrive.testing.store_runs import BOB, every_claim, recorded, running, send, take
from redrive.transports import Names, Transport, open_transport
from support.embedded_broker import MEMORY

RULE = AutomaticRule(name="technical", when="queue:orders", wait=600.0)
BY_RULE = Actor("rule technical", "automatic")


def a_plan() -> RunPlan:
    """As the rule makes it when letters that were recorded at noon have waited long enough."""
    return RULE.plan(NOON + timedelta(hours=1))


async def made(store: RunStore, behind: str | None = None) -> Run | None:
    return await store.create_rule_run(a_plan(), by=BY_RULE, behind=behind)


class RulesContract(StoreCase):
    @pytest.fixture
    async def transport(self, clock: ManualClock) -> AsyncIterator[Transport]:
        opened = open_transport(MEMORY, names=Names(), clock=clock)
        yield opened
        await opened.close()

    async def test_of_many_makers_at_once_one_makes_the_run(self, store: RunStore, other: RunStore) -> None:
        await recorded(store, 3)
        await other.runs()

        found = await asyncio.gather(*(made(each) for each in (store, other) * 8))

        [run] = [each for each in found if each is not None]
        assert (run.plan.rule, run.requested_by, run.total) == ("technical", "rule technical", 3)
        assert [each.id for each in await store.runs()] == [run.id]
        assert await other.newest_rule_run("technical") == run
        assert await other.newest_rule_run("techn") is None

    async def test_two_automatic_tasks_at_once_make_one_run_after_the_other(
        self, store: RunStore, other: RunStore, clock: ManualClock, transport: Transport
    ) -> None:
        both = [AutomaticRuns([RULE], store=each, transport=transport, clock=clock) for each in (store, other)]
        for number in (1, 2, 3):
            await recorded(store, 2)
            clock.advance(3600)
            await asyncio.gather(*(each.look() for each in both * 3))
            runs = await store.runs()
            assert [run.total for run in runs] == [2] * number
            await send(store, await every_claim(store, runs[0].id))
            await store.change_run(runs[0].id, RunChange.FINISH, by=ENGINE)

    async def test_whoever_does_not_know_how_the_last_run_ended_makes_none(self, store: RunStore) -> None:
        await recorded(store, 1)
        first = await made(store)
        assert first is not None
        assert await made(store, first.id) is None
        await store.change_run(first.id, RunChange.CANCEL, by=BOB)
        assert await made(store) is None

        second = await made(store, first.id)

        assert second is not None
        assert await made(store, first.id) is None

    async def test_rules_do_not_stand_in_each_others_way_nor_in_a_persons(self, store: RunStore) -> None:
        await recorded(store, 1)
        assert await made(store)
        other = AutomaticRule(name="other", when="queue:orders")
        assert await store.create_rule_run(other.plan(NOON), by=BY_RULE, behind=None)
        await running(store)
        await running(store)
        assert len(await store.runs(active=True)) == 4

    async def test_a_run_that_has_changed_since_it_was_seen_is_not_changed(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        run = await made(store)
        assert run is not None
        paused = await store.change_run(run.id, RunChange.PAUSE, by=BY_RULE, seen=run.changed_at)
        clock.advance(1)
        await store.change_run(run.id, RunChange.RESUME, by=ANN)
        clock.advance(1)
        await store.change_run(run.id, RunChange.PAUSE, by=ANN)

        with pytest.raises(TransitionRefused):
            await store.change_run(run.id, RunChange.RESUME, by=BY_RULE, seen=paused.changed_at)

        assert (await store.runs())[0].status is RunStatus.PAUSED

    async def test_only_what_has_waited_since_its_last_change_and_has_lives_left_is_taken(
        self, store: RunStore, clock: ManualClock, transport: Transport
    ) -> None:
        rule = AutomaticRule(name="technical", when="queue:orders", wait=600.0, at_most=1)
        waited, twice = await recorded(store, 2)
        await store.record(returned(await sent(store, twice)))
        clock.advance(599)
        fresh, *_ = await recorded(store, 1, at=clock.now())
        automatic = AutomaticRuns([rule], store=store, transport=transport, clock=clock)
        await automatic.look()
        assert await store.runs() == []
        clock.advance(1)

        await automatic.look()

        [run] = await store.runs()
        assert [each.letter_id for each in await every_claim(store, run.id)] == [waited]
        assert (await letter(store, fresh)).status is (await letter(store, twice)).status is Status.PENDING

    async def test_a_group_that_somebody_does_not_want_to_be_sent_is_left_to_people(
        self, store: RunStore, clock: ManualClock, transport: Transport
    ) -> None:
        [letter_id] = await recorded(store, 1)
        group = (await letter(store, letter_id)).group_id
        await store.annotate(group, verdict=Verdict.REQUIRES_FIX, by=ANN)
        clock.advance(3600)
        automatic = AutomaticRuns([RULE], store=store, transport=transport, clock=clock)
        await automatic.look()
        assert await store.runs() == []

        await store.annotate(group, verdict=Verdict.REPLAYABLE, by=ANN)
        await automatic.look()

        assert [run.total for run in await store.runs()] == [1]

    async def test_what_a_person_cancelled_the_rule_does_not_take_again(
        self, store: RunStore, clock: ManualClock, transport: Transport
    ) -> None:
        await recorded(store, 3)
        clock.advance(3600)
        automatic = AutomaticRuns([RULE], store=store, transport=transport, clock=clock)
        await automatic.look()
        [run] = await store.runs()
        await store.change_run(run.id, RunChange.CANCEL, by=ANN)
        clock.advance(3600)
        await automatic.look()
        assert len(await store.runs()) == 1

        await recorded(store, 2, at=clock.now())
        clock.advance(3600)
        await automatic.look()

        assert [run.total for run in await store.runs()] == [2, 3]

    async def test_a_window_resumes_what_it_paused_and_nothing_that_a_person_paused(
        self, store: RunStore, clock: ManualClock, transport: Transport
    ) -> None:
        rule = AutomaticRule(name="afternoon", when="queue:orders", window=Window(opens=time(13), closes=time(14)))
        automatic = AutomaticRuns([rule], store=store, transport=transport, clock=clock)
        await recorded(store, 1)
        seen = []
        for hours in (0, 1, 1, 22, 1, 23, 1):
            clock.advance(hours * 3600)
            await automatic.look()
            seen += [run.status for run in await store.runs()]
            if len(seen) == 4:
                [run] = await store.runs()
                await store.change_run(run.id, RunChange.PAUSE, by=ANN)

        running, paused = RunStatus.RUNNING, RunStatus.PAUSED
        assert seen == [running, paused, paused, running, paused, paused]
        assert [(line.what, line.by) for line in await store.run_history(run.id)] == [
            ("requested", "rule afternoon"),
            ("paused", "rule afternoon"),
            ("resumed", "rule afternoon"),
            ("paused", "ann"),
        ]

    # Silence

    async def test_silence_is_taken_for_success_once_by_whoever_comes_first(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 40)
        run = await running(store)
        await send(store, await every_claim(store, run))
        await other.runs()
        both = [Assuming(Silence(queues={"orders": 60.0}), store=each, clock=clock) for each in (store, other)]
        clock.advance(60)
        assert await both[0].look() == 0
        clock.advance(1)

        assert sum(await asyncio.gather(*(each.look() for each in both * 3))) == 40

        found = await store.run(run)
        assert found is not None
        assert (found.progress.sent, found.progress.by_hand, found.progress.without_word) == (40, 40, 0)
        outcomes = await store.outcomes(run)
        assert {each.outcome for each in outcomes} == {"assumed"}
        one = await letter(store, outcomes[0].letter_id)
        assert (one.status, one.how) == (Status.RESOLVED, "assumed")
        line = one.history[-1]
        assert (line.what, line.by, line.before, line.reason) == (
            "resolved",
            "silence",
            "REDRIVEN",
            "sent, and no word for 1m",
        )
        assert [each.what for each in one.history].count("resolved") == 1

    async def test_each_queue_has_its_own_silence(self, store: RunStore, clock: ManualClock) -> None:
        ids = {queue: (await store.record(an_entry(queue=queue)))[0] for queue in ("orders", "mail", "slow")}
        for each in ids.values():
            await sent(store, each)
        clock.advance(100)

        silence = Silence(queues={"orders": 200.0, "slow": None}, otherwise=50.0)
        assert await Assuming(silence, store=store, clock=clock).look() == 1

        statuses = {queue: (await letter(store, each)).status for queue, each in ids.items()}
        assert statuses == {"orders": Status.REDRIVEN, "mail": Status.RESOLVED, "slow": Status.REDRIVEN}

    async def test_one_that_comes_back_later_all_the_same_folds_back(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        [letter_id] = await recorded(store, 1)
        run = await running(store)
        [claim] = (await take(store, run)).claims
        await send(store, [claim])
        clock.advance(100)
        assert await Assuming(Silence(otherwise=60.0), store=store, clock=clock).look() == 1

        await store.record(returned(claim, at=clock.now()))

        back = await letter(store, letter_id)
        assert (back.status, back.generation, back.how) == (Status.PENDING, 2, None)
        found = await store.run(run)
        assert found is not None
        assert (found.progress.came_back, found.progress.by_hand) == (1, 0)

    async def test_nothing_is_assumed_of_what_is_not_silent_any_more(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        """Found silent, and redriven anew, or confirmed, or not sent yet, before it is changed."""
        again, confirmed, in_hand = await recorded(store, 3)
        first = await sent(store, again)
        assert await store.confirm((await sent(store, confirmed)).ticket, by=ANN)
        await claimed(store, in_hand)
        clock.advance(100)
        limit = clock.now() - timedelta(seconds=60)
        await store.record(returned(first, at=clock.now()))
        assert await store.settle(await claimed(store, again), Transition.SENT, by=ENGINE)

        assert await store.assume([again, confirmed, in_hand, "unknown"], sent_before=limit, by=ANN) == 0

        assert (await letter(store, again)).status is Status.REDRIVEN
        assert (await letter(store, confirmed)).how == "confirmed"


class TestSqlite(RulesContract):
    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/letters.db"

    def open(self, location: str, clock: Clock) -> RunStore:
        return SqliteStore(location, clock=clock)


class TestPostgres(RulesContract):
    @pytest.fixture
    def location(self, postgres_store_url: str) -> str:
        return postgres_store_url

    def open(self, location: str, clock: Clock) -> RunStore:
        return PostgresStore(location, clock=clock)
