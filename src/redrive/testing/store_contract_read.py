"""Looking: one letter, pages, groups, numbers, the signing key."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from redrive.dead_letter import Status, Transition
from redrive.errors import UsageError
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.statistics import FailureRate, HandlerTally
from redrive.testing.letters import NOON, a_failure, a_group, a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, letter, place
from redrive.testing.store_contract_record import shown

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore

_HOSTILE = ["", "%", "_", "\x00", "\ud800", "\U0010ffff", "' OR 1=1 --", "0" * 36, "x" * 10_000]


class GetContract(StoreCase):
    async def test_the_beginning_of_an_id_will_do(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())

        for given in (letter_id, letter_id[:8], letter_id[:20], letter_id[:13].upper()):
            found = await store.get(given)
            assert found is not None
            assert found.id == letter_id
        assert await store.get(letter_id[:7]) is None

    async def test_an_ambiguous_beginning_is_a_usage_error_that_names_it(self, store: DeadLetterStore) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(40)]
        beginning = next(each[:8] for each in ids if sum(other[:8] == each[:8] for other in ids) > 1)

        with pytest.raises(UsageError, match=beginning):
            await store.get(beginning)

    @pytest.mark.parametrize("unknown", _HOSTILE, ids=shown)
    async def test_an_unknown_id_is_none(self, store: DeadLetterStore, unknown: str) -> None:
        await store.record(an_entry())

        assert await store.get(unknown) is None


class FindContract(StoreCase):
    async def test_pages_hold_every_letter_once_newest_first(self, store: DeadLetterStore) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(120)]
        found: list[DeadLetter] = []
        query = LetterQuery(limit=7)

        while page := await store.find(query):
            assert len(page) <= 7
            found += page
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))

        assert [each.id for each in found] == list(reversed(ids))

    async def test_pages_go_back_as_they_went_forth(self, store: DeadLetterStore) -> None:
        ids = [(await store.record(an_entry(at=NOON + timedelta(days=day % 5))))[0] for day in range(30)]
        forth = await store.find(LetterQuery(limit=MAX_PAGE))
        query = LetterQuery(limit=7, before=Place.of(forth[-1]))
        back = [forth[-1]]

        while page := await store.find(query):
            assert len(page) <= 7
            back = page + back
            query = msgspec.structs.replace(query, before=Place.of(page[0]))

        assert back == forth
        assert sorted(each.id for each in forth) == ids

    async def test_a_page_is_never_larger_than_the_largest(self, store: DeadLetterStore) -> None:
        await asyncio.gather(*(store.record(an_entry()) for _ in range(MAX_PAGE + 5)))

        assert len(await store.find(LetterQuery(limit=10_000))) == MAX_PAGE
        assert [await store.find(LetterQuery(limit=limit)) for limit in (0, -1)] == [[], []]

    async def test_a_listed_letter_is_the_same_without_its_story(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry(attempts=2))

        [listed] = await store.find(LetterQuery(bodies=True))

        whole = await letter(store, letter_id)
        bare = msgspec.structs.replace(whole, failures=(), generations=(), revisions=(), history=())
        assert listed == bare

    async def test_a_list_has_no_bodies_unless_they_are_asked_for(self, store: DeadLetterStore) -> None:
        message = a_message(body=b"x" * 1000, key=b"k", headers=(("a", 1),), properties=b"p")
        letter_id, _ = await store.record(an_entry(message=message))
        await store.revise(letter_id, message.with_headers((("a", 2),)), base=0, by=ANN)

        [bare] = await store.find(LetterQuery())
        [full] = await store.find(LetterQuery(bodies=True))

        assert full.message == message.with_headers((("a", 2),))
        light = msgspec.structs.replace(full.message, body=None, properties=None)
        assert bare == msgspec.structs.replace(full, message=light)

    async def test_every_condition_that_is_set_must_match(self, store: DeadLetterStore) -> None:
        at = NOON + timedelta(hours=1)
        failure = a_failure(type="shop.errors.SoldOut")
        wanted, _ = await store.record(
            an_entry(queue="mails", handler="send", failures=(failure,), group="sold out", at=at)
        )
        await store.record(an_entry())

        for query in (
            LetterQuery(ids=(wanted, "no such letter")),
            LetterQuery(queue="mails"),
            LetterQuery(handler="send"),
            LetterQuery(type="shop.errors.SoldOut"),
            LetterQuery(type="SoldOut"),
            LetterQuery(group=a_group("sold out").id),
            LetterQuery(group=a_group("sold out").id[:6]),
            LetterQuery(created_after=NOON),
            LetterQuery(status=Status.PENDING, queue="mails", type="SoldOut", handler="send"),
        ):
            assert [each.id for each in await store.find(query)] == [wanted], query
        assert [each.queue for each in await store.find(LetterQuery(created_before=at))] == ["orders"]
        for query in (
            LetterQuery(queue="mails", handler="charge"),
            LetterQuery(status=Status.RESOLVED),
            LetterQuery(type="Out"),
            LetterQuery(type="soldout"),
            LetterQuery(type="errors.SoldOut"),
            LetterQuery(ids=()),
            LetterQuery(ids=(wanted,), queue="orders"),
        ):
            assert await store.find(query) == [], query

    @pytest.mark.parametrize("status", Status)
    async def test_letters_are_found_by_status(self, store: DeadLetterStore, status: Status) -> None:
        placed = {each: (await place(store, each)).id for each in Status}

        assert [each.id for each in await store.find(LetterQuery(status=status))] == [placed[status]]

    @pytest.mark.parametrize("text", [text for text in _HOSTILE if text], ids=shown)
    async def test_text_that_looks_like_a_pattern_or_a_statement_is_only_text(
        self, store: DeadLetterStore, text: str
    ) -> None:
        await store.record(an_entry())

        for query in (
            LetterQuery(ids=(text,)),
            LetterQuery(queue=text),
            LetterQuery(handler=text),
            LetterQuery(type=text),
        ):
            assert await store.find(query) == []

    async def test_a_beginning_of_a_group_is_no_pattern(self, store: DeadLetterStore) -> None:
        await store.record(an_entry())

        assert [await store.find(LetterQuery(group=each)) for each in ("%", "_", "\x00", "\ud800")] == [[]] * 4

    async def test_many_ids_are_looked_up_at_once_and_too_many_are_refused(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        many = tuple(f"{number}" for number in range(5_000))

        assert [each.id for each in await store.find(LetterQuery(ids=(*many, letter_id)))] == [letter_id]
        with pytest.raises(UsageError, match="ids"):
            await store.find(LetterQuery(ids=many * 3))


class GroupContract(StoreCase):
    async def test_a_group_tells_what_its_letters_share(self, store: DeadLetterStore) -> None:
        first, last = NOON, NOON + timedelta(days=1)
        ids = [(await store.record(an_entry(at=at)))[0] for at in (last, first)]

        [group] = await store.groups()

        assert (group.id, group.title) == (a_group().id, a_group().title)
        assert (group.queue, group.handler, group.total, group.pending) == ("orders", "charge", 2, 2)
        assert (group.first_seen, group.last_seen) == (first, last)
        assert group.example == ids[0]  # the one that failed last

    async def test_most_pending_come_first_then_the_most_recent(self, store: DeadLetterStore) -> None:
        for group, number, day in (("old", 1, 1), ("new", 1, 2), ("many", 3, 0)):
            for _ in range(number):
                await store.record(an_entry(group=group, at=NOON + timedelta(days=day)))
        done, _ = await store.record(an_entry(group="solved", at=NOON + timedelta(days=9)))
        await store.change([done], Transition.RESOLVE, by=ANN)

        groups = await store.groups()

        titles = [group.title.removeprefix("NoCustomer: ") for group in groups]
        assert titles == ["many", "new", "old", "solved"]
        assert [(group.total, group.pending) for group in groups] == [(3, 3), (1, 1), (1, 1), (1, 0)]
        assert await store.groups(limit=2) == groups[:2]
        assert [await store.groups(limit=limit) for limit in (0, -1)] == [[], []]

    async def test_groups_are_listed_by_queue(self, store: DeadLetterStore) -> None:
        await store.record(an_entry(queue="orders", group="a"))
        await store.record(an_entry(queue="mails", group="b"))

        assert [group.title for group in await store.groups(queue="mails")] == ["NoCustomer: b"]
        assert await store.groups(queue="\ud800") == []

    async def test_only_letters_are_counted_not_their_deliveries(self, store: DeadLetterStore) -> None:
        for second in range(3):
            await store.record(an_entry("it", at=NOON + timedelta(seconds=second)))

        assert [group.total for group in await store.groups()] == [1]


class StatisticsContract(StoreCase):
    async def test_an_empty_store_counts_nothing(self, store: DeadLetterStore) -> None:
        numbers = await store.statistics(older_than=NOON)

        assert (numbers.total, numbers.older, numbers.oldest) == (0, 0, None)
        assert numbers.by_status == {str(status): 0 for status in Status}
        assert (numbers.by_queue, numbers.by_type) == ({}, {})
        assert (list(numbers.reasons), list(numbers.failure_rates)) == ([], [])

    async def test_numbers_are_of_the_open_letters(self, store: DeadLetterStore) -> None:
        sold_out = (a_failure(type="shop.errors.SoldOut"),)
        for hour in range(3):
            await store.record(an_entry(at=NOON + timedelta(hours=hour)))
        await store.record(an_entry(queue="mails", failures=sold_out, group="sold out", quarantine="deaths"))
        for status in (Status.REDRIVING, Status.REDRIVEN, Status.RESOLVED, Status.DISCARDED):
            await place(store, status, an_entry(queue="other", at=NOON - timedelta(days=1)))

        numbers = await store.statistics(older_than=NOON + timedelta(hours=1))

        assert numbers.total == 8
        assert numbers.by_status == {
            "PENDING": 3,
            "REDRIVING": 1,
            "REDRIVEN": 1,
            "RESOLVED": 1,
            "DISCARDED": 1,
            "QUARANTINED": 1,
        }
        assert numbers.by_queue == {"orders": 3, "mails": 1}
        assert numbers.by_type == {"shop.errors.NoCustomer": 3, "shop.errors.SoldOut": 1}
        assert list(numbers.reasons) == [("NoCustomer: no customer", 3), ("NoCustomer: sold out", 1)]
        assert (numbers.oldest, numbers.older) == (NOON, 2)

    async def test_tallies_add_up_per_handler_the_worst_first(self, store: DeadLetterStore) -> None:
        await store.tally([HandlerTally("charge", "orders", 90, 10), HandlerTally("\ud800", "mails", 1, 1)])
        await store.tally([HandlerTally("charge", "orders", 5, 5), HandlerTally("charge", "refunds", 5, 5)])
        await store.tally([])

        rates = (await store.statistics()).failure_rates

        assert list(rates) == [FailureRate("\ud800", 1, 1), FailureRate("charge", 100, 20)]

    async def test_tallies_from_many_at_once_are_all_counted(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        one = [HandlerTally("charge", "orders", 2, 1)]

        await asyncio.gather(*((store if number % 2 else other).tally(one) for number in range(40)))

        assert list((await store.statistics()).failure_rates) == [FailureRate("charge", 80, 40)]


class SigningKeyContract(StoreCase):
    async def test_the_signing_key_is_long_and_the_same_for_everybody(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        keys = await asyncio.gather(store.signing_key(), other.signing_key(), store.signing_key())

        assert len(set(keys)) == 1
        assert len(keys[0]) >= 32
        assert await other.signing_key() == keys[0]
