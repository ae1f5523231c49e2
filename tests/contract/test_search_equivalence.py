"""SQLite, PostgreSQL and the definition in plain Python find the same letters, whatever is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from sqlalchemy.dialects import postgresql, sqlite

from redrive.access import Scope
from redrive.dead_letter import DeadLetter, Transition
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.search import DataTerm, FieldTerm, Filter, HeaderTerm, Term, TextTerm
from redrive.search_match import matches
from redrive.stores import DeadLetterStore
from redrive.stores.postgres import PostgresStore
from redrive.stores.postgres_search import _gathered_page
from redrive.stores.sql_selection import page_of
from redrive.stores.sqlite import SqliteStore
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON
from redrive.testing.store_case import ANN, returned, sent
from support.amounts import EXPLAINED_FILTERS
from support.filters import filters
from support.search_corpus import OWNERS, Asker, a_delivery, an_order, facts_of, seeded

LETTERS, FILTERS = 300, 1000


class Shelf(NamedTuple):
    """The same letters in both stores, newest first."""

    letters: list[DeadLetter]
    owners: dict[str, str | None]
    facts: dict[str, dict[str, str | None]]
    stores: dict[str, DeadLetterStore]

    def matching(self, filter_: Filter, within: Scope = None) -> list[str]:
        """By the definition."""
        return [each.id for each in self.letters if matches(filter_, each, within, **self.facts[each.id])]


@pytest.fixture
async def shelf(tmp_path: Path, postgres_store_url: str) -> AsyncIterator[Shelf]:
    clock = ManualClock(NOON)
    stores: dict[str, DeadLetterStore] = {
        "sqlite": SqliteStore(f"sqlite:///{tmp_path}/letters.db", clock=clock),
        "postgresql": PostgresStore(postgres_store_url, clock=clock),
    }
    random = seeded(4711)
    letters = await _recorded(stores["sqlite"], random)
    await stores["postgresql"].restore_whole(letters, by=ANN)
    owners = {group_id: random.choice(OWNERS) for group_id in sorted({each.group_id for each in letters})}
    for store in stores.values():
        for group_id, owner in owners.items():
            await store.annotate(group_id, owner=owner, by=ANN)
    facts = {each.id: facts_of(each, owners[each.group_id]) for each in letters}
    yield Shelf(letters, owners, facts, stores)
    for store in stores.values():
        await store.close()


async def _recorded(store: DeadLetterStore, random: Random) -> list[DeadLetter]:
    """Letters, some of which have been edited, have come back, or are settled."""
    ids = [(await store.record(an_order(random, number)))[0] for number in range(LETTERS)]
    for each in random.sample(ids, 30):
        await store.revise(each, a_delivery(random), base=0, by=ANN)
    for each in random.sample(ids, 30):
        again = an_order(random, 0)
        claim = await sent(store, each)
        await store.record(returned(claim, failures=again.failures, at=again.at))
    for each in random.sample(ids, 60):
        transition = random.choice([Transition.DISCARD, Transition.RESOLVE, Transition.QUARANTINE])
        await store.change([each], transition, by=ANN)
    found = [letter for each in ids if (letter := await store.get(each)) is not None]
    return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)


async def _all(
    store: DeadLetterStore, filter_: Filter, within: Scope = None, *, limit: int = MAX_PAGE
) -> list[str]:
    """Every page, one after the other."""
    found: list[str] = []
    query = LetterQuery(where=filter_, within=within, limit=limit)
    while page := await store.find(query):
        found += [each.id for each in page]
        if len(page) < limit:
            break
        query = msgspec.structs.replace(query, after=Place.of(page[-1]))
    return found


async def test_both_databases_find_what_the_definition_says(shelf: Shelf) -> None:
    asker = Asker(seeded(1), shelf.letters, shelf.owners)
    fruitful = 0
    for _ in range(FILTERS):
        filter_, within = asker.filter(), asker.scope()
        expected = shelf.matching(filter_, within)
        fruitful += 0 < len(expected) < LETTERS
        for name, store in shelf.stores.items():
            assert await _all(store, filter_, within) == expected, (name, filter_, within)
            count = await store.count(LetterQuery(where=filter_, within=within))
            assert (count.number, count.exact) == (len(expected), True), (name, filter_, within)
    assert fruitful > FILTERS / 3, "filters that find all or nothing tell little"


async def test_pages_of_a_filter_are_the_same_forth_and_back(shelf: Shelf) -> None:
    asker = Asker(seeded(2), shelf.letters, shelf.owners)
    for _ in range(40):
        filter_, within = asker.filter(), asker.scope()
        expected = shelf.matching(filter_, within)
        for name, store in shelf.stores.items():
            assert await _all(store, filter_, within, limit=7) == expected, (name, filter_, within)
            backwards = await _all_backwards(store, filter_, within, shelf.letters[-1])
            assert backwards == expected, (name, filter_, within)


async def _all_backwards(store: DeadLetterStore, filter_: Filter, within: Scope, oldest: DeadLetter) -> list[str]:
    before = Place(oldest.created_at, "")
    found: list[str] = []
    query = LetterQuery(where=filter_, within=within, limit=7, before=before)
    while page := await store.find(query):
        found = [each.id for each in page] + found
        query = msgspec.structs.replace(query, before=Place.of(page[0]))
    return found


async def test_a_count_stops_where_it_is_told_to(shelf: Shelf) -> None:
    asker = Asker(seeded(3), shelf.letters, shelf.owners)
    for _ in range(60):
        filter_ = asker.filter()
        expected = len(shelf.matching(filter_))
        for name, store in shelf.stores.items():
            count = await store.count(LetterQuery(where=filter_), at_most=10)
            wanted = (expected, True) if count.exact else (10, False)
            assert (count.number, count.exact) == wanted, (name, filter_)
            assert count.exact or expected > 10, (name, filter_)


DIALECTS = {"postgresql": postgresql.dialect(), "sqlite": sqlite.dialect()}  # type: ignore[no-untyped-call]  # SQLAlchemy's
MARK, NUMBER = "zzmarkzz", 1_918_273_645


@settings(max_examples=EXPLAINED_FILTERS)
@given(filters)
def test_nothing_that_a_person_wrote_is_in_the_sql(filter_: Filter) -> None:
    where, within = Filter(tuple(map(_marked, filter_.terms))), (MARK, f"{MARK}*")
    query = LetterQuery(where=where, queue=MARK, group=MARK, within=within)
    leaders = [term for term in query.where.terms if not isinstance(term, FieldTerm)]
    statements = [
        *(page_of(query, name).compile(dialect=dialect) for name, dialect in DIALECTS.items()),
        *(_gathered_page(query, leader).compile(dialect=DIALECTS["postgresql"]) for leader in leaders),
    ]
    for statement in map(str, statements):
        assert MARK not in statement
        assert str(NUMBER) not in statement


def _marked(term: Term) -> Term:
    """The same, but every text and number in it can be recognised."""
    if isinstance(term, TextTerm):
        return msgspec.structs.replace(term, text=f"{MARK} {term.text}"[:100])
    if isinstance(term, HeaderTerm):
        term = msgspec.structs.replace(term, name=term.name + MARK)
    if isinstance(term, DataTerm):
        term = msgspec.structs.replace(term, path=tuple(each + MARK for each in term.path))
    values = tuple(
        each + MARK if isinstance(each, str) else NUMBER if isinstance(each, int) else each for each in term.values
    )
    return msgspec.structs.replace(term, values=values)
