"""What a run would take, told before: numbers, ends, what was tried before."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import MAX_GENERATIONS, Status, Transition
from redrive.letter_query import Count, LetterQuery
from redrive.preview import Endings, GroupShare, Overview
from redrive.search import parse
from redrive.testing.letters import NOON, a_group, a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, place, returned, sent

if TYPE_CHECKING:
    from redrive.stores import RunStore

_LATER = NOON + timedelta(days=1)
_BOTH_WAYS = ["queue:orders", "queue:orders attempts:<100", "queue:orders customer"]
"""By counters, by looking at letters, and by the search index: each gives the same letters."""


def asking(text: str = "") -> LetterQuery:
    return LetterQuery(where=parse(text, now=_LATER))


async def ten(store: RunStore) -> list[str]:
    """Seven of `orders` in two groups, three of `mails`; an hour apart, the oldest first."""
    ids = []
    for number in range(10):
        queue = "mails" if number % 3 == 1 else "orders"
        group = "second" if number in {0, 9} else "first"
        entry = an_entry(queue=queue, group=f"{queue} {group}", at=NOON + timedelta(hours=number))
        ids.append((await store.record(entry))[0])
    return ids


class OverviewContract(StoreCase):
    @pytest.mark.parametrize("text", _BOTH_WAYS)
    async def test_numbers_are_by_queue_and_by_group_with_the_ends(self, store: RunStore, text: str) -> None:
        ids = await ten(store)

        told = await store.overview(asking(text))

        first, second = a_group("orders first"), a_group("orders second")
        assert (told.count, told.exact, told.spread_over, told.looked_at) == (7, True, 7, 7)
        assert told.by_queue == {"orders": 7}
        assert told.groups == 2
        assert told.by_group == (GroupShare(first.id, first.title, 5), GroupShare(second.id, second.title, 2))
        assert (told.oldest, told.newest) == (NOON, NOON + timedelta(hours=9))
        assert [each.id for each in told.sample] == [ids[number] for number in (0, 2, 3, 5, 6)]
        assert {each.message.body for each in told.sample} == {None}

    async def test_all_queues_come_the_largest_first(self, store: RunStore) -> None:
        await ten(store)

        told = await store.overview(LetterQuery())

        assert list(told.by_queue.items()) == [("orders", 7), ("mails", 3)]
        assert told.groups == 3

    @pytest.mark.parametrize("text", _BOTH_WAYS)
    async def test_of_no_more_than_are_wanted_the_oldest_are_told(self, store: RunStore, text: str) -> None:
        await ten(store)

        told = await store.overview(asking(text), at_most=2)

        assert (told.count, told.exact, told.looked_at, told.spread_over) == (2, True, 2, 2)
        assert sum(share.count for share in told.by_group) == 2
        if "customer" not in text:  # what the search index finds is in no order
            assert (told.oldest, told.newest) == (NOON, NOON + timedelta(hours=2))

    async def test_more_wanted_than_there_are_is_all_of_them(self, store: RunStore) -> None:
        await ten(store)

        assert await store.overview(asking(), at_most=11) == await store.overview(asking())

    @pytest.mark.parametrize("text", ["age:>20h", "age:>20h attempts:<100", "before:2026-01-01T16:00Z"])
    async def test_a_time_is_kept_to_the_letter(self, store: RunStore, text: str) -> None:
        await ten(store)  # at 12:00, 13:00, ...; twenty hours before the asking is 16:00

        told = await store.overview(asking(text))

        assert told.count == 4
        assert (told.oldest, told.newest) == (NOON, NOON + timedelta(hours=3))

    @pytest.mark.parametrize("text", ["queue:nowhere", "attempts:>100", "unheard", "age:<1h age:>2h"])
    async def test_nothing_is_an_overview_too(self, store: RunStore, text: str) -> None:
        await ten(store)

        assert await store.overview(asking(text)) == Overview(count=0, exact=True)

    async def test_ids_are_counted_once_and_only_those_that_are_pending(self, store: RunStore) -> None:
        ids = await ten(store)
        await store.change([ids[0]], Transition.DISCARD, by=ANN)

        told = await store.overview(LetterQuery(ids=(ids[0], ids[1], ids[1], ids[2], "no such letter")))

        assert (told.count, told.exact) == (2, True)
        assert told.by_queue == {"mails": 1, "orders": 1}

    @pytest.mark.parametrize("text", _BOTH_WAYS)
    async def test_only_pending_letters_are_taken_and_quarantined_ones_told(
        self, store: RunStore, text: str
    ) -> None:
        for status in Status:
            await place(store, status)

        told = await store.overview(asking(text))
        named = await store.overview(LetterQuery(status=Status.PENDING, where=parse(text, now=_LATER)))

        assert (told.count, told.quarantined) == (1, Count(1, exact=True))
        assert (named.count, named.quarantined) == (1, Count(0, exact=True))

    async def test_how_earlier_redrives_ended_is_told(self, store: RunStore) -> None:
        back, silent, confirmed, refused = [(await store.record(an_entry()))[0] for _ in range(4)]
        await store.record(an_entry())
        await store.record(returned(await sent(store, back)))
        await sent(store, silent)
        assert await store.confirm((await sent(store, confirmed)).ticket, by=ANN)
        [claim] = await store.claim([refused], owner="engine", lease=60.0)
        await store.settle(claim, Transition.REFUSED, by=ANN)

        told = await store.overview(LetterQuery())

        assert (told.count, told.redriven) == (3, 2)
        assert told.own == Endings(came_back=1, refused=1)
        assert told.earlier == Endings(confirmed=1, came_back=1, refused=1, without_word=1)

    async def test_a_letter_is_told_that_is_at_its_last_try(self, store: RunStore) -> None:
        letter_id, _ = await store.record(an_entry())
        for _ in range(MAX_GENERATIONS - 1):
            assert (await store.overview(LetterQuery())).last_chance == 0
            await store.record(returned(await sent(store, letter_id)))

        assert (await store.overview(LetterQuery())).last_chance == 1
        await store.record(returned(await sent(store, letter_id)))
        assert (await store.overview(LetterQuery())).quarantined == Count(1, exact=True)

    async def test_letters_that_were_edited_are_told(self, store: RunStore) -> None:
        edited, discarded, _ = [(await store.record(an_entry()))[0] for _ in range(3)]
        for each in (edited, discarded):
            await store.revise(each, a_message(body=b"corrected"), base=0, by=ANN)
        await store.change([discarded], Transition.DISCARD, by=ANN)

        assert (await store.overview(LetterQuery())).edited == 1
        assert (await store.count(asking("revision:>0 status:PENDING"))) == Count(1, exact=True)
        assert [each.id for each in await store.find(asking("revision:>0 status:PENDING"))] == [edited]

    async def test_keys_are_told_and_whether_two_share_one(self, store: RunStore) -> None:
        for queue, key in (("orders", b"1"), ("orders", b"1"), ("mails", b"1"), ("mails", None)):
            await store.record(an_entry(queue=queue, message=a_message(queue=queue, key=key)))

        told = await store.overview(LetterQuery())

        assert (told.keys_of, told.keyed, told.same_key, told.ordered) == (4, 3, 2, 0)

    async def test_letters_whose_order_is_kept_are_told_apart(self, store: RunStore) -> None:
        await store.record(an_entry(message=a_message(key=b"1"), lane="a"))
        await store.record(an_entry(lane="b"))
        await store.record(an_entry(message=a_message(key=b"1")))

        told = await store.overview(LetterQuery())

        assert (told.keys_of, told.keyed, told.ordered) == (3, 1, 2)

    @pytest.mark.parametrize("text", _BOTH_WAYS)
    async def test_letters_older_than_their_queue_allows_are_counted(self, store: RunStore, text: str) -> None:
        await ten(store)
        limits = {"orders": NOON + timedelta(hours=3), "mails": NOON - timedelta(hours=1)}

        assert await store.count_older(asking(text), limits) == {"orders": Count(2, exact=True)}
        assert await store.count_older(asking(text), {"orders": NOON}) == {}
        if "customer" not in text:
            one = await store.count_older(asking(text), limits, at_most=1)
            assert one == {"orders": Count(1, exact=True)}
