"""Groups while everything happens at once: numbers stay exact, and every letter is where its group is."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from sqlalchemy import Connection, select, update

from redrive.dead_letter import OPEN, Status, Transition
from redrive.errors import NotFound, Refused
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.stores import open_store
from redrive.stores.schema import groups, letters
from redrive.stores.sql import SqlStore
from redrive.stores.sql_counters import fold
from redrive.stores.upgrade import check
from redrive.testing.letters import NOON, a_group, an_entry
from redrive.testing.store_case import ANN, LEASE, returned
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from support.postgres_server import PostgresServer

NAMES = "abcdefgh"
IDS = [a_group(name).id for name in NAMES]
STORES = 3
STEPS = 40


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/letters.db"
    found: str = request.getfixturevalue("postgres_url")
    return found


class Storm:
    """Everything that can happen to letters and groups, in an order that only the dice know."""

    def __init__(self, stores: list[SqlStore], seed: int) -> None:
        self._stores = stores
        self._dice = Random(seed)  # noqa: S311  dice, no secret

    @property
    def _store(self) -> SqlStore:
        return self._dice.choice(self._stores)

    async def _some(self, *statuses: Status) -> list[str]:
        found = await self._store.find(LetterQuery(status=self._dice.choice(statuses), limit=40))
        return [each.id for each in self._dice.sample(found, min(len(found), 5))]

    def _entry_options(self, *, life: int = 1) -> dict[str, object]:
        at = NOON + timedelta(hours=10 * life, minutes=self._dice.randrange(600))
        return {"group": self._dice.choice(NAMES), "at": at, "queue": self._dice.choice(("orders", "mails"))}

    async def record(self) -> None:
        entries = [an_entry(**self._entry_options()) for _ in range(8)]  # type: ignore[arg-type]  # an_entry's own
        await asyncio.gather(*(self._store.record(entry) for entry in entries))

    async def redrive(self) -> None:
        for claim in await self._store.claim(await self._some(Status.PENDING), owner="engine", lease=LEASE):
            sent = self._dice.choice((Transition.SENT, Transition.SENT, Transition.REFUSED, Transition.UNCLAIM))
            await self._store.settle(claim, sent, by=ANN)
            if sent is Transition.SENT and self._dice.random() < 0.5:
                await self._store.confirm(claim.ticket, by=ANN)
            elif sent is Transition.SENT:
                await self._store.record(returned(claim, **self._entry_options(life=1 + claim.generation)))

    async def decide(self) -> None:
        transition = self._dice.choice((Transition.DISCARD, Transition.RESOLVE, Transition.QUARANTINE))
        await self._store.change(await self._some(*OPEN), transition, by=ANN)

    async def purge(self) -> None:
        await self._store.purge(await self._some(Status.DISCARDED, Status.RESOLVED), by=ANN)

    async def annotate(self) -> None:
        with suppress(NotFound):
            await self._store.annotate(
                self._dice.choice(IDS), owner=self._dice.choice(("ann", "bob", None)), by=ANN
            )

    async def merge(self) -> None:
        with suppress(NotFound, Refused):
            await self._store.merge(self._dice.choice(IDS), self._dice.sample(IDS, 2), by=ANN)

    async def split(self) -> None:
        fingerprint = self._dice.choice(IDS)
        with suppress(NotFound, Refused):
            group = await self._store.group(fingerprint)
            if group is not None:
                await self._store.split(group.id, fingerprint, by=ANN)

    async def fold(self) -> None:
        await self._store._write(fold)

    async def rage(self) -> None:
        deeds: list[Callable[[], Coroutine[object, object, None]]] = [
            *(self.record, self.record, self.record, self.redrive, self.redrive, self.decide),
            *(self.purge, self.annotate, self.merge, self.split, self.fold),
        ]
        for _ in range(STEPS):
            await self._dice.choice(deeds)()


@pytest.mark.parametrize("seed", range(3))
async def test_numbers_are_exact_and_letters_in_their_groups_whatever_happens_at_once(url: str, seed: int) -> None:
    async with AsyncExitStack() as closing:
        stores: list[SqlStore] = []
        for _ in range(STORES):
            store = open_store(url)
            assert isinstance(store, SqlStore)
            stores.append(store)
            closing.push_async_callback(store.close)

        await asyncio.gather(*(Storm(stores, seed * 100 + number).rage() for number in range(5)))

        assert await stores[0]._read(_misplaced) == []
        await _assert_recounted(stores[0])
        while await stores[0]._write(fold):
            pass
        await _assert_recounted(stores[0])
    assert check(url).problems == ()


def _misplaced(connection: Connection) -> list[str]:
    """Letters that are not in the group that their fingerprint's letters go to."""
    rows = connection.execute(
        select(letters.c.id, letters.c.group_id, groups.c.id.label("own"), groups.c.merged_into).join(
            groups, groups.c.id == letters.c.fingerprint, isouter=True
        )
    )
    return [row.id for row in rows if row.group_id != (row.merged_into or row.own)]


