"""Redrive runs: made once, changed as their table says, and everything told that became of their letters."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status, Transition
from redrive.editing import Set, json_value
from redrive.errors import NotFound, Refused, TransitionRefused, UsageError
from redrive.letter_query import LetterQuery
from redrive.run import CHANGES, Canary, Progress, RunChange, RunPlan, RunStatus, Waiting
from redrive.search import parse
from redrive.testing.letters import an_entry
from redrive.testing.store_case import ANN, ENGINE, StoreCase, letter, place, returned
from redrive.testing.store_runs import (
    BOB,
    a_plan,
    an_approval,
    every_claim,
    of_ids,
    recorded,
    running,
    send,
    take,
)

if TYPE_CHECKING:
    from redrive.stores import RunStore
    from redrive.testing.clock import ManualClock


class RunContract(StoreCase):
    """Made, looked at, changed."""

    async def test_a_run_is_what_was_asked_for_and_is_there_for_everybody(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 3)
        where = parse("age:>2d -type:ValueError data.order:17 header.x:1 attempts:<5 word", now=clock.now())
        selection = LetterQuery(queue="orders", where=where, created_before=clock.now())
        edit = (Set(path="order", value=json_value({"big": 1.10})),)
        plan = RunPlan(selection=selection, edit=edit, rate=2.5, target="elsewhere", canary=Canary(steps=(1, 5)))

        made = await store.create_run(plan, by=BOB)

        assert made == await other.run(made.id) == await other.run(made.id[:30])
        assert made.plan == plan
        assert made.plan.digest(3) == plan.digest(3)
        assert (made.status, made.requested_by, made.total, made.created_at) == (
            RunStatus.RUNNING,
            "bob",
            0,
            clock.now(),
        )
        assert made.progress == Progress()
        [line] = await other.run_history(made.id)
        assert (line.what, line.by, line.after, line.reason) == ("requested", "bob", "RUNNING", "fixed it")

    async def test_only_pending_letters_are_counted(self, store: RunStore) -> None:
        for status in Status:
            await place(store, status)
        await recorded(store, 2, queue="other")

        assert (await store.create_run(a_plan(), by=BOB)).total == 3
        assert (await store.create_run(a_plan(queue="orders"), by=BOB)).total == 1
        assert (await store.create_run(a_plan(status=Status.RESOLVED), by=BOB)).total == 3
        assert (await store.create_run(replace(a_plan(), at_most=2), by=BOB)).total == 2

    async def test_of_a_list_of_ids_those_count_that_are_pending_each_once(self, store: RunStore) -> None:
        ids = await recorded(store, 3)
        gone = await place(store, Status.DISCARDED)

        made = await store.create_run(of_ids(*ids, ids[0], gone.id, "no such letter"), by=BOB)

        assert made.total == 3

    @pytest.mark.parametrize("given", [{"rate": 0.0}, {"rate": -1.0}, {"rate": float("nan")}, {"at_most": 0}])
    async def test_a_plan_that_makes_no_sense_is_refused(self, store: RunStore, given: dict[str, float]) -> None:
        with pytest.raises(UsageError):
            await store.create_run(replace(a_plan(), **given), by=BOB)
        with pytest.raises(UsageError):
            await store.create_run(of_ids(*map(str, range(10_001))), by=BOB)

        assert await store.runs() == []

    async def test_runs_are_listed_newest_first_and_active_ones_alone(self, store: RunStore) -> None:
        made = [await store.create_run(a_plan(), by=BOB) for _ in range(4)]
        await store.change_run(made[1].id, RunChange.CANCEL, by=ANN)
        await store.change_run(made[2].id, RunChange.PAUSE, by=ANN)

        assert [run.id for run in await store.runs()] == [made[n].id for n in (3, 2, 1, 0)]
        assert [run.id for run in await store.runs(active=True)] == [made[n].id for n in (3, 2, 0)]
        assert [run.id for run in await store.runs(limit=2)] == [made[n].id for n in (3, 2)]

    async def test_a_run_that_is_not_there_is_not_found(self, store: RunStore) -> None:
        made = await store.create_run(a_plan(), by=BOB)

        assert [await store.run(each) for each in ("no such run", made.id[:7], "")] == [None] * 3
        with pytest.raises(NotFound):
            await store.change_run("no such run", RunChange.PAUSE, by=ANN)
        assert not await store.pass_stage("no such run", 0)
        assert (await take(store, "no such run")).waiting is Waiting.NOT_RUNNING
        with pytest.raises(NotFound):
            await store.run_history("no such run")

    async def test_a_beginning_that_two_runs_share_is_not_guessed(self, store: RunStore) -> None:
        one, other = [await store.create_run(a_plan(), by=BOB) for _ in range(2)]
        shared = "".join(a for a, b in zip(one.id, other.id, strict=True) if a == b)[:8]

        with pytest.raises(UsageError):
            await store.run(shared)

    @pytest.mark.parametrize("change", RunChange)
    async def test_a_run_changes_as_the_table_says_and_in_no_other_way(
        self, store: RunStore, clock: ManualClock, change: RunChange
    ) -> None:
        for status in RunStatus:
            run = await in_status(store, status)
            clock.advance(1)
            if status not in CHANGES[change].sources:
                with pytest.raises(TransitionRefused) as refusal:
                    await store.change_run(run, change, by=ANN)
                assert refusal.value.status == status
                assert f"run {run} is {status}" in str(refusal.value)
                continue
            changed = await store.change_run(run, change, by=ANN)
            assert (changed.status, changed.why, changed.changed_at) == (
                CHANGES[change].target,
                "because",
                clock.now(),
            )
            ended = changed.status not in {RunStatus.RUNNING, RunStatus.PAUSED}
            assert changed.ended_at == (clock.now() if ended else None)
            last = (await store.run_history(run))[-1]
            assert (last.by, last.before, last.after) == ("ann", status, changed.status)
            with pytest.raises(TransitionRefused):  # the same again
                await store.change_run(run, change, by=ANN)


async def in_status(store: RunStore, status: RunStatus) -> str:
    """The id of a run that was brought there by the store's own methods."""
    waits = an_approval(a_plan(), 0) if status is RunStatus.AWAITING_APPROVAL else None
    run = await store.create_run(a_plan(), by=BOB, approval=waits)
    ways = {
        RunStatus.PAUSED: RunChange.PAUSE,
        RunStatus.DONE: RunChange.FINISH,
        RunStatus.CANCELLED: RunChange.CANCEL,
        RunStatus.STOPPED: RunChange.STOP,
        RunStatus.FAILED: RunChange.FAIL,
    }
    if status in ways:
        await store.change_run(run.id, ways[status], by=ANN)
    return run.id


