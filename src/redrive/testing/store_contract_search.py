"""Searching: filters, counts, known values, and the index behind them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from redrive.dead_letter import Status, Transition
from redrive.letter_query import Count, LetterQuery, Place
from redrive.message import Message
from redrive.search import Field, parse
from redrive.search_document import MAX_SEARCHED
from redrive.statistics import KnownValue
from redrive.testing.letters import NOON, a_failure, a_group, a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, letter, place, returned, sent

if TYPE_CHECKING:
    from redrive.dead_letter import Entry
    from redrive.message import Headers
    from redrive.stores import DeadLetterStore

_MANY = 250


def asking(text: str, **given: object) -> LetterQuery:
    return LetterQuery(where=parse(text, now=NOON + timedelta(days=1)), **given)  # type: ignore[arg-type]  # LetterQuery's own


async def found(store: DeadLetterStore, text: str) -> list[str]:
    return [each.id for each in await store.find(asking(text))]


def a_body(body: bytes | None, headers: Headers = ()) -> Entry:
    return an_entry(message=a_message(body=body, headers=headers))


class SearchContract(StoreCase):
    @pytest.mark.parametrize(
        "text",
        [
            "customer",
            '"has NO customer"',
            "cust*",
            '"no cust"*',
            "nocustomer",
            "jose",
            "SÃO",
            '"são paulo"',
            "data.customer.id:123",
            "data.customer.id:123.0",
            "data.customer.id:>122",
            "data.customer.name:José",
            "data.customer.name:Jos*",
            "data.customer:*",
            "data.items.sku:B",
            "data.items.1.sku:B",
            "data.big:123456789012345678901234567890",
            "data.vip:true",
            "data.gone:null",
            "header.tenant:acme",
            "header.tenant:b*",
            "header.tenant:*",
            "-refund",
            "-data.customer.id:124",
            "-header.tenant:c",
        ],
    )
    async def test_a_letter_is_found_by_what_is_in_it(self, store: DeadLetterStore, text: str) -> None:
        data = {
            "customer": {"id": 123, "name": "José"},
            "items": [{"sku": "A"}, {"sku": "B"}],
            "city": "São Paulo",
            "vip": True,
            "gone": None,
        }
        headers = (("tenant", "acme"), ("tenant", "beta"))
        message = Message.create(id="m", sent_at=NOON, queue="orders", data=data, headers=headers)
        body = (message.body or b"").replace(b'"vip":', b'"big":123456789012345678901234567890,"vip":')
        letter_id, _ = await store.record(an_entry(message=msgspec.structs.replace(message, body=body)))
        other = a_failure(type="Refund", text="refund refused")
        await store.record(
            an_entry(
                message=a_message(body=b'{"customer": {"id": 124}}', headers=(("tenant", "c"),)),
                failures=(other,),
            )
        )

        assert letter_id in await found(store, text)
        assert letter_id in await found(store, f'queue:orders {text} -refund data.customer.id:123 "no customer"')
        assert letter_id not in await found(store, text[1:] if text.startswith("-") else f"-{text}")

    @pytest.mark.parametrize("text", ['"customer order"', '"17 17"', "custom", "data.order:18", "data.order.x:*"])
    async def test_a_letter_is_not_found_by_what_is_not_in_it(self, store: DeadLetterStore, text: str) -> None:
        """Neither by words of which one ends the error and the other begins the body."""
        letter_id, _ = await store.record(an_entry())

        assert await found(store, text) == []
        assert await found(store, f"-{text}") == [letter_id]

    async def test_a_beginning_finds_all_that_begins_so_and_nothing_else(self, store: DeadLetterStore) -> None:
        queues = ["mail", "mail.eu", "mail\u00e9", "mail\U0010ffff!", "mail\x00", "mai", "Mail", "mbil", "mail%"]
        for queue in queues:
            await store.record(an_entry(queue=queue))

        letters = await store.find(asking("queue:mail*"))

        assert sorted(each.queue for each in letters) == sorted(each for each in queues if each.startswith("mail"))
        assert {each.queue for each in await store.find(asking("-queue:mail*"))} == {"mai", "Mail", "mbil"}
        assert [each.queue for each in await store.find(asking("queue:mail%*"))] == ["mail%"]

    async def test_a_phrase_is_found_wherever_it_stands_in_a_long_body(self, store: DeadLetterStore) -> None:
        words = [f"w{number}" for number in range(25_000)]
        words[12_000:12_600] = ["again"] * 600
        letter_id, _ = await store.record(a_body(" ".join(words).encode()))
        await store.record(a_body(b"short"))

        for start in (0, 9_960, 9_984, 9_990, 10_000, 11_990, 12_250, 12_570, 19_930, 24_968):
            phrase = " ".join(words[start : start + 32])
            assert await found(store, f'"{phrase}"') == [letter_id], start
        assert await found(store, '"w5 w7"') == []

    async def test_a_body_is_searched_as_far_as_promised(self, store: DeadLetterStore) -> None:
        early, late = b"early ", b" late"
        body = early + b"x" * (MAX_SEARCHED - len(early) - 1) + late
        letter_id, _ = await store.record(a_body(body))

        assert await found(store, "early") == [letter_id]
        assert await found(store, "late") == []

    async def test_pages_of_a_filter_go_forth_and_back(self, store: DeadLetterStore) -> None:
        for number in range(60):
            at = NOON + timedelta(minutes=number % 7)
            await store.record(an_entry(message=a_message(body=b'{"n": %d}' % (number % 2)), at=at))
        every = await store.find(asking("data.n:1", limit=100))
        query = asking("data.n:1", limit=7)

        forth = []
        while page := await store.find(query):
            forth += page
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))
        back = [every[-1]]
        query = asking("data.n:1", limit=7, before=Place.of(every[-1]))
        while page := await store.find(query):
            back = page + back
            query = msgspec.structs.replace(query, before=Place.of(page[0]))

        assert len(every) == 30
        assert forth == back == every


class IndexContract(StoreCase):
    async def test_letters_wait_to_be_indexed_and_a_search_waits_for_them(self, store: DeadLetterStore) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(5)]

        assert await store.search_backlog() == 5
        assert await store.index(at_most=2) == 2
        assert await store.search_backlog() == 3
        assert sorted(await found(store, "customer")) == ids
        assert await store.search_backlog() == 0
        assert await store.index() == 0

    async def test_an_edit_is_found_and_what_it_replaced_is_not(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(a_body(b'{"colour": "red"}', (("tenant", "acme"),)))
        assert await found(store, "red") == [letter_id]

        await store.revise(letter_id, a_message(body=b'{"colour": "blue"}'), base=0, by=ANN)

        assert await found(store, "blue") == await found(store, "data.colour:blue") == [letter_id]
        for gone in ("red", "data.colour:red", "header.tenant:acme"):
            assert await found(store, gone) == []

    async def test_a_letter_that_came_back_is_found_by_its_new_error(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        assert await found(store, '"no customer"') == [letter_id]

        claim = await sent(store, letter_id)
        await store.record(returned(claim, failures=(a_failure(text="out of stock"),)))

        assert await found(store, '"out of stock"') == [letter_id]
        assert await found(store, '"no customer"') == []

    async def test_what_is_purged_is_not_found_and_does_not_wait(self, store: DeadLetterStore) -> None:
        indexed = await place(store, Status.RESOLVED)
        await store.index()
        waiting = await place(store, Status.RESOLVED)

        assert await store.purge([indexed.id, waiting.id], by=ANN) == {}

        assert await store.search_backlog() == 0
        assert await found(store, "customer") == []
        assert (await store.count(asking("customer"))).number == 0

    async def test_what_is_restored_whole_is_found(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.RESOLVED)
        whole = await letter(store, placed.id)
        await store.purge([placed.id], by=ANN)

        assert await store.restore_whole([whole], by=ANN)

        assert await found(store, "customer data.order:17") == [placed.id]

    async def test_indexers_at_once_index_each_letter_once(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        entries = [a_body(b'{"n": %d}' % number) for number in range(_MANY)]
        ids = [letter_id for letter_id, _ in await asyncio.gather(*(store.record(each) for each in entries))]

        async def all_of_it(each: DeadLetterStore) -> int:
            done = 0
            while number := await each.index(at_most=10):
                done += number
            return done

        done = await asyncio.gather(*(all_of_it(each) for each in (store, other, store, other)))
        done.append(await store.index(at_most=_MANY))  # what was in another's hands at somebody's end

        assert sum(done) == _MANY
        assert await store.search_backlog() == 0
        assert sorted(each.id for each in await store.find(asking("data.n:*", limit=_MANY))) == sorted(ids)
        assert (await store.count(asking("customer"))).number == _MANY

    async def test_letters_that_change_while_they_are_indexed_are_found_as_they_are(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        ids = [(await store.record(a_body(b'{"state": "old"}')))[0] for _ in range(40)]

        async def index() -> None:
            for _ in range(40):
                await other.index(at_most=3)

        async def revise() -> None:
            for each in ids:
                await store.revise(each, a_message(body=b'{"state": "new"}'), base=0, by=ANN)

        await asyncio.gather(index(), revise())

        assert sorted(await found(store, "data.state:new")) == ids
        assert await found(store, "data.state:old") == []


class CountContract(StoreCase):
    async def test_counts_are_those_of_the_letters(self, store: DeadLetterStore) -> None:
        for number in range(24):
            entry = an_entry(
                queue=f"queue {number % 3}",
                handler=f"handler {number % 2}",
                group=f"group {number % 4}",
                at=NOON + timedelta(minutes=17 * number),
            )
            letter_id, _ = await store.record(entry)
            if number % 5 == 0:
                await store.change([letter_id], Transition.DISCARD, by=ANN)
        group = a_group("group 1").id
        edge = (NOON + timedelta(hours=2)).isoformat()
        inside = (NOON + timedelta(minutes=17 * 9)).isoformat()

        for text in (
            "",
            'queue:"queue 1"',
            "-handler:handler*",
            "status:PENDING",
            'status:PENDING,DISCARDED -queue:"queue 0"',
            f"group:{group}",
            "type:NoCustomer",
            "event:*",
            "owner:*",
            "-owner:*",
            f"before:{edge}",
            f"after:{edge} status:PENDING",
            f"created:>{inside}",
            f"created:>={inside} -created:<{edge}",
            f"created:<={inside} kind:permanent",
            f"after:{inside} before:{inside}",
            f"created:>={inside} created:<={inside}",
            "before:9999-12-31T23:59:59.999999",
            "created:>9999-12-31T23:59:59.999999",
            "attempts:1",
            "customer",
        ):
            query = asking(text, limit=100)
            assert await store.count(query) == Count(len(await store.find(query)), exact=True), text

    async def test_a_count_is_of_all_pages(self, store: DeadLetterStore) -> None:
        for _ in range(7):
            await store.record(an_entry())
        page = await store.find(LetterQuery(limit=3))

        for text in ("", "customer", "attempts:>=1"):
            for query in (asking(text, limit=2), asking(text, after=Place.of(page[-1]))):
                assert await store.count(query) == Count(7, exact=True)

    async def test_counting_stops_where_it_is_told_to(self, store: DeadLetterStore) -> None:
        for _ in range(7):
            await store.record(an_entry())

        for text in ("customer", "attempts:>=1"):
            assert await store.count(asking(text), at_most=5) == Count(5, exact=False)
            assert await store.count(asking(text), at_most=7) == Count(7, exact=True)
        assert await store.count(LetterQuery(), at_most=5) == Count(7, exact=True), "the counters know"


class KnownValuesContract(StoreCase):
    async def test_known_values_are_those_of_letters_the_most_frequent_first(self, store: DeadLetterStore) -> None:
        for queue in ("orders", "mail", "orders", "orders.eu", "orders", "orders.eu"):
            await store.record(an_entry(queue=queue))
        group = a_group()
        await store.annotate(group.id, owner="payments", by=ANN)

        assert await store.known_values(Field.QUEUE) == [
            KnownValue("orders", 3),
            KnownValue("orders.eu", 2),
            KnownValue("mail", 1),
        ]
        assert [each.value for each in await store.known_values(Field.QUEUE, "orders.")] == ["orders.eu"]
        assert [each.value for each in await store.known_values(Field.QUEUE, limit=1)] == ["orders"]
        types = {each.value for each in await store.known_values(Field.TYPE)}
        assert types == {"NoCustomer", "shop.errors.NoCustomer"}
        assert await store.known_values(Field.GROUP) == [KnownValue(group.id, 6, group.title)]
        assert await store.known_values(Field.OWNER) == [KnownValue("payments", 6)]
        assert await store.known_values(Field.ATTEMPTS) == []
