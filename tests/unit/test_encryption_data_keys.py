"""Data keys: kept, remembered for a while, wrapped again and shredded while others read and write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.errors import KeyMissing, SealBroken
from redrive.privacy.encryption.data_keys import DataKeys, MemoryDataKeys, WrappedKey
from redrive.privacy.encryption.envelope import MOST_USES, Place
from redrive.privacy.encryption.key_ring import KeyRing
from redrive.privacy.encryption.key_source import Wrapped
from redrive.privacy.encryption.local_keys import KeyEncryptionKey, LocalKeys
from redrive.privacy.encryption.rotation import Rotated, rewrap_all
from redrive.privacy.encryption.sealer import RESERVED
from redrive.testing.data_keys_contract import DAY, DataKeysContract
from support.sealing import KEY, OLD_KEY, OTHER_KEY, Gone, OpeningSealer

NEXT_DAY = DAY + timedelta(days=1)
PLACE = Place("a", "revisions.body", 0)


class TestMemoryDataKeys(DataKeysContract):
    @pytest.fixture
    def keys(self) -> MemoryDataKeys:
        return MemoryDataKeys()


class Ticking:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Counted(LocalKeys):
    """Counts how often somebody has to be asked."""

    def __init__(self, keys: Sequence[KeyEncryptionKey]) -> None:
        super().__init__(keys)
        self.unwrapped = 0

    def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        self.unwrapped += 1
        return super().unwrap(wrapped, context)


def a_sealer(keys: DataKeys, *known: KeyEncryptionKey, **ring: Any) -> OpeningSealer:
    return OpeningSealer(keys, KeyRing(LocalKeys(known or (KEY,)), **ring))


# One process


async def test_one_data_key_per_queue_and_day() -> None:
    sealer, other = (a_sealer(keys) for keys in [MemoryDataKeys()] * 2)
    sealed = {
        (queue, day): {
            (await each.seal(b"x", PLACE, queue=queue, day=day))[1:17] for each in (sealer, other, sealer)
        }
        for queue in ("orders", "mails")
        for day in (DAY, NEXT_DAY)
    }
    assert [len(ids) for ids in sealed.values()] == [1, 1, 1, 1], "processes share it"
    assert len(set.union(*sealed.values())) == 4


async def test_what_one_process_seals_another_opens() -> None:
    keys = MemoryDataKeys()
    sealed = [await a_sealer(keys).seal(b"%d" % number, PLACE, queue="orders", day=DAY) for number in range(5)]
    assert [await a_sealer(keys).open(each, PLACE) for each in sealed] == [b"0", b"1", b"2", b"3", b"4"]
    with pytest.raises(SealBroken):
        await a_sealer(keys).open(sealed[0], Place("b", "revisions.body", 0))
    with pytest.raises(KeyMissing):
        await a_sealer(keys, OTHER_KEY).open(sealed[0], PLACE)


async def test_a_data_key_moved_to_another_queue_or_day_does_not_unwrap() -> None:
    kept = KeyRing(LocalKeys([KEY])).new_key("orders", DAY)
    for moved in (
        WrappedKey(kept.id, "mails", kept.day, kept.wrapped),
        WrappedKey(kept.id, "orders", NEXT_DAY, kept.wrapped),
        WrappedKey(bytes(16), "orders", kept.day, kept.wrapped),
        WrappedKey(kept.id, "orders", kept.day, kept.wrapped, turn=1),
    ):
        with pytest.raises(SealBroken):
            KeyRing(LocalKeys([KEY])).learn(moved)


async def test_a_key_that_is_not_durable_yet_seals_nothing() -> None:
    class Away(MemoryDataKeys):
        async def add(self, key: WrappedKey) -> WrappedKey:
            raise OSError(f"the store is away, and {key.queue} has no key")

    sealer = a_sealer(Away())
    with pytest.raises(OSError, match="away"):
        await sealer.key_for("orders", DAY)
    assert len(sealer.ring) == 0
    assert sealer.ring.sealing_key("orders", DAY) is None


async def test_those_who_come_together_share_one_key_and_one_reservation() -> None:
    reserved: list[int] = []

    class Watched(MemoryDataKeys):
        async def reserve(self, key_id: bytes, uses: int) -> bool:
            reserved.append(uses)
            return await super().reserve(key_id, uses)

    sealer = a_sealer(Watched())
    found = await asyncio.gather(*(sealer.key_for("orders", DAY) for _ in range(20)))
    assert len(set(map(id, found))) == 1
    assert reserved == [RESERVED]


async def test_a_data_key_is_followed_by_another_before_it_is_used_up() -> None:
    keys = MemoryDataKeys()
    sealer = a_sealer(keys)
    first = await sealer.seal(b"1", PLACE, queue="orders", day=DAY)
    while await keys.reserve(first[1:17], MOST_USES // 8):  # as other processes do
        pass
    assert await keys.reserve(first[1:17], MOST_USES // 8 - RESERVED)
    key = await sealer.key_for("orders", DAY)
    for _ in range(RESERVED - 1):
        key.seal(b"", PLACE)
    second = await sealer.seal(b"2", PLACE, queue="orders", day=DAY)

    assert second[1:17] != first[1:17]
    kept = await keys.current("orders", DAY)
    assert kept is not None
    assert (kept.id, kept.turn) == (second[1:17], 1)
    assert [await a_sealer(keys).open(each, PLACE) for each in (first, second)] == [b"1", b"2"]
    assert (await a_sealer(keys).seal(b"", PLACE, queue="orders", day=DAY))[1:17] == second[1:17]


async def test_more_uses_than_are_left_are_reserved_first() -> None:
    sealer = a_sealer(MemoryDataKeys())
    key = await sealer.key_for("orders", DAY, uses=3 * RESERVED)
    assert key.left == 3 * RESERVED
    with pytest.raises(ValueError, match="so many"):
        await sealer.key_for("orders", DAY, uses=MOST_USES + 1)


# What is remembered


async def test_unwrapped_keys_are_remembered_for_their_time_and_no_longer() -> None:
    keys, source, clock = MemoryDataKeys(), Counted([KEY]), Ticking()
    sealed = await a_sealer(keys).seal(b"x", PLACE, queue="orders", day=DAY)
    sealer = OpeningSealer(keys, KeyRing(source, age=300, now=clock))
    for _ in range(3):
        await sealer.open(sealed, PLACE)
    assert source.unwrapped == 1
    clock.now = 299.9
    await sealer.open(sealed, PLACE)
    assert source.unwrapped == 1
    clock.now = 300.0
    assert sealer.ring.known([sealed[1:17]]) == {}
    assert len(sealer.ring) == 0, "no secret stays in memory behind its time"
    await sealer.open(sealed, PLACE)
    assert source.unwrapped == 2


async def test_a_ring_holds_no_more_keys_than_it_may_and_drops_what_was_used_longest_ago() -> None:
    keys = MemoryDataKeys()
    sealed = [await a_sealer(keys).seal(b"x", PLACE, queue=f"q{number}", day=DAY) for number in range(5)]
    sealer = a_sealer(keys, most=3)
    for each in (sealed[0], sealed[1], sealed[2], sealed[0], sealed[3]):
        await sealer.open(each, PLACE)
    assert len(sealer.ring) == 3
    assert sealer.ring.known(each[1:17] for each in sealed).keys() == {sealed[each][1:17] for each in (0, 2, 3)}


async def test_more_keys_than_a_ring_holds_can_be_needed_at_once() -> None:
    keys = MemoryDataKeys()
    sealed = [await a_sealer(keys).seal(b"%d" % number, PLACE, queue=f"q{number}", day=DAY) for number in range(9)]
    for ring in ({"most": 2}, {"age": 0.0}):
        found = await a_sealer(keys, **ring).open_all([(each, PLACE) for each in sealed])
        assert found == [b"%d" % number for number in range(9)], "what is not on the ring is not shredded"


async def test_many_threads_can_share_a_ring() -> None:
    keys = MemoryDataKeys()
    sealed = [await a_sealer(keys).seal(b"%d" % number, PLACE, queue=f"q{number}", day=DAY) for number in range(6)]
    wrapped = await keys.find([each[1:17] for each in sealed])
    ring = KeyRing(LocalKeys([KEY]), most=3, age=0.001)

    def work(seed: int) -> int:
        dice, opened = random.Random(seed), 0  # noqa: S311  no secret
        for _ in range(300):
            number = dice.randrange(6)
            key = ring.learn(wrapped[sealed[number][1:17]], uses=1)
            assert key.open(sealed[number], PLACE) == b"%d" % number
            opened += 1
            ring.known(wrapped)
            ring.sealing_key(f"q{number}", DAY)
        return opened

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(work, range(6))) == 1800
    assert len(ring) <= 3


# Shredding


async def test_what_is_shredded_is_told_as_such_and_everything_else_opens() -> None:
    keys = MemoryDataKeys()
    sealer = a_sealer(keys)
    days = [DAY + timedelta(days=number) for number in range(4)]
    sealed = [await sealer.seal(b"%d" % each.day, PLACE, queue="orders", day=each) for each in days]
    other = await sealer.seal(b"other", PLACE, queue="mails", day=days[1])

    sealer.ring.forget(await keys.shred("orders", days[1], days[2]))

    found = await sealer.open_all([(each, PLACE) for each in (*sealed, other)])
    assert found == [b"1", None, None, b"4", b"other"]


async def test_others_forget_what_was_shredded_in_their_time() -> None:
    keys, clock = MemoryDataKeys(), Ticking()
    sealed = await a_sealer(keys).seal(b"x", PLACE, queue="orders", day=DAY)
    other = a_sealer(keys, age=300, now=clock)
    await other.open(sealed, PLACE)
    await keys.shred("orders", DAY, DAY)
    clock.now = 300
    with pytest.raises(Gone):
        await other.open(sealed, PLACE)


async def test_a_day_that_was_shredded_gets_a_new_key_when_something_is_sealed_for_it() -> None:
    keys = MemoryDataKeys()
    sealer = a_sealer(keys)
    old = await sealer.seal(b"old", PLACE, queue="orders", day=DAY)
    sealer.ring.forget(await keys.shred(None, DAY, DAY))
    new = await sealer.seal(b"new", PLACE, queue="orders", day=DAY)
    assert await a_sealer(keys).open(new, PLACE) == b"new"
    assert new[1:17] != old[1:17]


# Rotation


async def test_a_new_key_takes_over_and_the_old_one_is_needed_no_more() -> None:
    keys = MemoryDataKeys()
    old = a_sealer(keys, OLD_KEY)
    places = [Place(f"{number}", "body", 0) for number in range(250)]
    sealed = [
        await old.seal(each.letter_id.encode(), each, queue=f"q{each.letter_id}", day=DAY) for each in places
    ]
    seen: list[int] = []

    assert await rewrap_all(keys, LocalKeys([KEY, OLD_KEY]), on_progress=seen.append) == Rotated(250, ())

    assert sum(seen) == 250
    new = a_sealer(keys, KEY)
    found = await new.open_all(list(zip(sealed, places, strict=True)))
    assert found == [each.letter_id.encode() for each in places]
    assert await rewrap_all(keys, LocalKeys([KEY])) == Rotated(0, ())


async def test_keys_that_cannot_be_wrapped_again_are_told_and_the_others_are() -> None:
    keys = MemoryDataKeys()
    await a_sealer(keys, OLD_KEY).seal(b"", PLACE, queue="a", day=DAY)
    lost = await a_sealer(keys, OTHER_KEY).seal(b"", PLACE, queue="b", day=DAY)
    damaged = await keys.add(WrappedKey(bytes(16), "c", DAY, Wrapped(OLD_KEY.id, b"damaged")))

    assert await rewrap_all(keys, LocalKeys([KEY, OLD_KEY])) == Rotated(
        1, tuple(sorted((OLD_KEY.id, OTHER_KEY.id)))
    )
    assert await keys.find([damaged.id]) == {damaged.id: damaged}
    assert await a_sealer(keys, OTHER_KEY).open(lost, PLACE) == b""


async def test_a_key_that_somebody_adds_with_the_old_key_meanwhile_is_wrapped_again_too() -> None:
    class Straggling(MemoryDataKeys):
        """While the first page is at hand, somebody who was not told yet adds a key before it."""

        async def wrapped_by_others(self, kek_id: str, *, after: bytes, limit: int) -> Sequence[WrappedKey]:
            page = await super().wrapped_by_others(kek_id, after=after, limit=limit)
            bare = WrappedKey(bytes(16), "late", DAY, Wrapped("", b""))
            await self.add(bare.rewrapped(OLD_KEY.wrap(bytes(32), bare.context)))
            return page

    keys = Straggling()
    await a_sealer(keys, OLD_KEY).seal(b"", PLACE, queue="early", day=DAY)

    assert await rewrap_all(keys, LocalKeys([KEY, OLD_KEY])) == Rotated(2, ())


class Interleaved:
    """Everybody else may come in between, before and behind each transaction."""

    def __init__(self, kept: MemoryDataKeys, dice: random.Random) -> None:
        self._kept = kept
        self._dice = dice

    def __getattr__(self, name: str) -> Callable[..., Any]:
        transaction = getattr(self._kept, name)

        async def between(*given: Any, **more: Any) -> Any:
            await pause(self._dice)
            answer = await transaction(*given, **more)
            await pause(self._dice)
            return answer

        return between


async def pause(dice: random.Random) -> None:
    for _ in range(dice.randrange(3)):
        await asyncio.sleep(0)


class Shop:
    """Rows of sealed values, and processes with rings of their own that write, read, rotate and shred."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311  no secret
        self.kept = MemoryDataKeys()
        self.keys: Any = Interleaved(self.kept, self.dice)
        self.rows: dict[Place, tuple[bytes, date]] = {}
        self.shredded: set[bytes] = set()
        self.opened = 0

    def process(self, *known: KeyEncryptionKey) -> OpeningSealer:
        return OpeningSealer(self.keys, KeyRing(LocalKeys(known), most=2, age=self.dice.choice([0.0, 60.0])))

    async def write(self, name: str, *known: KeyEncryptionKey) -> None:
        sealer = self.process(*known)
        for number in range(15):
            place, day = Place(f"{name}{number}", "body", number), DAY + timedelta(days=self.dice.randrange(3))
            await self._commit(sealer, place, day)
            await pause(self.dice)

    async def _commit(self, sealer: OpeningSealer, place: Place, day: date) -> None:
        """As a store does: the key is there in the very transaction that keeps the value, or another is taken."""
        while True:
            key = await sealer.key_for("orders", day)
            sealed = key.seal(place.letter_id.encode(), place)
            await pause(self.dice)
            if await self.kept.find([key.id]):
                self.rows[place] = sealed, day
                return
            sealer.ring.forget([key.id])

    async def read(self, *known: KeyEncryptionKey) -> None:
        sealer = self.process(*known)
        for _ in range(25):
            await pause(self.dice)
            if self.rows:
                place, (sealed, _) = self.dice.choice(list(self.rows.items()))
                await self._check(sealer, sealed, place)

    async def _check(self, sealer: OpeningSealer, sealed: bytes, place: Place) -> None:
        try:
            assert await sealer.open(sealed, place) == place.letter_id.encode()
            self.opened += 1
        except Gone:
            assert sealed[1:17] in self.shredded, "a key is gone that nobody shredded"

    async def rotate(self, *known: KeyEncryptionKey) -> None:
        for _ in range(3):
            await pause(self.dice)
            assert (await rewrap_all(self.keys, LocalKeys(known))).left == ()

    async def shred_a_day(self) -> None:
        for _ in range(10):
            await pause(self.dice)
        # Known before it happens: a reader may find it gone before this one hears of it.
        day = DAY + timedelta(days=1)
        self.shredded |= {key.id for key in self.kept._kept.values() if key.day == day}
        self.shredded |= set(await self.kept.shred("orders", day, day))


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_while_others_read_write_rotate_and_shred_nothing_else_is_ever_lost(seed: int) -> None:
    async def work() -> None:
        shop = Shop(seed)
        await asyncio.gather(
            shop.write("old", OLD_KEY, KEY),  # knows the new key, and has not been told to use it
            shop.write("new", KEY, OLD_KEY),
            shop.read(OLD_KEY, KEY),
            shop.read(KEY, OLD_KEY),
            shop.rotate(KEY, OLD_KEY),
            shop.rotate(KEY, OLD_KEY),
            shop.shred_a_day(),
        )
        assert len(shop.rows) == 30
        assert (await rewrap_all(shop.keys, LocalKeys([KEY, OLD_KEY]))).left == ()
        last = shop.process(KEY)  # the old one is thrown away
        for place, (sealed, _) in shop.rows.items():
            await shop._check(last, sealed, place)
        assert shop.opened >= 1

    asyncio.run(work())


def test_the_protocol_is_kept_by_what_is_kept_in_memory() -> None:
    kept: DataKeys = MemoryDataKeys()
    assert isinstance(asyncio.run(_found(kept, [])), Mapping)


async def _found(keys: DataKeys, ids: Collection[bytes]) -> Mapping[bytes, WrappedKey]:
    return await keys.find(ids)
