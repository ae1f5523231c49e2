"""The contract of `DataKeys`: every promise of every method, for whatever keeps wrapped data keys.

A test class inherits it and gives a fixture `keys`: an empty place for them.
"""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import TYPE_CHECKING

from redrive.privacy.encryption.data_keys import WrappedKey
from redrive.privacy.encryption.envelope import MOST_USES
from redrive.privacy.encryption.key_source import Wrapped

if TYPE_CHECKING:
    from redrive.privacy.encryption.data_keys import DataKeys

DAY = date(2026, 3, 1)
TRICKY = "Ünïcode 'quoted' \\ queue"


def a_key(number: int, *, queue: str = "orders", days: int = 0, turn: int = 0, kek: str = "kek-1") -> WrappedKey:
    wrapped = Wrapped(kek, bytes([number]) * 60)
    return WrappedKey(bytes([number]) * 16, queue, DAY + timedelta(days=days), wrapped, turn)


class DataKeysContract:
    async def test_a_key_is_found_as_it_was_added(self, keys: DataKeys) -> None:
        added = [a_key(1), a_key(2, queue=TRICKY), a_key(3, days=-20_000)]
        for each in added:
            assert await keys.add(each) == each
        assert await keys.find([each.id for each in added]) == {each.id: each for each in added}
        assert await keys.find([]) == {}
        assert await keys.find([b"\xff" * 16]) == {}

    async def test_of_one_queue_day_and_turn_the_first_key_counts(self, keys: DataKeys) -> None:
        await keys.add(a_key(1))
        assert await keys.add(a_key(2)) == a_key(1)
        assert await keys.add(a_key(1)) == a_key(1)
        assert await keys.find([a_key(2).id]) == {}

    async def test_those_who_add_at_once_agree_on_one(self, keys: DataKeys) -> None:
        answers = await asyncio.gather(*(keys.add(a_key(number)) for number in range(1, 9)))
        assert len({each.id for each in answers}) == 1

    async def test_the_current_key_is_that_of_the_highest_turn(self, keys: DataKeys) -> None:
        for each in (a_key(1), a_key(2, turn=2), a_key(3, turn=1), a_key(4, days=1), a_key(5, queue="other")):
            await keys.add(each)
        assert await keys.current("orders", DAY) == a_key(2, turn=2)
        assert await keys.current("orders", DAY + timedelta(days=1)) == a_key(4, days=1)
        assert await keys.current("orders", DAY + timedelta(days=2)) is None
        assert await keys.current("nosuch", DAY) is None

    async def test_uses_are_reserved_up_to_the_limit_and_not_beyond(self, keys: DataKeys) -> None:
        await keys.add(a_key(1))
        await keys.add(a_key(2, turn=1))
        assert await keys.reserve(a_key(1).id, MOST_USES - 1)
        assert not await keys.reserve(a_key(1).id, 2)
        assert await keys.reserve(a_key(1).id, 1)
        assert not await keys.reserve(a_key(1).id, 1)
        assert await keys.reserve(a_key(2).id, 1)
        assert not await keys.reserve(b"\xff" * 16, 1)

    async def test_adding_a_key_again_gives_no_uses_back(self, keys: DataKeys) -> None:
        await keys.add(a_key(1))
        await keys.reserve(a_key(1).id, MOST_USES)
        await keys.add(a_key(1))
        assert not await keys.reserve(a_key(1).id, 1)

    async def test_keys_that_others_wrapped_come_in_pages(self, keys: DataKeys) -> None:
        old = [a_key(number, days=number) for number in (5, 3, 9)]
        for each in (*old, a_key(4, days=4, kek="kek-2")):
            await keys.add(each)
        first = await keys.wrapped_by_others("kek-2", after=b"", limit=2)
        assert [each.id[0] for each in first] == [3, 5]
        assert [each.id[0] for each in await keys.wrapped_by_others("kek-2", after=first[-1].id, limit=2)] == [9]
        assert list(await keys.wrapped_by_others("kek-2", after=bytes([9]) * 16, limit=2)) == []

    async def test_a_key_is_wrapped_again_only_if_it_is_what_was_read(self, keys: DataKeys) -> None:
        old = await keys.add(a_key(1))
        new = old.rewrapped(Wrapped("kek-2", b"2"))
        assert await keys.rewrap(old, new)
        assert not await keys.rewrap(old, old.rewrapped(Wrapped("kek-3", b"3")))
        assert await keys.find([old.id]) == {old.id: new}
        await keys.shred(None, DAY, DAY)
        assert not await keys.rewrap(new, old)
        assert await keys.find([old.id]) == {}

    async def test_wrapping_again_gives_no_uses_back(self, keys: DataKeys) -> None:
        old = await keys.add(a_key(1))
        await keys.reserve(old.id, MOST_USES)
        await keys.rewrap(old, old.rewrapped(Wrapped("kek-2", b"2")))
        assert not await keys.reserve(old.id, 1)

    async def test_shredding_takes_the_days_and_the_queue_that_were_named(self, keys: DataKeys) -> None:
        for number in range(1, 6):
            await keys.add(a_key(number, days=number))
        await keys.add(a_key(6, queue=TRICKY, days=3))
        gone = await keys.shred("orders", DAY + timedelta(days=2), DAY + timedelta(days=4))
        assert sorted(each[0] for each in gone) == [2, 3, 4]
        left = await keys.find([bytes([number]) * 16 for number in range(1, 7)])
        assert sorted(each[0] for each in left) == [1, 5, 6]
        assert await keys.current("orders", DAY + timedelta(days=3)) is None
        assert not await keys.reserve(a_key(3).id, 1)
        everything = await keys.shred(None, DAY, DAY + timedelta(days=9))
        assert sorted(each[0] for each in everything) == [1, 5, 6]
        assert list(await keys.shred(None, DAY, DAY + timedelta(days=9))) == []

    async def test_a_shredded_day_can_have_a_key_again(self, keys: DataKeys) -> None:
        await keys.add(a_key(1))
        await keys.shred(None, DAY, DAY)
        fresh = a_key(2, turn=1)
        assert await keys.add(fresh) == fresh
        assert await keys.current("orders", DAY) == fresh
