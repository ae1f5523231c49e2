"""Letters of a run that has ended while somebody had them in hand: told, and decided by who takes them over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status, Transition
from redrive.run import RunChange, Settled
from redrive.testing.store_case import ANN, ENGINE, LEASE, StoreCase, letter
from redrive.testing.store_runs import recorded, running, send, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.dead_letter import Claim
    from redrive.stores import RunStore
    from redrive.testing.clock import ManualClock


class DoubtContract(StoreCase):
    async def test_what_a_dead_engine_had_in_hand_is_in_doubt_when_the_run_is_over(
        self, store: RunStore, other: RunStore, clock: ManualClock
    ) -> None:
        run, _ = await _abandoned(store, 3)
        await store.change_run(run, RunChange.CANCEL, by=ANN)
        running_one, _ = await _abandoned(store, 2)
        assert await store.in_doubt(run) == 0  # it may still be at it
        assert await store.take_doubtful(run, owner="ann", at_most=9, lease=LEASE) == []

        clock.advance(LEASE + 1)

        assert await other.in_doubt(run) == 3
        assert await other.in_doubt(running_one) == 0  # whoever carries it out next takes them over
        assert await other.in_doubt("no such run") == 0

    async def test_whoever_decides_takes_them_over_under_the_same_redrive_ids(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        run, claims = await _abandoned(store, 3, ended=clock)

        first = await store.take_doubtful(run, owner="ann", at_most=2, lease=LEASE)
        second = await store.take_doubtful(run, owner="ann", at_most=2, lease=LEASE)

        assert (len(first), len(second)) == (2, 1)
        assert _issued(first) + _issued(second) == _issued(claims)
        assert {each.letter_id: each.fence for each in (*first, *second)} == {
            each.letter_id: each.fence + 1 for each in claims
        }
        assert await store.take_doubtful(run, owner="bob", at_most=2, lease=LEASE) == []
        assert await store.in_doubt(run) == 0

    async def test_a_late_mark_of_the_first_engine_changes_nothing_then(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        run, [late] = await _abandoned(store, 1, ended=clock)
        [claim] = await store.take_doubtful(run, owner="ann", at_most=9, lease=LEASE)

        assert await store.settle_together([Settled(late, Transition.REFUSED, "no")], by=ENGINE) == 0
        assert await store.settle_together([Settled(claim, Transition.SENT, "seen")], by=ANN) == 1

        found = await letter(store, claim.letter_id)
        assert found.status is Status.REDRIVEN
        told = [(line.what, line.by) for line in found.history]
        assert told[-2:] == [("claim taken over", "ann"), ("sent", "ann")]
        ended = await store.run(run)
        assert ended is not None
        assert (ended.progress.sent, ended.progress.in_hand) == (1, 0)
        assert await store.confirm(late.ticket, by=ENGINE)

    @pytest.mark.parametrize("change", [None, RunChange.PAUSE])
    async def test_those_of_a_run_that_has_not_ended_are_left_to_its_engines(
        self, store: RunStore, clock: ManualClock, change: RunChange | None
    ) -> None:
        run, _ = await _abandoned(store, 1)
        clock.advance(LEASE + 1)
        if change is not None:
            await store.change_run(run, change, by=ANN)

        assert await store.take_doubtful(run, owner="ann", at_most=9, lease=LEASE) == []

    async def test_what_came_back_or_was_confirmed_is_in_no_doubt(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        run, [sent, confirmed, _] = await _abandoned(store, 3, ended=clock)
        await send(store, [sent])
        await store.confirm(confirmed.ticket, by=ENGINE)

        assert await store.in_doubt(run) == 1


def _issued(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    return [(each.letter_id, each.redrive_id) for each in claims]


async def _abandoned(store: RunStore, number: int, *, ended: ManualClock | None = None) -> tuple[str, list[Claim]]:
    """A run whose engine has so many letters in hand; with a clock, it died and the run was cancelled."""
    await recorded(store, number)
    run = await running(store)
    claims = (await take(store, run)).claims
    if ended is not None:
        ended.advance(LEASE + 1)
        await store.change_run(run, RunChange.CANCEL, by=ANN)
    return run, list(claims)
