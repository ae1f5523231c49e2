"""Ceilings of queues: what all runs together send to a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.letter_query import LetterQuery
from redrive.run import Waiting
from redrive.testing.store_case import StoreCase
from redrive.testing.store_runs import a_plan, recorded, running, take

if TYPE_CHECKING:
    from redrive.run import RunPlan
    from redrive.stores import RunStore
    from redrive.testing.clock import ManualClock


def paced(*, rate: float = 10.0, **ceilings: float) -> RunPlan:
    return replace(a_plan(queue="orders"), rate=rate, ceilings=ceilings)


class CeilingContract(StoreCase):
    async def test_two_runs_to_one_queue_are_as_fast_as_one(self, store: RunStore, other: RunStore) -> None:
        await recorded(store, 300)
        one, second = await running(store, paced(orders=10.0)), await running(store, paced(orders=10.0))

        first = await take(store, one, 50)
        behind = await take(other, second, 50)

        assert (len(first.claims), first.begins_in, first.spacing) == (50, 0, 0.1)
        assert (len(behind.claims), behind.begins_in, behind.spacing) == (50, 5, 0.1)
        assert (await take(store, one, 50)).begins_in == 10

    async def test_queues_of_their_own_and_runs_without_a_ceiling_are_not_held_up(self, store: RunStore) -> None:
        await recorded(store, 300)
        await take(store, await running(store, paced(orders=10.0)))

        assert (await take(store, await running(store, paced(elsewhere=10.0)), 5)).begins_in == 0
        assert (await take(store, await running(store, paced()), 5)).begins_in == 0
        assert (await take(store, await running(store, paced(orders=10.0, elsewhere=10.0)), 5)).begins_in == 10

    async def test_a_slow_run_leaves_the_rest_of_the_ceiling_to_others(self, store: RunStore) -> None:
        await recorded(store, 300)

        slow = await take(store, await running(store, paced(rate=1.0, orders=10.0)))
        fast = await take(store, await running(store, paced(orders=10.0)), 20)

        assert (len(slow.claims), slow.spacing) == (10, 1.0)
        assert (len(fast.claims), fast.begins_in) == (20, 1)  # ten of a hundred that fit into ten seconds

    async def test_whoever_found_no_time_left_has_the_next(self, store: RunStore, clock: ManualClock) -> None:
        await recorded(store, 500)
        greedy, modest = await running(store, paced(orders=10.0)), await running(store, paced(orders=10.0))
        await take(store, greedy)
        assert (await take(store, greedy)).begins_in == 10

        clock.advance(9)
        refused = await take(store, modest)
        clock.advance(1)
        held_up = await take(store, greedy)
        granted = await take(store, modest, 10)
        again = await take(store, greedy)

        assert (refused.waiting, refused.begins_in) == (Waiting.PACE, 11)
        assert (held_up.waiting, held_up.claims) == (Waiting.PACE, ())
        assert (len(granted.claims), granted.begins_in) == (10, 10)
        assert (again.waiting, again.begins_in) == (Waiting.PACE, 11)

    async def test_time_is_not_kept_for_ever_for_a_run_whose_engine_died(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        await recorded(store, 500)
        greedy, dying = await running(store, paced(orders=10.0)), await running(store, paced(orders=10.0))
        await take(store, greedy)
        await take(store, greedy)
        assert (await take(store, dying)).waiting is Waiting.PACE

        clock.advance(13)

        assert len((await take(store, greedy, 10)).claims) == 10

    @pytest.mark.parametrize("rate", [1.0, 10.0])
    async def test_a_run_with_nothing_to_take_holds_nobody_up(
        self, store: RunStore, clock: ManualClock, rate: float
    ) -> None:
        await recorded(store, 150)
        full = await running(store, paced(orders=10.0))
        nothing = replace(paced(rate=rate, orders=10.0), selection=LetterQuery(queue="mail"))
        empty = await running(store, nothing)
        await take(store, full)

        assert (await take(store, empty)).waiting is Waiting.NOTHING_LEFT
        clock.advance(5)
        assert (await take(store, full)).begins_in == 5