class ApprovalContract(StoreCase):
    async def test_a_run_that_needs_approval_takes_nothing_before_it_has_it(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 2)
        approval = an_approval(a_plan(), 2)
        run = await store.create_run(a_plan(), by=BOB, approval=approval)
        assert (run.status, run.approval) == (RunStatus.AWAITING_APPROVAL, approval)
        assert (await take(store, run.id)).waiting is Waiting.NOT_RUNNING
        clock.advance(5)

        approved = await store.change_run(run.id, RunChange.APPROVE, by=ANN)

        assert approved.approval == replace(approval, by="ann", at=clock.now())
        assert len((await take(store, run.id)).claims) == 2

    async def test_what_was_shown_must_be_what_is_there(self, store: RunStore) -> None:
        await recorded(store, 2)
        shown = an_approval(a_plan(), 2)
        await recorded(store, 1)

        with pytest.raises(Refused, match="3 letters"):
            await store.create_run(a_plan(), by=BOB, approval=shown)
        with pytest.raises(Refused):
            await store.create_run(replace(a_plan(), target="x"), by=BOB, approval=an_approval(a_plan(), 3))

        assert await store.runs() == []

    async def test_nobody_approves_what_they_asked_for(self, store: RunStore) -> None:
        run = await store.create_run(a_plan(), by=BOB, approval=an_approval(a_plan(), 0))

        with pytest.raises(Refused, match="bob"):
            await store.change_run(run.id, RunChange.APPROVE, by=replace(BOB, reason="looks good"))

        assert await store.run(run.id) == run

    async def test_an_approval_that_comes_too_late_is_refused_and_the_run_can_be_rejected(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        run = await store.create_run(a_plan(), by=BOB, approval=an_approval(a_plan(), 0))
        clock.advance(3600.001)

        with pytest.raises(Refused, match="time"):
            await store.change_run(run.id, RunChange.APPROVE, by=ANN)

        rejected = await store.change_run(run.id, RunChange.REJECT, by=ANN)
        assert (rejected.status, rejected.why) == (RunStatus.CANCELLED, "because")


class RunReportContract(StoreCase):
    async def test_everything_that_can_become_of_a_letter_is_counted_and_adds_up(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 11)
        run = await running(store)
        clock.advance(1)
        claims = (await take(store, run)).claims
        sent_at = clock.now()
        quick_ok, quick_back, *slow = claims
        await store.confirm(quick_ok.ticket, by=ANN)
        await store.record(returned(quick_back))
        assert await send(store, (quick_ok, quick_back, *slow[:6])) == 6
        clock.advance(1)
        await store.confirm(slow[0].ticket, by=ANN)
        await store.record(returned(slow[1]))
        await store.record(returned(slow[2], group="another cause"))
        await store.change([slow[3].letter_id], Transition.RESOLVE, by=ANN)
        await store.settle(slow[6], Transition.REFUSED, by=ENGINE)
        await store.settle(slow[7], Transition.UNCLAIM, by=ENGINE)

        found = await store.run(run)

        assert found is not None
        progress = found.progress
        assert progress == Progress(
            taken=11,
            in_hand=1,
            sent=8,
            confirmed=2,
            came_back_same=2,
            came_back_new=1,
            refused=1,
            released=1,
            by_hand=1,
            last_sent_at=sent_at,
        )
        assert progress.without_word == 2
        assert progress.taken == progress.in_hand + progress.sent + progress.refused + progress.released
        words = [each.outcome for each in await store.outcomes(run)]
        assert sorted(words) == sorted(
            ["confirmed"] * 2 + ["came back"] * 3 + ["sent"] * 2 + ["resolved", "refused", "unclaimed", "claimed"]
        )

    async def test_a_copy_that_comes_back_after_all_is_counted_as_that(self, store: RunStore) -> None:
        await recorded(store, 2)
        run = await running(store)
        claims = (await take(store, run)).claims
        await send(store, claims)
        await store.confirm(claims[0].ticket, by=ANN)
        await store.change([claims[1].letter_id], Transition.RESOLVE, by=ANN)

        for claim in claims:
            await store.record(returned(claim))
            await store.record(returned(claim))  # the same once more

        progress = (await store.run(run)).progress  # type: ignore[union-attr]  # it is there
        assert (progress.sent, progress.came_back_same, progress.confirmed, progress.by_hand) == (2, 2, 0, 0)

    async def test_a_group_that_was_merged_meanwhile_is_the_same(self, store: RunStore) -> None:
        await recorded(store, 1)
        await recorded(store, 1, group="another")
        one, other = (await store.groups())[:2]
        run = await running(store)
        claims = await every_claim(store, run)
        await store.merge(one.id, [other.id], by=ANN)

        for claim, group in zip(claims, ("no customer", "another"), strict=True):
            await store.record(returned(claim, group=group))

        assert (await store.run(run)).progress.came_back_same == 2  # type: ignore[union-attr]  # it is there

    async def test_recent_outcomes_are_the_last_ones_after_a_moment(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 6)
        run = await running(store)
        begin = clock.now()
        claims = (await take(store, run)).claims
        await store.settle(claims[5], Transition.REFUSED, by=ENGINE)
        for claim, back in zip(claims, (True, True, False, True, False), strict=False):
            clock.advance(1)
            await (store.record(returned(claim)) if back else store.confirm(claim.ticket, by=ANN))

        assert await store.recent_outcomes(run, 100, since=begin) == (5, 3)
        assert await store.recent_outcomes(run, 3, since=begin) == (3, 1)
        assert await store.recent_outcomes(run, 100, since=begin + timedelta(seconds=3)) == (2, 1)
        assert await store.recent_outcomes("no such run", 100, since=begin) == (0, 0)

    async def test_outcomes_are_read_page_by_page_with_their_groups(self, store: RunStore) -> None:
        await recorded(store, 5, group="before")
        run = await running(store)
        claims = (await take(store, run)).claims
        await store.record(returned(claims[0], group="after"))

        first = await store.outcomes(run, limit=3)
        rest = await store.outcomes(run, after=first[-1].redrive_id, limit=3)

        assert [each.redrive_id for each in (*first, *rest)] == sorted(each.redrive_id for each in claims)
        [back] = [each for each in (*first, *rest) if each.outcome == "came back"]
        assert (back.letter_id, back.queue) == (claims[0].letter_id, "orders")
        assert back.group_after is not None
        assert back.group_after != back.group_before
        assert await store.outcomes("no such run") == []

    async def test_a_run_remembers_letters_that_were_purged(self, store: RunStore) -> None:
        await recorded(store, 2)
        run = await running(store)
        claims = (await take(store, run)).claims
        await send(store, claims)
        await store.confirm(claims[0].ticket, by=ANN)
        before = await store.run(run), await store.outcomes(run)
        whole = await letter(store, claims[0].letter_id)

        assert await store.purge([claims[0].letter_id], by=ANN) == {}

        assert (await store.run(run), await store.outcomes(run)) == before
        await store.record(an_entry(message=claims[0].message, ticket=claims[0].ticket))  # a late copy fails
        assert (await store.run(run), await store.outcomes(run)) == before
        await store.restore_whole([whole], by=ANN)
        assert (await store.run(run), await store.outcomes(run)) == before
