"""An encrypted store on SQLite and PostgreSQL: what is on its disks, who can read it, and what is shredded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, func, select, update

from redrive.dead_letter import DeadLetter, Recorded, Status, Transition, Unreadable
from redrive.errors import ConfigurationError, PublishRefused, UsageError
from redrive.ledger import LedgerKey, LedgerQuery
from redrive.letter_query import LetterQuery
from redrive.privacy.encryption.data_keys import DataKeys
from redrive.privacy.encryption.local_keys import LocalKeys
from redrive.privacy.encryption.rotation import Rotated
from redrive.redriving import redriven
from redrive.run import RunPlan, Settled
from redrive.search import parse
from redrive.stores import Store, open_store
from redrive.stores.schema import failures, revisions
from redrive.stores.schema_data_keys import data_keys
from redrive.stores.sealing import Encryption
from redrive.testing import ManualClock
from redrive.testing.data_keys_contract import DataKeysContract
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import ANN
from support.postgres_server import PostgresServer
from support.sealing import ENCRYPTION, KEY, OLD_KEY, OTHER_KEY

TODAY = NOON.date()
BODY = b'{"name": "Grace Hopper", "n": 12345678901234567890}'
OLD, BOTH, OTHER = (Encryption(LocalKeys(keys)) for keys in ([OLD_KEY], [KEY, OLD_KEY], [OTHER_KEY]))

Opening = Callable[..., Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/letters.db"
    found: str = request.getfixturevalue("postgres_store_url")
    return found


@pytest.fixture
async def opening(location: str) -> AsyncIterator[Opening]:
    """Opens the same store as often as a test has processes."""
    async with AsyncExitStack() as closing:

        def opened(encryption: Encryption | None = ENCRYPTION, **options: Any) -> Store:
            store = open_store(location, encryption=encryption, **options)
            closing.push_async_callback(store.close)
            return store

        yield opened


@pytest.fixture
def store(opening: Opening) -> Store:
    return opening()


class TestDataKeysOfAStore(DataKeysContract):
    @pytest.fixture
    def keys(self, store: Any) -> DataKeys:
        found: DataKeys = store._data_keys
        return found


async def recorded(store: Store, name: str = "1", *, days: int = 0, queue: str = "orders") -> str:
    at = NOON + timedelta(days=days)
    message = a_message(queue=queue, body=BODY, headers=(("x-who", "Grace Hopper"),), key=b"Hopper")
    failed = a_failure(1, at=at, text="no such Grace Hopper")
    entry = an_entry(name, message=message, queue=queue, at=at, failures=(failed,))
    letter_id, done = await store.record(entry)
    assert done is Recorded.NEW
    return letter_id


async def whole(store: Store, letter_id: str) -> DeadLetter:
    found = await store.get(letter_id)
    assert found is not None
    return found


def looked(store: Any, unit: Callable[[Connection], Any]) -> Any:
    return store._view(unit)


async def rows_of(store: Store, table: Any) -> list[Any]:
    found: list[Any] = await looked(store, lambda connection: connection.execute(select(table)).all())
    return found


async def test_what_letters_hold_is_sealed_in_the_tables_and_read_back_exactly(store: Store) -> None:
    letter_id = await recorded(store)
    letter = await whole(store, letter_id)
    assert (letter.message.body, letter.message.key, letter.unreadable) == (BODY, b"Hopper", None)
    assert ("x-who", "Grace Hopper") in letter.message.headers
    assert letter.failures[0].text == "no such Grace Hopper"
    await store.revise(letter_id, replace(letter.message, body=b"edited Hopper"), base=0, by=ANN)
    for table, columns in ((revisions, ("body", "headers", "key")), (failures, ("told",))):
        for row in await rows_of(store, table):
            assert row.data_key is not None
            assert all(b"Hopper" not in getattr(row, name) for name in columns)


async def test_nothing_and_empty_stay_different(store: Store) -> None:
    for name, body, key in (("none", None, None), ("empty", b"", b"")):
        letter_id, _ = await store.record(an_entry(name, message=a_message(body=body, key=key)))
        message = (await whole(store, letter_id)).message
        assert (message.body, message.key) == (body, key)


async def test_an_edit_that_is_asked_for_twice_is_one(store: Store) -> None:
    letter_id = await recorded(store)
    edited = replace((await whole(store, letter_id)).message, body=b"better")
    assert [await store.revise(letter_id, edited, base=0, by=ANN) for _ in range(2)] == [1, 1]
    assert len((await whole(store, letter_id)).revisions) == 2


async def test_values_that_change_places_are_told_as_damaged_and_hide_no_other_letter(store: Any) -> None:
    one, two, three = [await recorded(store, name) for name in "123"]

    def swap(connection: Connection) -> None:
        found = {row.letter_id: row.body for row in connection.execute(select(revisions))}
        for mine, other in ((one, two), (two, one)):
            statement = update(revisions).where(revisions.c.letter_id == mine)
            connection.execute(statement.values(body=found[other]))

    await store._transact(swap)
    read = [(await whole(store, each)).unreadable for each in (one, two, three)]
    assert read == [Unreadable.DAMAGED, Unreadable.DAMAGED, None]
    listed = {each.id: each.unreadable for each in await store.find(LetterQuery(bodies=True))}
    assert listed == dict(zip((one, two, three), read, strict=True))
    claimed = await store.claim([one, two, three], owner="me", lease=60)
    assert [each.letter_id for each in claimed] == [three]


async def test_every_changed_bit_of_a_sealed_value_is_noticed(store: Any) -> None:
    letter_id = await recorded(store)
    [body] = [row.body for row in await rows_of(store, revisions)]
    for place in range(0, len(body), 7):
        changed = bytearray(body)
        changed[place] ^= 1 << place % 8
        statement = update(revisions).values(body=bytes(changed))
        await store._transact(lambda connection, statement=statement: connection.execute(statement))
        letter = await whole(store, letter_id)
        assert letter.unreadable is Unreadable.DAMAGED
        assert letter.message.body is None


async def test_without_the_key_letters_are_listed_and_not_sent(opening: Opening) -> None:
    letter_id = await recorded(opening())
    for other in (opening(None), opening(OTHER)):
        assert [each.unreadable for each in await other.find(LetterQuery())] == [Unreadable.LOCKED]
        letter = await whole(other, letter_id)
        assert (letter.unreadable, letter.message.body, letter.text) == (
            Unreadable.LOCKED,
            None,
            "no such Grace Hopper",
        )
        assert [each.text for each in letter.failures] == ["no such Grace Hopper"], "what plain columns tell"
        assert await other.claim([letter_id], owner="me", lease=60) == []
    assert (await whole(opening(), letter_id)).status is Status.PENDING


async def test_switched_off_it_reads_what_is_sealed_and_writes_plain(opening: Opening) -> None:
    sealed = await recorded(opening(), "1")
    off = opening(Encryption(ENCRYPTION.source, seals=False))
    plain = await recorded(off, "2")
    assert [(await whole(off, each)).message.body for each in (sealed, plain)] == [BODY, BODY]
    assert {row.letter_id: row.data_key is None for row in await rows_of(off, revisions)} == {
        sealed: False,
        plain: True,
    }


async def test_a_store_that_nobody_sealed_has_no_keys_to_look_after(opening: Opening) -> None:
    plain = opening(None)
    assert await plain.key_usage() == {}
    for work in (plain.rewrap_keys(by=ANN), plain.shred(None, TODAY, TODAY, by=ANN), plain.reseal("")):
        with pytest.raises(ConfigurationError, match="without a key"):
            await work


# Another key


async def test_a_new_key_takes_over_and_the_old_one_is_needed_no_more(opening: Opening) -> None:
    old = opening(OLD)
    ids = [await recorded(old, f"{number}", days=number % 3, queue=f"q{number % 2}") for number in range(6)]
    both = opening(BOTH)
    assert await both.key_usage() == {OLD_KEY.id: 6}
    assert await both.rewrap_keys(by=ANN) == Rotated(6, ())
    assert await both.key_usage() == {KEY.id: 6}
    new = opening(ENCRYPTION)
    assert [(await whole(new, each)).message.body for each in ids] == [BODY] * 6
    assert [(await whole(old, each)).message.body for each in ids] == [BODY] * 6, "who remembers them goes on"


# Shredding


async def test_what_is_shredded_is_gone_and_all_else_stays(opening: Opening) -> None:
    store = opening(ledger_key=LedgerKey(b"k" * 32))
    shredded = await recorded(store, "1", days=1)
    kept = [await recorded(store, "2", days=2), await recorded(store, "3", days=1, queue="mails")]
    day = TODAY + timedelta(days=1)
    assert await store.shred("orders", day, day, by=ANN) == 1

    letter = await whole(store, shredded)
    assert (letter.unreadable, letter.message.body, letter.message.headers) == (Unreadable.SHREDDED, None, ())
    assert (letter.revisions[0].unreadable, letter.status) == (Unreadable.SHREDDED, Status.PENDING)
    assert [(await whole(store, each)).message.body for each in kept] == [BODY] * 2
    assert [each.letter_id for each in await store.claim([shredded, *kept], owner="me", lease=60)] == kept
    [line] = await store.ledger(LedgerQuery(what="keys shredded"))
    assert (line.who, line.subject.ids, line.after) == (ANN.name, ("queue orders",), f"none from {day} to {day}")
    assert await store.shred("orders", day, day, by=ANN) == 0
    with pytest.raises(UsageError):
        await store.shred(None, day, TODAY, by=ANN)


async def test_a_run_passes_over_what_cannot_be_read(opening: Opening) -> None:
    store = opening()
    shredded, kept = await recorded(store, "1", days=1), await recorded(store, "2", days=2)
    await store.shred(None, TODAY + timedelta(days=1), TODAY + timedelta(days=1), by=ANN)
    run = await store.create_run(RunPlan(selection=LetterQuery(status=Status.PENDING), reason="again"), by=ANN)
    taken = await store.take(run.id, owner="me", at_most=10, lease=60)
    assert [each.letter_id for each in taken.claims] == [kept]
    told = {each.letter_id: each.outcome for each in await store.outcomes(run.id)}
    assert told[shredded] == "unreadable"


async def test_what_was_shredded_in_somebodys_hands_is_settled_and_never_sent(opening: Opening) -> None:
    clock = ManualClock(NOON)
    store = opening(clock=clock)
    letter_id = await recorded(store)
    run = await store.create_run(RunPlan(selection=LetterQuery(status=Status.PENDING), reason="again"), by=ANN)
    assert len((await store.take(run.id, owner="killed", at_most=10, lease=60)).claims) == 1
    await store.shred(None, TODAY, TODAY, by=ANN)
    clock.advance(61)
    [claim] = (await store.take(run.id, owner="next", at_most=10, lease=60)).claims
    assert (claim.letter_id, claim.unreadable, claim.message.body) == (letter_id, Unreadable.SHREDDED, None)
    with pytest.raises(PublishRefused, match="destroyed"):
        redriven(claim, b"key")
    assert await store.settle_together([Settled(claim, Transition.REFUSED, "shredded")], by=ANN) == 1
    assert (await whole(store, letter_id)).status is Status.PENDING


async def test_words_of_what_is_shredded_are_not_found_any_more(opening: Opening) -> None:
    store, other = opening(), opening()
    shredded, kept = await recorded(store, "1", days=1), await recorded(store, "2", days=2)
    while await store.index(at_most=10):
        pass
    assert (await whole(other, shredded)).message.body == BODY, "it remembers the data key"
    where = LetterQuery(where=parse("data.name:Grace*", now=NOON))
    assert {each.id for each in await store.find(where)} == {shredded, kept}
    await store.shred("orders", TODAY + timedelta(days=1), TODAY + timedelta(days=1), by=ANN)
    while await other.index(at_most=10):
        pass
    assert [each.id for each in await store.find(where)] == [kept]


async def test_a_letter_that_comes_after_its_day_was_shredded_elsewhere_can_be_read(opening: Opening) -> None:
    here, elsewhere = opening(), opening()
    gone = await recorded(here, "1")  # this process remembers the day's data key from now on
    assert await elsewhere.shred(None, TODAY, TODAY, by=ANN) == 1
    later = await recorded(here, "2")
    fresh = opening()
    assert (await whole(fresh, later)).message.body == BODY
    assert (await whole(fresh, gone)).unreadable is Unreadable.SHREDDED


# Sealing what is there


async def walked(store: Store, former: Any = ()) -> int:
    sealed, after = 0, ""
    while (step := await store.reseal(after, former=former)).after is not None:
        sealed, after = sealed + step.sealed, step.after
    return sealed


async def test_what_was_plain_is_sealed_behind_the_work_that_goes_on(opening: Opening) -> None:
    plain = opening(None)
    ids = [await recorded(plain, f"{number}") for number in range(20)]
    edited = replace((await whole(plain, ids[0])).message, body=b"edited Hopper")
    await plain.revise(ids[0], edited, base=0, by=ANN)
    store = opening()
    before = [await whole(store, each) for each in ids]
    assert await walked(store) == 20
    assert await walked(store) == 0, "once is enough"
    assert [await whole(store, each) for each in ids] == before
    rows = [*await rows_of(store, revisions), *await rows_of(store, failures)]
    assert len(rows) == 41
    assert all(row.data_key is not None for row in rows)


async def test_everything_can_be_sealed_anew_by_new_data_keys(opening: Opening) -> None:
    store = opening()
    ids = [await recorded(store, f"{number}", days=number % 2) for number in range(10)]
    before = [await whole(store, each) for each in ids]
    former = set(await store.retire_keys())
    assert len(former) == 2
    assert await walked(store, former) == 10
    assert await walked(store, former) == 0
    assert not former & {row.data_key for row in await rows_of(store, revisions)}
    assert [await whole(store, each) for each in ids] == before
    assert (await whole(opening(), await recorded(store, "later"))).message.body == BODY


async def test_several_may_seal_at_once_while_letters_are_changed_and_purged(opening: Opening) -> None:
    plain = opening(None)
    ids = [await recorded(plain, f"{number}") for number in range(60)]
    stores = [opening() for _ in range(3)]

    async def change() -> None:
        for each in ids[::3]:
            edited = replace((await whole(stores[0], each)).message, body=b"edited")
            await stores[0].revise(each, edited, base=0, by=ANN)

    await asyncio.gather(*map(walked, stores), change())
    read = [await whole(stores[1], each) for each in ids]
    assert [each.unreadable for each in read] == [None] * 60
    assert [each.message.body for each in read] == [b"edited" if n % 3 == 0 else BODY for n in range(60)]
    assert [each.revisions[0].message.body for each in read] == [BODY] * 60


# From store to store


async def test_what_cannot_be_read_stays_so_when_it_is_moved_to_another_store(
    opening: Opening, tmp_path: Path
) -> None:
    store = opening()
    letter_id = await recorded(store)
    await store.shred(None, TODAY, TODAY, by=ANN)
    moved = open_store(f"sqlite:///{tmp_path}/other.db")
    try:
        assert await moved.restore_whole([await whole(store, letter_id)], by=ANN) == {letter_id}
        letter = await whole(moved, letter_id)
        assert letter.unreadable is not None
        assert await moved.claim([letter_id], owner="me", lease=60) == []
    finally:
        await moved.close()


async def test_an_older_redrive_may_not_work_on_a_store_that_is_sealed(opening: Opening) -> None:
    from redrive.stores.schema_version import schema_version  # noqa: PLC0415  as it is asked

    store = opening()
    assert (await looked(store, schema_version)).oldest < "0011"
    await recorded(store)
    assert (await looked(store, schema_version)).oldest == "0011"


async def test_the_view_of_s1_tells_nothing_of_what_is_sealed(
    postgres: PostgresServer, postgres_store_url: str
) -> None:
    for name, encryption in (("plain", None), ("sealed", ENCRYPTION)):
        store = open_store(postgres_store_url, encryption=encryption)
        await recorded(store, name)
        await store.close()
    rows = postgres.fetch("SELECT event_payload, stack_trace FROM dlq_events ORDER BY id", url=postgres_store_url)
    assert [(payload is None, trace is None) for payload, trace in rows] == [(False, False), (True, True)]


async def test_the_data_keys_themselves_are_wrapped(store: Store) -> None:
    await recorded(store)
    [row] = await rows_of(store, data_keys)
    assert (row.kek_id, row.day, row.queue) == (KEY.id, date.isoformat(TODAY), "orders")
    assert len(row.wrapped) == 32 + 12 + 16, "a secret, a nonce and a tag"
    assert await looked(store, lambda c: c.scalar(select(func.count()).select_from(data_keys))) == 1
