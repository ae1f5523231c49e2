"""Entries of a batch that are on record: what is found out for all at once is what each alone would find."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import msgspec
import pytest

from redrive.dead_letter import DeadLetter, Entry, Recorded
from redrive.stores import sql_intake, sql_record
from redrive.stores.postgres import PostgresStore
from redrive.testing import ManualClock
from redrive.testing.letters import NOON, a_failure, an_entry
from redrive.testing.store_case import letter, returned, sent

LATER = NOON + timedelta(minutes=5)
FIRST = an_entry("it", attempts=2)
AGAIN: dict[str, Entry] = {
    "the very same": FIRST,
    "a new delivery": an_entry("it", attempts=2, at=LATER),
    "a new delivery of one attempt": an_entry("it", attempts=1, at=LATER),
    "one more attempt": an_entry("it", attempts=3, at=LATER),
    "one more attempt, at the same moment": msgspec.structs.replace(FIRST, failures=an_entry(attempts=3).failures),
    "the same failures, told later": msgspec.structs.replace(FIRST, at=LATER),
    "another failure of the same attempt, at the same moment": msgspec.structs.replace(
        FIRST, failures=(a_failure(2, at=LATER),)
    ),
    "to be set apart": msgspec.structs.replace(FIRST, quarantine="3 process deaths"),
}


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_store_url, clock=ManualClock(NOON))
    yield opened
    await opened.close()


async def by_batch(store: PostgresStore, *entries: Entry) -> list[tuple[str, Recorded]]:
    return await store._write(partial(sql_intake.record_all, entries=entries, now=NOON))


async def one_by_one(store: PostgresStore, *entries: Entry) -> list[tuple[str, Recorded]]:
    return [await store._write(partial(sql_record.record, entry=entry, now=NOON)) for entry in entries]


def bare(found: DeadLetter) -> DeadLetter:
    return msgspec.structs.replace(found, id="", identity="")


def as_another(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, identity=f"another {entry.identity}")


@pytest.mark.parametrize("life", [1, 2])
@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
async def test_what_is_known_is_changed_by_a_batch_as_it_is_changed_alone(
    again: Entry, life: int, store: PostgresStore
) -> None:
    ids = [(await store.record(entry))[0] for entry in (FIRST, as_another(FIRST))]
    if life == 2:
        for letter_id in ids:
            await store.record(returned(await sent(store, letter_id), at=LATER))

    [(one, how)] = await by_batch(store, again)
    [(other, other_how)] = await one_by_one(store, as_another(again))

    assert [one, other] == ids
    assert how is other_how is Recorded.AGAIN
    assert bare(await letter(store, one)) == bare(await letter(store, other))


async def test_a_batch_with_everything_in_it_answers_and_changes_as_one_by_one(store: PostgresStore) -> None:
    await store.record(FIRST)
    await store.record(as_another(FIRST))

    new = an_entry("new")
    entries = [new, *AGAIN.values(), new, an_entry("newer")]

    answers = await by_batch(store, *entries)
    alone = await one_by_one(store, *map(as_another, entries))

    assert [how for _, how in answers] == [how for _, how in alone]
    for (one, _), (other, _) in zip(answers, alone, strict=True):
        assert bare(await letter(store, one)) == bare(await letter(store, other))