async def _assert_recounted(store: SqlStore) -> None:
    found = await _all(store)
    by_group: dict[str, list[DeadLetter]] = {}
    for each in found:
        by_group.setdefault(each.group_id, []).append(each)
    listed = {group.id: group for group in await store.groups(limit=MAX_PAGE)}
    assert listed.keys() == by_group.keys()
    for group_id, members in by_group.items():
        group = listed[group_id]
        assert group.by_status == Counter(each.status for each in members)
        assert (group.total, group.pending) == (len(members), group.by_status.get(Status.PENDING, 0))
        assert group.example == members[0].id
        assert group.first_seen <= min(_came(each) for each in members)
        assert group.last_seen >= max(_came(each) for each in members)
    numbers = await store.statistics()
    assert numbers.total == len(found)
    assert {name: number for name, number in numbers.by_status.items() if number} == Counter(
        each.status for each in found
    )


def _came(letter: DeadLetter) -> datetime:
    """One that came back may have done so with another cause: its group has seen it since then alone."""
    return letter.created_at if letter.generation == 1 else letter.last_attempt_at


async def _all(store: SqlStore) -> list[DeadLetter]:
    found: list[DeadLetter] = []
    after: Place | None = None
    while page := await store.find(LetterQuery(after=after, limit=MAX_PAGE)):
        found += page
        after = Place.of(page[-1])
    return found


class Killed(Exception):
    """Stands for the end of the process: whatever was to come, did not."""


async def _killed_after(
    steps: int, store: SqlStore, deed: Callable[[], Coroutine[object, object, object]]
) -> bool:
    """Whether the deed was ended after so many transactions; False if it needed fewer."""
    change: Any = store._change
    left = steps

    async def counted(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return await change(*arguments)

    with pytest.MonkeyPatch.context() as planted, suppress(Killed):
        planted.setattr(store, "_change", counted)
        await deed()
        return False
    return True


async def test_a_merge_that_is_killed_anywhere_is_completed_by_the_same_merge(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.stores.sql_group_moves.LOT", 3)
    store = open_store(url)
    assert isinstance(store, SqlStore)
    goal, middle, first = (a_group(name).id for name in "cba")
    for name in "abc":
        for _ in range(7):
            await store.record(an_entry(group=name))
    assert await _killed_after(2, store, partial(store.merge, middle, [first], by=ANN))

    killed = 0
    while await _killed_after(killed, store, partial(store.merge, goal, [middle], by=ANN)):
        await _assert_recounted(store)
        await store.record(an_entry(group="a"))
        killed += 1

    group = await store.group(first)
    assert group is not None
    assert (group.id, group.total, group.merged) == (goal, 21 + killed, tuple(sorted((first, middle))))
    assert await store._read(_misplaced) == []
    assert killed > 4
    await store.close()
    assert check(url).problems == ()


async def test_a_split_that_is_killed_anywhere_is_completed_by_the_same_split(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.stores.sql_group_moves.LOT", 3)
    store = open_store(url)
    assert isinstance(store, SqlStore)
    whole, part = a_group("a").id, a_group("b").id
    for number in range(8):
        await store.record(an_entry(group="a", at=NOON + timedelta(hours=number)))
        await store.record(an_entry(group="b", at=NOON - timedelta(hours=number)))
    await store.merge(whole, [part], by=ANN)

    killed = 0
    while await _killed_after(killed, store, partial(store.split, whole, part, by=ANN)):
        await _assert_recounted(store)
        await store.record(an_entry(group="b"))
        killed += 1

    found = await store.group(part)
    rest = await store.group(whole)
    assert found is not None
    assert rest is not None
    assert (found.total, rest.total) == (8 + killed, 8)
    assert (found.first_seen, rest.first_seen) == (NOON - timedelta(hours=7), NOON)
    assert (found.last_seen, rest.last_seen) == (NOON, NOON + timedelta(hours=7))
    assert await store._read(_misplaced) == []
    assert killed > 3
    await store.close()
    assert check(url).problems == ()


async def test_letters_from_before_fingerprints_were_kept_find_back(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    whole, part = a_group("a").id, a_group("b").id
    for name in "abb":
        await store.record(an_entry(group=name))
    await store._write(lambda connection: connection.execute(update(letters).values(fingerprint=None)))

    assert (await store.merge(whole, [part], by=ANN)).total == 3
    assert (await store.split(whole, part, by=ANN)).total == 2
    await store.close()
    assert check(url).problems == ()


async def test_a_merge_waits_for_who_is_just_recording_and_moves_that_letter_too(
    postgres: PostgresServer, postgres_url: str
) -> None:
    store = open_store(postgres_url)
    assert isinstance(store, SqlStore)
    goal, source = a_group("a").id, a_group("b").id
    for name in "ab":
        await store.record(an_entry(group=name))
    guest = await asyncpg.connect(postgres_url)
    transaction = guest.transaction()
    await transaction.start()
    await store.record(an_entry(group="b"), connection=guest)

    merging = asyncio.create_task(store.merge(goal, [source], by=ANN))
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    await until(lambda: merging.done() or postgres.fetch(waiting, url=postgres_url))
    assert not merging.done()
    await transaction.commit()
    await guest.close()

    assert (await merging).total == 3
    assert await store._read(_misplaced) == []
    await store.close()
