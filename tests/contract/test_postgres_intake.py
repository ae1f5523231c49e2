"""Letters in bulk are the letters that come one by one: same rows, same answers, whoever else records them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest

from redrive.dead_letter import DeadLetter, Recorded
from redrive.letter_query import LetterQuery
from redrive.stores import sql_counters, sql_intake, sql_record
from redrive.stores.postgres import PostgresStore
from redrive.testing import ManualClock
from redrive.testing.letters import NOON, an_entry
from redrive.testing.store_case import letter, returned, sent
from support.hostile import corpus


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_store_url, clock=ManualClock(NOON))
    yield opened
    await opened.close()


async def miscounted(store: PostgresStore) -> list[str]:
    return await store._read(lambda connection: list(sql_counters.miscounted(connection)))


def bare(found: DeadLetter) -> bytes:
    """Without what makes every letter another one; as bytes, for a header that is NaN equals nothing."""
    return pickle.dumps(msgspec.structs.replace(found, id="", identity=""))


async def test_a_letter_in_bulk_is_the_letter_that_came_alone(store: PostgresStore) -> None:
    messages = [each.message for each in corpus() if len(each.message.body or b"") < 100_000]
    for number, message in enumerate(messages):
        alone = an_entry(
            f"alone {number}", message=message, attempts=3, quarantine="why" if number % 7 == 0 else None
        )
        together = msgspec.structs.replace(alone, identity=f"together {number}")
        one, _ = await store._write(partial(sql_record.record, entry=alone, now=NOON))
        [(other, _)] = await store._write(partial(sql_intake.record_all, entries=[together], now=NOON))

        assert bare(await letter(store, one)) == bare(await letter(store, other))

    assert await miscounted(store) == []


async def test_a_batch_answers_as_if_its_entries_had_come_one_by_one(store: PostgresStore) -> None:
    known, _ = await store.record(an_entry("known"))
    redriven, _ = await store.record(an_entry("redriven"))
    back = returned(await sent(store, redriven))
    twice = an_entry("twice")

    answers: Any = await store._write(
        partial(sql_intake.record_all, entries=[an_entry("known"), back, twice, an_entry("new"), twice], now=NOON)
    )

    recorded = [how for _, how in answers]
    assert recorded == [Recorded.AGAIN, Recorded.CAME_BACK, Recorded.NEW, Recorded.NEW, Recorded.AGAIN]
    assert [answers[0][0], answers[1][0]] == [known, redriven]
    assert answers[2][0] == answers[4][0]
    assert len(await store.find(LetterQuery())) == 4
    assert await miscounted(store) == []


async def test_two_processes_that_record_the_same_messages_at_once_make_one_letter_of_each(
    store: PostgresStore, postgres_store_url: str
) -> None:
    other = PostgresStore(postgres_store_url, clock=ManualClock(NOON))
    entries = [an_entry(str(number), group=f"group {number % 7}") for number in range(300)]

    answers = await asyncio.gather(
        *(store.record(entry) for entry in entries), *(other.record(entry) for entry in reversed(entries))
    )

    assert len({letter_id for letter_id, _ in answers}) == 300
    assert [how for _, how in answers].count(Recorded.NEW) == 300
    assert (await store.statistics()).total == 300
    assert await miscounted(store) == []
    await other.close()


async def test_one_message_that_cannot_be_kept_takes_nobody_along(store: PostgresStore) -> None:
    """Text that no column takes is escaped; a failure without a number is what is left to be refused."""
    good = [an_entry(str(number)) for number in range(20)]
    bad = msgspec.structs.replace(good[0], identity="bad", failures=())

    answers = await asyncio.gather(*map(store.record, [*good, bad]), return_exceptions=True)

    assert isinstance(answers[-1], Exception)
    assert (await store.statistics()).total == 20
