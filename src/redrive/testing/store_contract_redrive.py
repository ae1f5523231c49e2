"""Claim, send, mark, confirm: one redrive at a time, whoever is quicker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from redrive.control import RedriveTicket
from redrive.dead_letter import MAX_REFUSALS, Actor, Recorded, Status, Transition
from redrive.testing.letters import an_entry
from redrive.testing.store_case import (
    ANN,
    ENGINE,
    LEASE,
    StoreCase,
    claimed,
    letter,
    place,
    returned,
    sent,
    state,
)

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore
    from redrive.testing.clock import ManualClock

_SETTLED = {
    Transition.SENT: Status.REDRIVEN,
    Transition.REFUSED: Status.PENDING,
    Transition.UNCLAIM: Status.PENDING,
}


class ClaimContract(StoreCase):
    async def test_a_claim_is_everything_that_sending_needs(self, store: DeadLetterStore) -> None:
        entry = an_entry()
        letter_id, _ = await store.record(entry)

        claim = await claimed(store, letter_id)

        assert (claim.letter_id, claim.generation, claim.revision) == (letter_id, 1, 0)
        assert (claim.target, claim.message) == (entry.queue, entry.message)
        assert claim.ticket == RedriveTicket(claim.redrive_id, letter_id, 1, entry.queue)
        assert (await letter(store, letter_id)).status is Status.REDRIVING

    async def test_each_letter_is_claimed_once_however_often_it_is_named(self, store: DeadLetterStore) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(3)]

        claims = await store.claim([*ids, ids[0], "no such letter", "\ud800"], owner="engine", lease=LEASE)

        assert [claim.letter_id for claim in claims] == ids
        assert len({claim.redrive_id for claim in claims}) == 3
        assert await store.claim([], owner="engine", lease=LEASE) == []

    async def test_a_claimed_letter_is_left_out_even_for_its_owner(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        await claimed(store, letter_id, "engine")
        before = await state(store, letter_id)

        assert await store.claim([letter_id], owner="engine", lease=LEASE) == []

        assert await state(store, letter_id) == before

    async def test_of_two_claimers_at_once_exactly_one_gets_each_letter(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(50)]

        lots = await asyncio.gather(
            *(
                (store if number % 2 else other).claim(ids[start : start + 10], owner=str(number), lease=LEASE)
                for number in range(4)
                for start in range(0, 50, 10)
            )
        )

        won = [claim.letter_id for lot in lots for claim in lot]
        assert sorted(won) == sorted(ids)
        assert [(await letter(store, each)).status for each in ids] == [Status.REDRIVING] * 50

    async def test_more_letters_than_one_statement_takes_are_all_claimed(self, store: DeadLetterStore) -> None:
        done = await asyncio.gather(*(store.record(an_entry()) for _ in range(1_100)))
        ids = [letter_id for letter_id, _ in done]

        assert [claim.letter_id for claim in await store.claim(ids, owner="engine", lease=LEASE)] == ids

    async def test_an_expired_claim_is_taken_over_under_the_same_redrive_id(
        self, store: DeadLetterStore, other: DeadLetterStore, clock: ManualClock
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        old = await claimed(store, letter_id, "dead engine")
        clock.advance(LEASE - 0.001)
        assert await other.claim([letter_id], owner="engine", lease=LEASE) == []
        clock.advance(0.001)

        new = await claimed(other, letter_id, "engine")

        assert (new.redrive_id, new.message, new.revision) == (old.redrive_id, old.message, old.revision)
        assert new.fence == old.fence + 1
        assert not await store.settle(old, Transition.SENT, by=ENGINE)
        assert (await letter(store, letter_id)).status is Status.REDRIVING
        assert await other.settle(new, Transition.SENT, by=ENGINE)
        what = [(line.what, line.by) for line in (await letter(store, letter_id)).history]
        assert what[1:3] == [("claimed", "dead engine"), ("claim taken over", "engine")]

    async def test_a_takeover_lasts_a_whole_lease(self, store: DeadLetterStore, clock: ManualClock) -> None:
        letter_id, _ = await store.record(an_entry())
        await claimed(store, letter_id)
        clock.advance(LEASE)
        await claimed(store, letter_id)

        clock.advance(LEASE - 1)

        assert await store.claim([letter_id], owner="third", lease=LEASE) == []

    async def test_an_expired_claim_that_nobody_took_over_may_still_be_settled(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await claimed(store, letter_id)
        clock.advance(LEASE * 10)

        assert await store.settle(claim, Transition.SENT, by=ENGINE)


class SettleContract(StoreCase):
    @pytest.mark.parametrize(("outcome", "status"), _SETTLED.items())
    async def test_a_settled_claim_stays_settled_when_it_is_settled_again(
        self, store: DeadLetterStore, outcome: Transition, status: Status
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await claimed(store, letter_id)
        assert await store.settle(claim, outcome, by=ENGINE)
        before = await state(store, letter_id)

        for each in _SETTLED:
            assert not await store.settle(claim, each, by=ENGINE)

        assert before.letter is not None
        assert before.letter.status is status
        assert await state(store, letter_id) == before

    async def test_a_refusal_keeps_its_error_in_the_history(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await claimed(store, letter_id)

        await store.settle(claim, Transition.REFUSED, by=Actor("engine", "queue \ud800 is full"))

        last = (await letter(store, letter_id)).history[-1]
        assert (last.what, last.by, last.reason) == ("refused", "engine", "queue \\ud800 is full")

    async def test_the_third_refusal_quarantines_the_letter(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        for _ in range(MAX_REFUSALS):
            assert (await letter(store, letter_id)).status is Status.PENDING
            claim = await claimed(store, letter_id)
            assert await store.settle(claim, Transition.REFUSED, by=ENGINE)

        found = await letter(store, letter_id)
        assert (found.status, found.how) == (Status.QUARANTINED, "refused by the broker")

    @pytest.mark.parametrize("between", ["sent", "released", "unclaimed"])
    async def test_refusals_are_counted_from_new_once_one_was_sent_or_a_person_looked(
        self, store: DeadLetterStore, between: str
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        for _ in range(MAX_REFUSALS - 1):
            await store.settle(await claimed(store, letter_id), Transition.REFUSED, by=ENGINE)
        if between == "sent":
            await store.record(returned(await sent(store, letter_id)))
        elif between == "released":
            await store.change([letter_id], Transition.QUARANTINE, by=ANN)
            await store.change([letter_id], Transition.RELEASE, by=ANN)
        else:
            await store.settle(await claimed(store, letter_id), Transition.UNCLAIM, by=ENGINE)

        await store.settle(await claimed(store, letter_id), Transition.REFUSED, by=ENGINE)

        expected = Status.QUARANTINED if between == "unclaimed" else Status.PENDING
        assert (await letter(store, letter_id)).status is expected

    async def test_a_stale_mark_after_a_quick_second_failure_changes_nothing(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await claimed(store, letter_id)
        assert (await store.record(returned(claim)))[1] is Recorded.CAME_BACK
        before = await state(store, letter_id)

        assert not await store.settle(claim, Transition.SENT, by=ENGINE)

        assert before.letter is not None
        assert before.letter.status is Status.PENDING
        assert await state(store, letter_id) == before

    @pytest.mark.parametrize("outcome", _SETTLED)
    async def test_a_stale_mark_after_a_second_claim_changes_nothing(
        self, store: DeadLetterStore, outcome: Transition
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        first = await claimed(store, letter_id)
        await store.record(returned(first))
        second = await claimed(store, letter_id)
        before = await state(store, letter_id)

        assert not await store.settle(first, outcome, by=ENGINE)

        assert await state(store, letter_id) == before
        assert await store.settle(second, Transition.SENT, by=ENGINE)

    async def test_fences_rise_for_the_whole_life_of_a_letter(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        fences = []
        for outcome in (Transition.UNCLAIM, Transition.REFUSED, Transition.UNCLAIM):
            fences.append((await claimed(store, letter_id)).fence)
            clock.advance(LEASE)
            claim = await claimed(store, letter_id)
            fences.append(claim.fence)
            await store.settle(claim, outcome, by=ENGINE)

        assert fences == sorted(set(fences))


class ConfirmContract(StoreCase):
    @pytest.mark.parametrize("status", [Status.REDRIVING, Status.REDRIVEN])
    async def test_a_confirmed_letter_is_resolved(
        self, store: DeadLetterStore, clock: ManualClock, status: Status
    ) -> None:
        placed = await place(store, status)
        clock.advance(5)

        assert await store.confirm(placed.claim.ticket, by=Actor("consumer", "charge succeeded"))

        found = await letter(store, placed.id)
        assert (found.status, found.how, found.changed_at) == (Status.RESOLVED, "confirmed", clock.now())
        last = found.history[-1]
        assert (last.what, last.by, last.reason) == ("confirmed", "consumer", "charge succeeded")
        assert (last.before, last.after) == (status, Status.RESOLVED)

    async def test_a_confirmation_that_beats_the_mark_stands(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.REDRIVING)
        assert await store.confirm(placed.claim.ticket, by=ANN)
        before = await state(store, placed.id)

        assert not await store.settle(placed.claim, Transition.SENT, by=ENGINE)

        assert await state(store, placed.id) == before

    async def test_confirming_again_changes_nothing(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.REDRIVEN)
        await store.confirm(placed.claim.ticket, by=ANN)
        before = await state(store, placed.id)

        assert not await store.confirm(placed.claim.ticket, by=ANN)

        assert await state(store, placed.id) == before

    async def test_only_the_current_redrive_confirms(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        old = await sent(store, letter_id)
        await store.record(returned(old))
        new = await sent(store, letter_id)
        unknown = RedriveTicket("\ud800", letter_id, 2, "orders")
        gone = RedriveTicket(new.redrive_id, "no such letter", 2, "orders")

        assert [await store.confirm(each, by=ANN) for each in (old.ticket, unknown, gone)] == [False] * 3

        assert (await letter(store, letter_id)).status is Status.REDRIVEN
        assert await store.confirm(new.ticket, by=ANN)

    async def test_a_confirmed_claim_is_released(self, store: DeadLetterStore, clock: ManualClock) -> None:
        placed = await place(store, Status.REDRIVING)
        await store.confirm(placed.claim.ticket, by=ANN)
        clock.advance(LEASE * 2)

        assert await store.claim([placed.id], owner="engine", lease=LEASE) == []

        assert await store.change([placed.id], Transition.RESTORE, by=ANN) == {}
        assert (await claimed(store, placed.id)).redrive_id != placed.claim.redrive_id

    async def test_a_second_copy_that_fails_after_the_first_was_confirmed_comes_back(
        self, store: DeadLetterStore
    ) -> None:
        placed = await place(store, Status.REDRIVEN)
        await store.confirm(placed.claim.ticket, by=ANN)

        assert (await store.record(returned(placed.claim)))[1] is Recorded.CAME_BACK

        assert (await letter(store, placed.id)).status is Status.PENDING

    async def test_a_second_copy_that_succeeds_after_the_first_came_back_resolves_nothing(
        self, store: DeadLetterStore
    ) -> None:
        placed = await place(store, Status.REDRIVEN)
        await store.record(returned(placed.claim))

        assert not await store.confirm(placed.claim.ticket, by=ANN)

        assert (await letter(store, placed.id)).status is Status.PENDING
