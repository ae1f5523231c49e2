"""What the metrics of a store are made of: gauges as things are, counters that never go back."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Recorded, Status, Transition
from redrive.testing.letters import NOON, an_entry
from redrive.testing.store_case import ANN, ENGINE, LEASE, StoreCase, claimed, place, returned, sent

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore, RunStore
    from redrive.testing.clock import ManualClock


async def changes(store: DeadLetterStore) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for each in (await store.numbers()).transitions:
        found[each.queue, each.before, each.after] += each.number
    return found


async def redrives(store: DeadLetterStore) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for each in (await store.numbers()).redrives:
        found[each.queue, each.outcome] += each.number
    return found


class NumbersContract(StoreCase):
    async def test_an_empty_store_has_zeros(self, store: DeadLetterStore) -> None:
        numbers = await store.numbers()

        assert numbers.by_status == {str(status): 0 for status in Status}
        assert (numbers.oldest, numbers.unindexed) == (None, 0)
        assert (*numbers.open_by_queue, *numbers.transitions, *numbers.redrives, *numbers.runs_by_status) == ()

    async def test_letters_are_counted_as_they_are(self, store: DeadLetterStore, clock: ManualClock) -> None:
        await store.record(an_entry(at=NOON - timedelta(hours=3)))
        for status in Status:
            await place(store, status, an_entry(at=NOON))
        await place(store, Status.QUARANTINED, an_entry(queue="mails"))
        clock.set_wall(NOON + timedelta(hours=1))

        numbers = await store.numbers()
        told = await store.statistics()

        assert (numbers.by_status, numbers.oldest) == (told.by_status, told.oldest)
        assert numbers.open_by_queue == told.by_queue == {"orders": 3, "mails": 1}

    async def test_every_change_of_status_is_counted_once(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        await store.record(an_entry(queue="mails"))
        assert (await store.record(returned(await sent(store, letter_id))))[1] is Recorded.CAME_BACK
        claim = await claimed(store, letter_id)
        await store.settle(claim, Transition.REFUSED, by=ENGINE)
        await store.change([letter_id], Transition.DISCARD, by=ANN)
        await store.change([letter_id], Transition.DISCARD, by=ANN)

        assert await changes(store) == {
            ("orders", "", "PENDING"): 1,
            ("mails", "", "PENDING"): 1,
            ("orders", "PENDING", "REDRIVING"): 2,
            ("orders", "REDRIVING", "REDRIVEN"): 1,
            ("orders", "REDRIVEN", "PENDING"): 1,
            ("orders", "REDRIVING", "PENDING"): 1,
            ("orders", "PENDING", "DISCARDED"): 1,
        }

    @pytest.mark.parametrize("marked", [True, False], ids=["marked first", "the outcome was quicker"])
    async def test_redrives_are_counted_by_what_became_of_them_whoever_was_quicker(
        self, store: DeadLetterStore, *, marked: bool
    ) -> None:
        ids = [(await store.record(an_entry(queue=queue)))[0] for queue in ("orders", "orders", "orders", "mails")]
        claims = await store.claim(ids, owner="engine", lease=LEASE)
        for claim in claims if marked else ():
            assert await store.settle(claim, Transition.SENT, by=ENGINE)
        for claim in claims[:2]:
            assert (await store.record(returned(claim, queue="orders")))[1] is Recorded.CAME_BACK
        for claim in claims[2:]:
            assert await store.confirm(claim.ticket, by=ENGINE)
        for claim in claims:  # what comes too late, or twice, changes no number
            assert not await store.settle(claim, Transition.SENT, by=ENGINE)
            assert not await store.confirm(claim.ticket, by=ENGINE)

        assert await redrives(store) == {
            ("orders", "sent"): 3,
            ("orders", "came_back"): 2,
            ("orders", "confirmed"): 1,
            ("mails", "sent"): 1,
            ("mails", "confirmed"): 1,
        }

    async def test_what_was_refused_or_let_go_was_not_sent(self, store: DeadLetterStore) -> None:
        for outcome in (Transition.REFUSED, Transition.UNCLAIM):
            claim = await claimed(store, (await store.record(an_entry()))[0])
            await store.settle(claim, outcome, by=ENGINE)

        assert await redrives(store) == {("orders", "not_sent"): 2}

    async def test_a_redrive_that_nobody_confirmed_is_not_counted_as_confirmed(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        by_hand, silent, late = [(await store.record(an_entry()))[0] for _ in range(3)]
        came_late = [await sent(store, each) for each in (by_hand, silent, late)][-1]
        await store.change([by_hand, late], Transition.RESOLVE, by=ANN)
        clock.set_wall(NOON + timedelta(hours=1))
        assert await store.assume([silent], sent_before=clock.now(), by=ENGINE) == 1
        assert (await store.record(returned(came_late)))[1] is Recorded.CAME_BACK

        expected = {"sent": 3, "by_hand": 2, "assumed": 1, "came_back": 1}
        assert await redrives(store) == {("orders", outcome): number for outcome, number in expected.items()}

    async def test_a_letter_that_is_purged_takes_no_number_of_its_redrives_along(
        self, store: DeadLetterStore
    ) -> None:
        placed = await place(store, Status.RESOLVED)
        await store.purge([placed.id], by=ANN)

        assert await redrives(store) == {("orders", "sent"): 1, ("orders", "by_hand"): 1}

    async def test_a_message_that_is_recorded_again_is_not_received_again(self, store: DeadLetterStore) -> None:
        await store.record(an_entry("it"))
        await store.record(an_entry("it"))

        assert await changes(store) == {("orders", "", "PENDING"): 1}

    async def test_what_is_purged_stays_counted(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.RESOLVED)
        before = await changes(store)
        await store.purge([placed.id], by=ANN)

        assert await changes(store) == before
        assert sum((await store.numbers()).by_status.values()) == 0

    async def test_many_in_one_transaction_are_counted_each(self, store: DeadLetterStore) -> None:
        recorded = await store.record_together([an_entry(queue=queue) for queue in ("a", "b", "a")])
        await store.change([letter_id for letter_id, _ in recorded], Transition.DISCARD, by=ANN)

        assert await changes(store) == {
            ("a", "", "PENDING"): 2,
            ("b", "", "PENDING"): 1,
            ("a", "PENDING", "DISCARDED"): 2,
            ("b", "PENDING", "DISCARDED"): 1,
        }

    async def test_resolutions_are_counted_by_how_long_they_took(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        for seconds in (0, 60, 61, 3600, 86400 * 31):
            clock.set_wall(NOON)
            letter_id, _ = await store.record(an_entry(at=NOON))
            clock.set_wall(NOON + timedelta(seconds=seconds))
            await store.change([letter_id], Transition.RESOLVE, by=ANN)

        resolved = [each for each in (await store.numbers()).transitions if each.after == Status.RESOLVED]

        assert {each.within: each.number for each in resolved} == {60: 2, 300: 1, 3600: 1, None: 1}
        assert sum(each.seconds for each in resolved) == 0 + 60 + 61 + 3600 + 86400 * 31

    async def test_numbers_are_the_same_before_and_after_they_are_added_up(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        many = 1100  # so many that they are added up on the way
        entries = [an_entry(queue=f"q{number % 3}") for number in range(many)]
        await store.record_together(entries[: many // 2])
        at_once = asyncio.gather(*(other.record_together(entries[many // 2 :]) for _ in range(2)))
        seen = [await changes(store)]
        await at_once
        seen.append(await changes(store))

        assert seen[0] <= seen[1]
        assert seen[1].total() == many

    async def test_queues_come_in_the_order_in_which_they_were_seen(self, store: DeadLetterStore) -> None:
        for queue in ("z", "a", "m", "a"):
            await store.record(an_entry(queue=queue))

        queues = [each.queue for each in (await store.numbers()).transitions]

        assert queues == ["z", "a", "m"]
