"""Letters of a run that were sent, or not; and those that an engine did not finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status, Transition
from redrive.errors import UsageError
from redrive.letter_query import LetterQuery
from redrive.run import CHANGES, RunChange, Settled, Waiting
from redrive.testing.store_case import ANN, ENGINE, LEASE, StoreCase, claimed, letter
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


class SettleTogetherContract(StoreCase):
    async def test_each_is_settled_by_itself(self, store: RunStore) -> None:
        ids = await recorded(store, 4)
        run = await running(store)
        claims = (await take(store, run)).claims
        await store.confirm(claims[3].ticket, by=ANN)
        ways = (Transition.SENT, Transition.REFUSED, Transition.UNCLAIM, Transition.SENT)
        settled = [
            Settled(claim, way, f"reason {n}") for n, (claim, way) in enumerate(zip(claims, ways, strict=True))
        ]

        assert await store.settle_together(settled, by=ENGINE) == 3

        found = [await letter(store, each) for each in ids]
        assert [each.status for each in found] == [
            Status.REDRIVEN,
            Status.PENDING,
            Status.PENDING,
            Status.RESOLVED,
        ]
        assert [each.history[-1].reason for each in found[:3]] == ["reason 0", "reason 1", "reason 2"]
        assert await store.settle_together(settled, by=ENGINE) == 0
        assert [await letter(store, each) for each in ids] == found

    async def test_the_same_claim_twice_counts_once(self, store: RunStore) -> None:
        await recorded(store, 1)
        [claim] = (await take(store, await running(store))).claims

        both = [Settled(claim, Transition.SENT), Settled(claim, Transition.UNCLAIM)]

        assert await store.settle_together(both, by=ENGINE) == 1
        assert (await letter(store, claim.letter_id)).status is Status.REDRIVEN

    async def test_nothing_and_hundreds_are_settled_too(self, store: RunStore) -> None:
        ids = await recorded(store, 600)
        run = await running(store)
        claims = await every_claim(store, run, 500)

        assert await store.settle_together([], by=ENGINE) == 0
        assert await send(store, claims) == 600

        assert await store.count(LetterQuery(status=Status.REDRIVEN)) == await store.count(LetterQuery())
        assert len(ids) == (await store.run(run)).progress.sent  # type: ignore[union-attr]  # it is there

    async def test_what_settles_no_claim_changes_nothing(self, store: RunStore) -> None:
        await recorded(store, 2)
        claims = (await take(store, await running(store))).claims

        with pytest.raises(UsageError):
            await store.settle_together(
                [Settled(claims[0], Transition.SENT), Settled(claims[1], Transition.DISCARD)], by=ENGINE
            )

        assert [(await letter(store, each.letter_id)).status for each in claims] == [Status.REDRIVING] * 2


class TakeOverContract(StoreCase):
    async def test_what_an_engine_did_not_finish_is_taken_over_first(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 5)
        run = await running(store, replace(a_plan(), target="elsewhere"))
        old = (await take(store, run, 2, owner="dead")).claims
        clock.advance(LEASE - 0.001)
        assert (await take(other, run, 1)).taken_over == 0
        clock.advance(0.001)

        taken = await take(other, run, 3)

        assert (len(taken.claims), taken.taken_over) == (3, 2)
        new = {each.letter_id: each for each in taken.claims}
        for each in old:
            mine = new[each.letter_id]
            assert (mine.redrive_id, mine.fence) == (each.redrive_id, each.fence + 1)
            assert (mine.target, mine.message) == ("elsewhere", each.message)
        assert await send(store, old) == 0
        assert {(await letter(store, each.letter_id)).status for each in old} == {Status.REDRIVING}
        assert await send(other, taken.claims) == 3
        assert (await store.run(run)).progress.taken == 4  # type: ignore[union-attr]  # it is there

    async def test_claims_of_nobody_and_of_other_runs_are_not_taken_over(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        ids = await recorded(store, 2)
        await claimed(store, ids[0])
        await take(store, await running(store, of_ids(ids[1])))
        run = await running(store)
        clock.advance(LEASE)

        assert (await take(store, run)).waiting is Waiting.NOTHING_LEFT

    async def test_a_person_may_take_over_what_a_run_did_not_finish(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        [letter_id] = await recorded(store, 1)
        run = await running(store)
        [old] = (await take(store, run)).claims
        clock.advance(LEASE)

        new = await claimed(store, letter_id, "ann")

        assert (new.redrive_id, new.fence) == (old.redrive_id, old.fence + 1)
        await send(store, [new])
        assert (await store.run(run)).progress.sent == 1  # type: ignore[union-attr]  # it is there

    async def test_what_is_let_go_is_taken_by_the_next_one(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 3)
        run = await running(store)
        one, two, three = (await take(store, run)).claims
        await store.settle(three, Transition.SENT, by=ENGINE)

        await store.let_go([one, three])
        await store.let_go([two], after=5.0)

        [again] = (await take(other, run)).claims
        assert (again.redrive_id, again.fence) == (one.redrive_id, one.fence + 1)
        await store.let_go([one])  # no longer its own
        clock.advance(4.999)
        assert (await take(other, run)).waiting is Waiting.OTHER_HANDS
        clock.advance(0.001)
        assert [each.redrive_id for each in (await take(other, run)).claims] == [two.redrive_id]
        assert (await letter(store, three.letter_id)).status is Status.REDRIVEN

    @pytest.mark.parametrize("change", [RunChange.CANCEL, RunChange.STOP, RunChange.FAIL])
    @pytest.mark.parametrize("first", ["let go", "ended"])
    async def test_what_was_never_sent_goes_back_when_the_run_has_ended(
        self, store: RunStore, other: RunStore, change: RunChange, first: str
    ) -> None:
        await recorded(store, 4)
        run = await running(store)
        unsent, doubtful, marked, held = (await take(store, run)).claims
        await send(store, [marked])

        async def let_go() -> None:
            await store.let_go([unsent, marked], unsent=True)
            await store.let_go([doubtful])

        for each in ("let go", "ended") if first == "let go" else ("ended", "let go"):
            await (let_go() if each == "let go" else other.change_run(run, change, by=ANN))

        statuses = [(await letter(store, each.letter_id)).status for each in (unsent, doubtful, marked, held)]
        assert statuses == [Status.PENDING, Status.REDRIVING, Status.REDRIVEN, Status.REDRIVING]
        last = (await letter(store, unsent.letter_id)).history[-1]
        status = CHANGES[change].target
        by = "ann" if first == "let go" else "engine"
        assert (last.what, last.by, last.reason) == ("unclaimed", by, f"run {status.lower()}")
        progress = (await store.run(run)).progress  # type: ignore[union-attr]  # it is there
        assert (progress.released, progress.in_hand, progress.sent) == (1, 2, 1)
        assert not await store.settle(unsent, Transition.SENT, by=ENGINE)

    async def test_what_somebody_took_over_may_have_been_sent(self, store: RunStore, other: RunStore) -> None:
        [letter_id] = await recorded(store, 1)
        run = await running(store)
        await store.let_go((await take(store, run)).claims, unsent=True)
        [taken_over] = (await take(other, run)).claims

        await store.change_run(run, RunChange.CANCEL, by=ANN)

        assert (await letter(store, letter_id)).status is Status.REDRIVING
        assert await other.settle(taken_over, Transition.SENT, by=ENGINE)

    async def test_a_run_that_goes_on_keeps_what_was_let_go(self, store: RunStore) -> None:
        await recorded(store, 1)
        run = await running(store)
        [claim] = (await take(store, run)).claims
        await store.change_run(run, RunChange.PAUSE, by=ANN)
        await store.let_go([claim], unsent=True)
        await store.change_run(run, RunChange.RESUME, by=ANN)

        assert [each.redrive_id for each in (await take(store, run)).claims] == [claim.redrive_id]

    async def test_what_was_let_go_unsent_is_as_good_as_new(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 3)
        run = await running(store)
        doubtful, unsent = (await take(store, run, 2)).claims
        await store.let_go([unsent], unsent=True)
        clock.advance(1)
        await store.let_go([doubtful])

        taken = await take(other, run)

        assert taken.taken_over == 1
        assert [each.redrive_id for each in taken.claims[:2]] == [doubtful.redrive_id, unsent.redrive_id]
        assert len(taken.claims) == 3
        await other.let_go(taken.claims[taken.taken_over :], unsent=True)
        await other.change_run(run, RunChange.CANCEL, by=ANN)
        statuses = [(await letter(store, each.letter_id)).status for each in taken.claims]
        assert statuses == [Status.REDRIVING, Status.PENDING, Status.PENDING]
