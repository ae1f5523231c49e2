"""F12: eight writers on the same identities, letters and groups at once. Whoever is in another's way is tried
again, in bounds; what each was told adds up to exactly what is there in the end.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.util import await_only

from chaos.lab import places
from chaos.lab.rows import Database, rows
from redrive.dead_letter import Recorded, Status, Transition
from redrive.errors import NotFound, Refused, Unreachable
from redrive.letter_query import LetterQuery
from redrive.stores import open_store
from redrive.stores.postgres import PostgresStore
from redrive.stores.sql import SqlStore
from redrive.stores.sql_counters import fold, miscounted
from redrive.testing.letters import a_group, an_entry
from redrive.testing.store_case import ANN, ENGINE, LEASE

WRITERS = 8
LETTERS = 60
CAUSES = [f"cause {number}" for number in range(4)]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return tmp_path / "letters.db"
    url: str = request.getfixturevalue("postgres_store_url")
    return url


@pytest.fixture
async def stores(place: Database) -> AsyncIterator[list[SqlStore]]:
    """One for each writer, with connections of its own."""
    url = f"sqlite:///{place}" if isinstance(place, Path) else place
    async with AsyncExitStack() as closing:
        opened: list[SqlStore] = []
        for _ in range(WRITERS):
            store = open_store(url)
            assert isinstance(store, SqlStore)
            closing.push_async_callback(store.close)
            opened.append(store)
        await opened[0].signing_key()
        yield opened


async def problems(store: SqlStore, place: Database) -> list[str]:
    """By the product's own recount and by the lab's."""
    counted = await store._read(lambda connection: list(miscounted(connection)))
    return counted + places.contradictions(place)


async def recorded(store: SqlStore) -> list[str]:
    entries = (an_entry(f"{number}", group=CAUSES[number % len(CAUSES)]) for number in range(LETTERS))
    return [letter_id for letter_id, _ in await asyncio.gather(*map(store.record, entries))]


async def test_the_same_messages_from_all_are_one_letter_each_with_every_delivery_counted(
    stores: list[SqlStore], place: Database
) -> None:
    async def write(store: SqlStore) -> list[tuple[str, Recorded]]:
        at = datetime.now(UTC)
        numbers = random.sample(range(LETTERS), LETTERS)
        entries = (an_entry(f"{number}", group=CAUSES[number % len(CAUSES)], at=at) for number in numbers)
        return list(await asyncio.gather(*map(store.record, entries)))

    answers = [each for several in await asyncio.gather(*map(write, stores)) for each in several]

    assert Counter(how for _, how in answers) == {Recorded.NEW: LETTERS, Recorded.AGAIN: LETTERS * (WRITERS - 1)}
    assert len({letter_id for letter_id, _ in answers}) == LETTERS
    told = "SELECT deliveries, (SELECT count(*) FROM failures WHERE letter_id = letters.id) FROM letters"
    assert rows(place, told) == [(WRITERS, 1)] * LETTERS
    assert await problems(stores[0], place) == []


async def test_the_same_letters_claimed_by_all_are_claimed_once(stores: list[SqlStore], place: Database) -> None:
    ids = await recorded(stores[0])

    async def redrive(store: SqlStore) -> list[str]:
        claims = await store.claim(random.sample(ids, LETTERS), owner="engine", lease=LEASE)
        marks = await asyncio.gather(*(store.settle(claim, Transition.SENT, by=ENGINE) for claim in claims))
        assert all(marks)
        return [claim.letter_id for claim in claims]

    claimed = [each for several in await asyncio.gather(*map(redrive, stores)) for each in several]

    assert sorted(claimed) == sorted(ids)
    assert rows(place, "SELECT status, count(*) FROM letters GROUP BY status") == [("REDRIVEN", LETTERS)]
    assert rows(place, "SELECT count(*) FROM redrives") == [(LETTERS,)]
    assert await problems(stores[0], place) == []


async def test_the_same_letters_discarded_and_purged_by_all_are_gone_once(
    stores: list[SqlStore], place: Database
) -> None:
    ids = await recorded(stores[0])

    async def clear(store: SqlStore) -> tuple[int, int]:
        kept = await store.change(random.sample(ids, LETTERS), Transition.DISCARD, by=ANN)
        left = await store.purge(random.sample(ids, LETTERS), by=ANN)
        return LETTERS - len(kept), LETTERS - len(left)

    discarded, purged = map(sum, zip(*await asyncio.gather(*map(clear, stores)), strict=True))

    assert (discarded, purged) == (LETTERS, LETTERS)
    assert rows(place, "SELECT count(*) FROM letters") == rows(place, "SELECT count(*) FROM failures") == [(0,)]
    assert rows(place, "SELECT what, count(*) FROM audit GROUP BY what ORDER BY what") == [
        ("discarded", LETTERS),
        ("purged", LETTERS),
        ("recorded", LETTERS),
    ]
    assert await problems(stores[0], place) == []


class Storm:
    """Eight writers that do different things to the same letters, and keep the books about what they were told."""

    def __init__(self, stores: list[SqlStore]) -> None:
        self._stores = stores
        self.new = self.purged = self.resolved = self.purged_resolved = 0
        self._dice = random.Random(7)  # noqa: S311  dice, no secret

    async def rage(self) -> None:
        one, two, three, four, five, six, seven, eight = self._stores
        deeds: list[Coroutine[object, object, None]] = [
            *(self._record(each) for each in (one, two, three)),
            *(self._redrive(each) for each in (four, five)),
            self._clear(six),
            self._regroup(seven),
            self._count(eight),
        ]
        await asyncio.gather(*deeds)
        await self._purge(six, Status.RESOLVED)

    async def _record(self, store: SqlStore) -> None:
        for _ in range(6):
            numbers = self._dice.sample(range(LETTERS), LETTERS // 2)
            at = datetime.now(UTC)
            entries = (an_entry(f"{number}", group=CAUSES[number % len(CAUSES)], at=at) for number in numbers)
            answers = await asyncio.gather(*map(store.record, entries))
            self.new += sum(how is Recorded.NEW for _, how in answers)

    async def _redrive(self, store: SqlStore) -> None:
        for _ in range(8):
            ids = [each.id for each in await store.find(LetterQuery(status=Status.PENDING, limit=20))]
            for claim in await store.claim(ids, owner="engine", lease=LEASE):
                await store.settle(claim, Transition.SENT, by=ENGINE)
                confirmed = await store.confirm(claim.ticket, by=ANN)
                self.resolved += confirmed

    async def _clear(self, store: SqlStore) -> None:
        for _ in range(8):
            await self._purge(store, Status.RESOLVED)
            pending = [each.id for each in await store.find(LetterQuery(status=Status.PENDING, limit=5))]
            await store.change(pending, Transition.DISCARD, by=ANN)
            await self._purge(store, Status.DISCARDED)

    async def _purge(self, store: SqlStore, status: Status) -> None:
        ids = [each.id for each in await store.find(LetterQuery(status=status, limit=5))]
        gone = len(ids) - len(await store.purge(ids, by=ANN))
        self.purged += gone
        self.purged_resolved += gone if status is Status.RESOLVED else 0

    async def _regroup(self, store: SqlStore) -> None:
        whole, *parts = (a_group(cause).id for cause in CAUSES)
        for _ in range(4):
            with suppress(NotFound, Refused):  # a group has no letter at the moment, or is its own
                await store.merge(whole, parts[:2], by=ANN)
                await store.split(whole, parts[0], by=ANN)

    async def _count(self, store: SqlStore) -> None:
        for _ in range(10):
            await store._write(fold)
            await store.index(at_most=20)
            told = await store.statistics()
            assert sum(told.by_status.values()) == told.total


async def test_what_everybody_was_told_adds_up_to_what_is_there(stores: list[SqlStore], place: Database) -> None:
    storm = Storm(stores)

    await storm.rage()

    assert storm.purged_resolved
    assert rows(place, "SELECT count(*) FROM letters") == [(storm.new - storm.purged,)]
    resolved = "SELECT count(*) FROM letters WHERE status = 'RESOLVED'"
    assert rows(place, resolved) == [(storm.resolved - storm.purged_resolved,)]
    assert await problems(stores[0], place) == []
    while await stores[0]._write(fold):
        pass
    assert await problems(stores[0], place) == []


# In bounds


async def test_two_transactions_that_wait_for_each_other_both_succeed(postgres_store_url: str) -> None:
    store = PostgresStore(postgres_store_url)
    one, other = sorted([(await store.record(an_entry()))[0] for _ in range(2)])
    met, runs = asyncio.Barrier(2), Counter[str]()

    def locking(first: str, second: str) -> Coroutine[Any, Any, None]:
        def unit(connection: Connection) -> None:
            runs[first] += 1
            lock = text("SELECT 1 FROM letters WHERE id = :id FOR UPDATE")
            connection.execute(lock, {"id": first})
            if runs.total() <= 2:
                await_only(met.wait())  # both hold what the other wants
            connection.execute(lock, {"id": second})

        return store._write(unit)

    await asyncio.gather(locking(one, other), locking(other, one))

    assert runs.total() == 3  # one of them ran twice
    await store.close()


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03"])
async def test_one_who_is_always_in_the_way_of_others_is_tried_a_few_times_and_then_told(
    state: str, postgres_store_url: str
) -> None:
    store = PostgresStore(postgres_store_url)
    runs = 0

    def unit(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        connection.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{state}'; END $$"))

    with pytest.raises(Unreachable, match="in the way") as refusal:
        await store._write(unit)

    assert refusal.value.remedy
    assert 1 < runs < 10
    await store.close()
