"""Whole letters in bulk: portions that memory can bear."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from redrive.stores.sql_whole import AT_ONCE, BUDGET, portions
from redrive.stores.sqlite import SqliteStore
from redrive.testing.letters import a_message, an_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    opened = SqliteStore("sqlite:///:memory:")
    yield opened
    await opened.close()


async def recorded(store: SqliteStore, *sizes: int) -> list[str]:
    return [(await store.record(an_entry(message=a_message(body=b"x" * size))))[0] for size in sizes]


async def portions_of(store: SqliteStore, ids: list[str], *, story: bool = True) -> list[int]:
    found = await store._read(partial(portions, letter_ids=ids, story=story))
    assert [each for portion in found for each in portion] == list(dict.fromkeys(ids))
    return [len(portion) for portion in found]


async def test_a_portion_holds_no_more_than_memory_allows(store: SqliteStore) -> None:
    part = BUDGET * 2 // 5
    ids = await recorded(store, part, part, part, 10, 3 * BUDGET, 10, part)

    assert await portions_of(store, ids, story=False) == [2, 2, 1, 2]


async def test_a_portion_holds_no_more_letters_than_a_statement_should_name(store: SqliteStore) -> None:
    ids = await recorded(store, *[1] * (AT_ONCE + 50))

    assert await portions_of(store, ids) == [AT_ONCE, 50]
    assert await portions_of(store, ids + ids[:7]) == [AT_ONCE, 50]


async def test_properties_count_like_bodies(store: SqliteStore) -> None:
    message = a_message(body=None, properties=b"x" * (BUDGET * 2 // 5))
    ids = [(await store.record(an_entry(message=message)))[0] for _ in range(3)]

    assert await portions_of(store, ids) == [2, 1]


async def test_failures_count_only_if_they_are_read(store: SqliteStore) -> None:
    ids = await recorded(store, BUDGET - 500, 10)

    assert await portions_of(store, ids, story=False) == [2]
    assert await portions_of(store, ids, story=True) == [1, 1]


async def test_no_ids_are_no_portions(store: SqliteStore) -> None:
    assert await portions_of(store, []) == []
