"""Which letters a run takes, in which order and at which pace, and that nobody else has them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status, Transition
from redrive.run import Canary, Progress, RunChange, Waiting
from redrive.search import parse
from redrive.testing.letters import NOON, a_message, an_entry
from redrive.testing.store_case import ANN, ENGINE, LEASE, StoreCase, claimed, letter, place, returned
from redrive.testing.store_runs import (
    a_plan,
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


class TakeContract(StoreCase):
    """Which letters a run takes, and that nobody else has them."""

    async def test_the_oldest_are_taken_first_and_each_once(self, store: RunStore) -> None:
        ids = await recorded(store, 7)
        run = await running(store)

        portions = [[each.letter_id for each in (await take(store, run, 3)).claims] for _ in range(4)]

        assert portions == [ids[:3], ids[3:6], ids[6:], []]
        assert (await store.run(run)).progress == Progress(taken=7, in_hand=7)  # type: ignore[union-attr]  # it is there
        assert (await take(store, run)).waiting is Waiting.OTHER_HANDS

    async def test_a_claim_of_a_run_is_everything_that_sending_needs(self, store: RunStore) -> None:
        entry = an_entry(queue="orders")
        letter_id, _ = await store.record(entry)
        run = await running(store, replace(a_plan(), target="elsewhere"))

        [claim] = (await take(store, run)).claims

        assert (claim.letter_id, claim.target, claim.message) == (letter_id, "elsewhere", entry.message)
        found = await letter(store, letter_id)
        assert found.status is Status.REDRIVING
        last = found.history[-1]
        assert (last.what, last.by, last.reason) == ("claimed", "engine", f"run {run}")
        assert await store.settle(claim, Transition.SENT, by=ENGINE)

    async def test_a_selection_is_frozen_when_the_run_is_made(self, store: RunStore, clock: ManualClock) -> None:
        ids = await recorded(store, 4)
        elsewhere = await place(store, Status.REDRIVEN)
        run = await running(store)
        clock.advance(1)
        later = await recorded(store, 2, at=NOON - timedelta(days=9))
        await store.record(returned(elsewhere.claim))

        first = (await take(store, run, 2)).claims
        await send(store, first)
        await store.record(returned(first[0]))
        rest = await every_claim(store, run)

        assert [each.letter_id for each in (*first, *rest)] == ids
        assert [(await letter(store, each)).status for each in (*later, elsewhere.id)] == [Status.PENDING] * 3

    async def test_an_age_is_meant_as_it_was_when_the_run_was_made(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        old = await recorded(store, 2, at=clock.now() - timedelta(days=3))
        await recorded(store, 2, at=clock.now() - timedelta(days=1))
        run = await running(store, a_plan(where=parse("age:>2d", now=clock.now())))
        clock.advance(timedelta(days=30).total_seconds())

        assert [each.letter_id for each in await every_claim(store, run)] == old

    @pytest.mark.parametrize(
        "text", ["waiter", "data.table:7", "header.room:salon", "-header.room:kitchen waiter"]
    )
    async def test_free_text_data_and_headers_select_letters_page_by_page(
        self, store: RunStore, text: str
    ) -> None:
        mine = [a_message(body=b'{"table": 7, "who": "waiter"}', headers=(("room", "salon"),)) for _ in range(5)]
        others = [a_message(headers=(("room", "kitchen"),)) for _ in range(5)]
        ids = await recorded(
            store, 10, messages=[each for pair in zip(mine, others, strict=True) for each in pair]
        )
        run = await running(store, a_plan(where=parse(text, now=NOON)))

        portions = [[each.letter_id for each in (await take(store, run, 2)).claims] for _ in range(3)]

        assert portions == [ids[0:4:2], ids[4:8:2], ids[8:9]]
        assert (await store.run(run)).total == 5  # type: ignore[union-attr]  # it is there

    async def test_ids_are_taken_in_their_order_each_once(self, store: RunStore) -> None:
        ids = await recorded(store, 5)
        wanted = [ids[3], ids[0], ids[3], ids[4], ids[0]]
        run = await running(store, of_ids(*wanted))

        portions = [[each.letter_id for each in (await take(store, run, 2)).claims] for _ in range(3)]

        assert portions == [[ids[3], ids[0]], [ids[4]], []]
        assert len(await store.outcomes(run)) == 3

    async def test_ids_and_what_else_is_asked_for_must_both_be_true(self, store: RunStore) -> None:
        one, other = await recorded(store, 1), await recorded(store, 1, queue="other")
        run = await running(store, of_ids(*one, *other, queue="other"))

        assert [each.letter_id for each in await every_claim(store, run)] == other
        assert len(await store.outcomes(run)) == 1

    async def test_what_cannot_be_taken_is_passed_over_and_told(self, store: RunStore) -> None:
        ids = await recorded(store, 3)
        held, decided = await claimed(store, ids[0]), ids[1]
        await store.change([decided], Transition.DISCARD, by=ANN)
        run = await running(store, of_ids(*ids, "no such letter"))

        taken = await take(store, run)

        assert [each.letter_id for each in taken.claims] == [ids[2]]
        told = {each.letter_id: each.outcome for each in await store.outcomes(run)}
        expected = {ids[0]: "not pending", decided: "not pending", "no such letter": "not found"}
        assert told == {**expected, ids[2]: "claimed"}
        assert (await store.run(run)).progress == Progress(taken=1, in_hand=1, passed_over=3)  # type: ignore[union-attr]  # there
        assert await store.settle(held, Transition.SENT, by=ENGINE)

    async def test_many_that_are_passed_over_do_not_hold_up_the_others(self, store: RunStore) -> None:
        ids = await recorded(store, 6)
        await store.change(ids[:5], Transition.DISCARD, by=ANN)
        run = await running(store, of_ids(*ids))

        assert [each.letter_id for each in (await take(store, run, 1)).claims] == [ids[5]]

    async def test_a_letter_that_came_back_since_is_no_longer_what_was_selected(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        run = await running(store)
        clock.advance(1)
        await store.record(returned(await claimed(store, letter_id)))

        assert (await take(store, run)).waiting is Waiting.NOTHING_LEFT

        assert [each.outcome for each in await store.outcomes(run)] == ["came back meanwhile"]
        clock.advance(1)
        anew = await running(store)
        assert [each.letter_id for each in await every_claim(store, anew)] == [letter_id]

    async def test_a_letter_is_in_one_hand_at_a_time(self, store: RunStore, other: RunStore) -> None:
        ids = await recorded(store, 4)
        one, two = await running(store), await running(store, of_ids(*ids))
        [mine, *_] = (await take(store, one, 2)).claims

        assert await other.claim(ids[:2], owner="ann", lease=LEASE) == []
        assert [each.letter_id for each in (await take(other, two)).claims] == ids[2:]

        assert (await take(store, one)).waiting is Waiting.OTHER_HANDS
        assert await store.settle(mine, Transition.SENT, by=ENGINE)

    async def test_engines_at_once_take_all_letters_and_none_twice(self, store: RunStore, other: RunStore) -> None:
        ids = await recorded(store, 60)
        run = await running(store)

        shares = await asyncio.gather(*(every_claim(each, run, 7) for each in (store, other, store, other)))

        taken = [claim.letter_id for share in shares for claim in share]
        assert sorted(taken) == sorted(ids)
        assert len({claim.redrive_id for share in shares for claim in share}) == 60

    async def test_no_more_are_taken_than_the_plan_says(self, store: RunStore) -> None:
        ids = await recorded(store, 5)
        run = await running(store, replace(a_plan(), at_most=3))

        assert [each.letter_id for each in (await take(store, run, 2)).claims] == ids[:2]
        assert [each.letter_id for each in (await take(store, run, 2)).claims] == ids[2:3]
        found = await store.run(run)
        assert found is not None
        assert (found.exhausted, found.remaining) == (True, 0)

    async def test_a_run_that_does_not_run_gives_nothing(self, store: RunStore) -> None:
        await recorded(store, 2)
        run = await running(store)
        await store.change_run(run, RunChange.PAUSE, by=ANN)
        assert (await take(store, run)).waiting is Waiting.NOT_RUNNING
        await store.change_run(run, RunChange.RESUME, by=ANN)
        assert len((await take(store, run, 1)).claims) == 1
        await store.change_run(run, RunChange.CANCEL, by=ANN)

        assert (await take(store, run)).waiting is Waiting.NOT_RUNNING

    @pytest.mark.parametrize("by", ["filter", "ids"])
    async def test_large_letters_are_taken_a_few_megabytes_at_a_time(self, store: RunStore, by: str) -> None:
        large = [a_message(body=b"x" * 3 * 2**20) for _ in range(5)]
        ids = await recorded(store, 5, messages=large)
        run = await running(store, a_plan() if by == "filter" else of_ids(*ids))

        portions = [[each.letter_id for each in (await take(store, run)).claims] for _ in range(4)]

        assert portions == [ids[:2], ids[2:4], ids[4:], []]

    @pytest.mark.parametrize("way", [Transition.UNCLAIM, Transition.REFUSED])
    async def test_what_was_given_back_is_not_taken_again(self, store: RunStore, way: Transition) -> None:
        ids = await recorded(store, 3)
        run = await running(store)
        [first] = (await take(store, run, 1)).claims
        await store.settle(first, way, by=ENGINE)

        assert [each.letter_id for each in await every_claim(store, run)] == ids[1:]

        assert (await letter(store, ids[0])).status is Status.PENDING


class PaceContract(StoreCase):
    async def test_a_pace_is_shared_by_all_who_take(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 100)
        run = await running(store, replace(a_plan(), rate=2.0))

        first, second = await take(store, run, 10), await take(other, run, 10)

        assert (len(first.claims), first.begins_in, first.spacing) == (10, 0.0, 0.5)
        assert (len(second.claims), second.begins_in) == (10, 5.0)
        third = await take(store, run, 100)
        assert (len(third.claims), third.begins_in) == (20, 10.0)
        fourth = await take(other, run, 100)
        assert (fourth.claims, fourth.waiting, fourth.begins_in) == ((), Waiting.PACE, 20.0)
        clock.advance(10)
        assert (len((await take(store, run, 1)).claims), (await take(store, run, 1)).begins_in) == (1, 10.5)

    async def test_a_pace_that_was_not_used_is_not_caught_up_with(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 10)
        run = await running(store, replace(a_plan(), rate=1.0))
        await take(store, run, 1)
        clock.advance(1000)

        assert [(await take(store, run, 1)).begins_in for _ in range(2)] == [0.0, 1.0]

    async def test_the_slowest_pace_takes_one_at_a_time(self, store: RunStore) -> None:
        await recorded(store, 3)
        run = await running(store, replace(a_plan(), rate=0.01))

        assert len((await take(store, run)).claims) == 1
        assert (await take(store, run)).begins_in == 100.0


class CanaryContract(StoreCase):
    async def test_no_step_is_passed_before_somebody_says_so(self, store: RunStore, other: RunStore) -> None:
        await recorded(store, 9)
        run = await running(store, replace(a_plan(), canary=Canary(steps=(1, 4))))

        assert [len((await take(store, run, 3)).claims) for _ in range(2)] == [1, 0]
        assert (await take(other, run)).waiting is Waiting.CANARY
        assert [await each.pass_stage(run, 0) for each in (store, other)] == [True, False]
        assert [len((await take(store, run, 2)).claims) for _ in range(3)] == [2, 1, 0]
        assert await store.pass_stage(run, 1)
        assert len((await take(store, run)).claims) == 5
        assert (await store.run(run)).stage == 2  # type: ignore[union-attr]  # it is there

    async def test_what_is_passed_over_is_no_canary(self, store: RunStore) -> None:
        ids = await recorded(store, 4)
        await store.change(ids[:2], Transition.DISCARD, by=ANN)
        run = await running(store, replace(of_ids(*ids), canary=Canary(steps=(1,))))

        assert [each.letter_id for each in (await take(store, run)).claims] == [ids[2]]
