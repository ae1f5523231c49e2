"""The table of transitions, every cell of it: what it allows happens, everything else is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from redrive.dead_letter import BY_HAND, TRANSITIONS, Recorded, Status, Transition
from redrive.errors import TransitionRefused, UsageError
from redrive.testing.store_case import ANN, ENGINE, LEASE, Placed, StoreCase, letter, place, returned

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore

_SETTLING = (Transition.SENT, Transition.REFUSED, Transition.UNCLAIM)
_CELLS = [(transition, status) for transition in Transition for status in Status]
_ALLOWED = [cell for cell in _CELLS if cell[1] in TRANSITIONS[cell[0]].sources]
_REFUSED = [cell for cell in _CELLS if cell not in _ALLOWED]


async def attempt(store: DeadLetterStore, placed: Placed, transition: Transition, status: Status) -> bool:
    """Tries the transition, and checks that a refusal tells the letter's status wherever it can."""
    if transition is Transition.CAME_BACK:
        return (await store.record(returned(placed.claim)))[1] is Recorded.CAME_BACK
    if transition is Transition.CLAIM:
        return await store.claim([placed.id], owner="another", lease=LEASE) != []
    if transition in _SETTLING:
        return await store.settle(placed.claim, transition, by=ENGINE)
    if transition is Transition.CONFIRM:
        return await store.confirm(placed.claim.ticket, by=ANN)
    if transition is Transition.EDIT:
        return await _edit(store, placed, status)
    if transition is Transition.PURGE:
        unchanged = await store.purge([placed.id], by=ANN)
    else:
        unchanged = await store.change([placed.id], transition, by=ANN)
    assert unchanged in ({}, {placed.id: status})
    return unchanged == {}


async def _edit(store: DeadLetterStore, placed: Placed, status: Status) -> bool:
    message = msgspec.structs.replace(placed.claim.message, body=b"better")
    try:
        return await store.revise(placed.id, message, base=0, by=ANN) == 1
    except TransitionRefused as refusal:
        told = (refusal.letter_id, refusal.status)
    assert told == (placed.id, status)
    return False


class TransitionContract(StoreCase):
    @pytest.mark.parametrize(("transition", "status"), _ALLOWED)
    async def test_an_allowed_transition_happens_and_is_written_down(
        self, store: DeadLetterStore, transition: Transition, status: Status
    ) -> None:
        placed = await place(store, status)
        lines = len((await letter(store, placed.id)).history)

        assert await attempt(store, placed, transition, status)

        after = await store.get(placed.id)
        if transition is Transition.PURGE:
            assert after is None
            return
        assert after is not None
        assert after.status is (TRANSITIONS[transition].target or status)
        assert len(after.history) == lines + 1

    @pytest.mark.parametrize(("transition", "status"), _REFUSED)
    async def test_any_other_transition_is_refused_and_changes_nothing(
        self, store: DeadLetterStore, transition: Transition, status: Status
    ) -> None:
        placed = await place(store, status)
        before = await letter(store, placed.id)

        assert not await attempt(store, placed, transition, status)

        after = await letter(store, placed.id)
        if transition is not Transition.CAME_BACK:  # its failures are kept all the same
            assert after == before
        assert (after.status, after.how, after.message) == (before.status, before.how, before.message)

    @pytest.mark.parametrize("transition", sorted(set(Transition) - BY_HAND))
    async def test_only_changes_made_by_hand_can_be_made_by_hand(
        self, store: DeadLetterStore, transition: Transition
    ) -> None:
        placed = await place(store, Status.PENDING)

        with pytest.raises(UsageError, match=transition.name):
            await store.change([placed.id], transition, by=ANN)

    @pytest.mark.parametrize("outcome", sorted(set(Transition) - set(_SETTLING)))
    async def test_a_claim_is_settled_in_three_ways_only(
        self, store: DeadLetterStore, outcome: Transition
    ) -> None:
        placed = await place(store, Status.REDRIVING)

        with pytest.raises(UsageError, match=outcome.name):
            await store.settle(placed.claim, outcome, by=ENGINE)

        assert (await letter(store, placed.id)).status is Status.REDRIVING
