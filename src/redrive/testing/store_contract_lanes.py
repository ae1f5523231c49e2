"""Lanes: letters whose order is kept, and what has to wait behind which."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import MAX_GENERATIONS, Actor, Recorded, Status, Transition
from redrive.letter_query import LetterQuery
from redrive.ordering import PARKED
from redrive.run import Approval, RunChange, RunPlan, Settled
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import ANN, ENGINE, LEASE, StoreCase, claimed, letter, returned, sent

if TYPE_CHECKING:
    from redrive.dead_letter import Claim
    from redrive.failure import Failure
    from redrive.stores import DeadLetterStore, RunStore
    from redrive.testing.clock import ManualClock

_SETTLED = {Transition.RESOLVE, Transition.DISCARD}


def _waits() -> tuple[Failure, ...]:
    return (a_failure(1, type=PARKED, at=NOON),)


class LaneContract(StoreCase):
    async def test_the_first_open_letter_of_a_lane_is_what_others_wait_behind(
        self, store: DeadLetterStore
    ) -> None:
        first, second, _ = [(await store.record(an_entry(lane=lane)))[0] for lane in ("a", "a", "b")]

        assert await store.ahead("a") == first
        assert (await store.ahead("a", of=second), await store.ahead("a", of=first)) == (first, None)
        assert await store.ahead("c") is None

    async def test_a_letter_says_which_one_it_waits_behind(self, store: DeadLetterStore) -> None:
        first, second, third, _ = [(await store.record(an_entry(lane=lane)))[0] for lane in ("a", "a", "a", None)]
        await store.change([first], Transition.DISCARD, by=ANN)

        found = {each.id: each.blocked_by for each in await store.find(LetterQuery())}
        assert [found[each] for each in (first, second, third)] == [None, None, second]
        assert (await letter(store, third)).blocked_by == second
        assert (await letter(store, third)).lane == "a"

    @pytest.mark.parametrize("transition", sorted(_SETTLED))
    async def test_a_settled_letter_keeps_nobody_waiting(
        self, store: DeadLetterStore, transition: Transition
    ) -> None:
        letter_id, _ = await store.record(an_entry(lane="a"))

        await store.change([letter_id], transition, by=ANN)

        assert await store.ahead("a") is None

    async def test_one_that_is_on_its_way_or_quarantined_keeps_others_waiting(
        self, store: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry(lane="a"))
        await claimed(store, letter_id)
        assert await store.ahead("a") == letter_id
        quarantined, _ = await store.record(an_entry(lane="b", quarantine="too large"))
        assert await store.ahead("b") == quarantined

    async def test_a_later_letter_sorts_behind_whatever_the_clock_of_its_process_says(
        self, store: DeadLetterStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, _ = await store.record(an_entry(lane="a"))
        past = "00000000-0000-7000-8000-000000000001"
        monkeypatch.setattr("redrive.stores.sql_lanes.new_id", lambda: past)

        second, _ = await store.record(an_entry(lane="a"))
        other, _ = await store.record(an_entry(lane="b"))

        assert first < second
        assert other == past

    async def test_one_that_was_sent_out_of_turn_is_back_as_if_it_had_not_been(
        self, store: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry(lane="a", failures=_waits()))
        before = await letter(store, letter_id)
        for _ in range(MAX_GENERATIONS + 1):
            claim = await sent(store, letter_id)

            back = await store.record(returned(claim, lane="a", failures=_waits()))

            assert back == (letter_id, Recorded.CAME_BACK)
        found = await letter(store, letter_id)
        assert (found.status, found.generation, found.group_id) == (Status.PENDING, 1, before.group_id)
        assert [failure.attempt for failure in found.failures] == [1]
        assert (await store.record(returned(claim, lane="a", failures=_waits())))[1] is Recorded.AGAIN

    async def test_one_that_fails_when_its_turn_has_come_is_dead_like_any_other(
        self, store: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry(lane="a", failures=_waits()))

        await store.record(returned(await sent(store, letter_id), lane="a"))

        found = await letter(store, letter_id)
        assert (found.generation, found.type) == (2, a_failure(1).type)
        assert found.lane == "a"

    async def test_one_that_was_edited_since_the_approval_was_asked_for_is_not_sent_past(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        ids = [(await store.record(an_entry(lane="a")))[0] for _ in range(3)]
        plan = RunPlan(selection=LetterQuery())
        approval = Approval(digest=plan.digest(3), expires_at=clock.now() + timedelta(days=1))
        run = (await store.create_run(plan, by=ANN, approval=approval)).id
        clock.advance(1)
        await store.revise(ids[1], a_message(body=b"other"), base=0, by=ANN)
        await store.change_run(run, RunChange.APPROVE, by=Actor("bob"))

        taken = [await store.take(run, owner="one", at_most=5, lease=LEASE) for _ in range(4)]

        assert [each.letter_id for one in taken for each in one.claims] == ids[:1]

    async def test_what_a_dead_engine_had_of_a_lane_is_not_taken_over_past_what_is_on_its_way(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        ids = [(await store.record(an_entry(lane="a")))[0] for _ in range(3)]
        run = (await store.create_run(RunPlan(selection=LetterQuery()), by=ANN)).id

        async def taken(owner: str, at_most: int) -> list[Claim]:
            return list((await store.take(run, owner=owner, at_most=at_most, lease=LEASE)).claims)

        assert [each.letter_id for each in await taken("one", 3)] == ids
        clock.advance(LEASE)
        now_two = await taken("two", 2)
        assert [each.letter_id for each in now_two] == ids[:2]
        assert await taken("three", 2) == []

        await store.settle_together([Settled(each, Transition.SENT) for each in now_two], by=ENGINE)
        assert await taken("three", 2) == []
        await store.change(ids[:2], Transition.RESOLVE, by=ANN)
        assert [each.letter_id for each in await taken("three", 2)] == ids[2:]
