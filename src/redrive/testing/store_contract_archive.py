"""What archives and imports stand on: letters with their whole story in bulk, settled ones by age, a purge that
looks twice, and letters that come in whole.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from redrive.dead_letter import Actor, Recorded, Status, Transition
from redrive.keeping import Ended, EndedCount, Limit, Limits
from redrive.letter_query import LetterQuery
from redrive.testing.letters import NOON, a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, claimed, letter, place, returned, sent
from redrive.testing.store_contract_record import BODIES, HEADERS, PROPERTIES

if TYPE_CHECKING:
    from typing import Any

    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore
    from redrive.testing.clock import ManualClock

_SETTLED = (Status.RESOLVED, Status.DISCARDED)
_LARGE = 3 * 1024 * 1024


async def a_long_life(store: DeadLetterStore) -> DeadLetter:
    """Edited, sent back, failed again, edited once more and discarded."""
    message = a_message(properties=b"\x00\xff")
    letter_id, _ = await store.record(an_entry(attempts=3, message=message))
    await store.revise(letter_id, msgspec.structs.replace(message, body=b"\xff\x00", key=b""), base=0, by=ANN)
    await store.record(returned(await sent(store, letter_id), attempts=2))
    await store.revise(letter_id, msgspec.structs.replace(message, body=None), base=1, by=ANN)
    await store.change([letter_id], Transition.DISCARD, by=ANN)
    return await letter(store, letter_id)


async def whole(store: DeadLetterStore, *letter_ids: str, story: bool = True) -> list[DeadLetter]:
    return [each async for each in store.whole(letter_ids, story=story)]


async def _numbers(store: DeadLetterStore) -> Any:
    """What is counted; a group's title is made anew from the failure."""
    counted = await store.statistics()
    groups = [(each.id, each.by_status, each.first_seen, each.last_seen) for each in await store.groups()]
    return groups, counted.by_status, counted.by_type, counted.by_queue, counted.oldest


class WholeContract(StoreCase):
    async def test_many_are_told_as_one_is_in_the_order_they_are_asked_for(self, store: DeadLetterStore) -> None:
        told = [await a_long_life(store), *[await letter(store, (await place(store, each)).id) for each in Status]]

        assert await whole(store, *(each.id for each in told)) == told
        assert await whole(store, *(each.id for each in reversed(told))) == told[::-1]

    async def test_one_that_is_gone_is_left_out_and_one_asked_for_twice_comes_once(
        self, store: DeadLetterStore
    ) -> None:
        told = await a_long_life(store)

        assert await whole(store, "0" * 36, told.id, told.id) == [told]
        assert await whole(store) == []

    @pytest.mark.parametrize("story", [True, False])
    async def test_however_many_and_however_large_each_comes_once(
        self,
        store: DeadLetterStore,
        story: bool,  # noqa: FBT001  pytest gives it by name
    ) -> None:
        bodies = [b"x" * _LARGE if number % 100 == 0 else b"%d" % number for number in range(701)]
        recorded = await asyncio.gather(*(store.record(an_entry(message=a_message(body=each))) for each in bodies))

        found = await whole(store, *(letter_id for letter_id, _ in recorded), story=story)

        assert [each.message.body for each in found] == bodies
        assert all(bool(each.failures) is story for each in found)

    async def test_without_the_story_a_letter_is_as_a_list_has_it_with_its_body(
        self, store: DeadLetterStore
    ) -> None:
        told = await a_long_life(store)

        assert await whole(store, told.id, story=False) == await store.find(LetterQuery(bodies=True))


async def _in_queue(store: DeadLetterStore, queue: str, status: Status) -> DeadLetter:
    return await letter(store, (await place(store, status, an_entry(queue=queue))).id)


class EndedContract(StoreCase):
    async def test_only_settled_letters_are_named_the_longest_ago_first(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        placed = {}
        for status in (*Status, *_SETTLED):
            clock.advance(3600)
            placed[(await place(store, status)).id] = status
        settled = [letter_id for letter_id, status in placed.items() if status in _SETTLED]

        found = await store.ended(Limits.alike(clock.now() + timedelta(seconds=1)), limit=100)

        assert [each.version.id for each in found] == settled
        whole_ones = [await letter(store, each) for each in settled]
        assert found == [Ended(each.version, each.queue, each.status) for each in whole_ones]
        counted = await store.count_ended(Limits.alike(clock.now() + timedelta(seconds=1)))
        assert [(each.status, each.letters) for each in counted] == [(Status.DISCARDED, 2), (Status.RESOLVED, 2)]

    async def test_age_is_that_of_the_last_change(self, store: DeadLetterStore, clock: ManualClock) -> None:
        old = await place(store, Status.DISCARDED)
        clock.advance(60)
        await place(store, Status.RESOLVED, an_entry(at=NOON - timedelta(days=400)))

        before = Limits.alike(clock.now())
        assert [each.version.id for each in await store.ended(before, limit=100)] == [old.id]
        assert await store.count_ended(before) == [EndedCount("orders", Status.DISCARDED, 1)]
        assert await store.ended(Limits.alike(NOON), limit=100) == []
        assert await store.count_ended(Limits.alike(NOON)) == []

    async def test_pages_hold_each_letter_once(self, store: DeadLetterStore, clock: ManualClock) -> None:
        for number in range(11):
            await place(store, Status.DISCARDED)
            clock.advance(number % 2)  # two at one moment
        before = Limits.alike(clock.now() + timedelta(days=1))
        found, after = [], None
        while page := await store.ended(before, after=after, limit=3):
            found += page
            after = page[-1].version

        assert len(found) == len({each.version.id for each in found}) == 11
        assert found == await store.ended(before, limit=100)

    async def test_a_status_and_a_queue_may_have_limits_of_their_own(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        """Each letter by the limit of its queue and status, in one order and on pages of any size."""
        hours = [clock.now() + timedelta(hours=number) for number in range(1, 7)]
        placed = []
        for _ in hours:
            clock.advance(3600)
            for queue in ("orders", "payments", "mail"):
                placed += [await _in_queue(store, queue, status) for status in _SETTLED]
        limits = Limits(
            Limit(hours[3], hours[1]), {"payments": Limit(hours[0], hours[5]), "none": Limit(hours[0], hours[0])}
        )
        expected = [each for each in placed if each.changed_at < limits.of(each.queue, each.status)]

        found, after = [], None
        while page := await store.ended(limits, after=after, limit=4):
            found += page
            after = page[-1].version

        assert {each.version.id for each in found} == {each.id for each in expected}
        assert len(found) == len(expected) == 3 * 2 + 1 * 2 + 5
        counted = {(each.queue, each.status): each.letters for each in await store.count_ended(limits)}
        assert counted == Counter((each.queue, each.status) for each in expected)

    async def test_the_bytes_of_their_bodies_are_told_if_they_are_asked_for(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        for body in (b"x" * 1000, b"y" * 20_000, None):
            await place(store, Status.DISCARDED, an_entry(message=a_message(body=body)))

        [told] = await store.count_ended(Limits.alike(clock.now() + timedelta(days=1)), sizes=True)

        assert told.letters == 3
        assert told.bytes is not None
        assert 21_000 <= told.bytes < 22_000  # sealed ones are a little longer


class GuardedPurgeContract(StoreCase):
    @pytest.mark.parametrize("status", _SETTLED)
    async def test_a_letter_that_is_as_it_was_seen_goes(self, store: DeadLetterStore, status: Status) -> None:
        seen = (await letter(store, (await place(store, status)).id)).version

        assert await store.purge([seen], by=ANN) == {}
        assert await store.get(seen.id) is None

    @pytest.mark.parametrize("status", [each for each in Status if each not in _SETTLED])
    async def test_seen_or_not_only_settled_letters_go(self, store: DeadLetterStore, status: Status) -> None:
        seen = (await letter(store, (await place(store, status)).id)).version

        assert await store.purge([seen], by=ANN) == {seen.id: status}
        assert await store.get(seen.id) is not None

    async def test_a_letter_that_was_decided_anew_stays(self, store: DeadLetterStore, clock: ManualClock) -> None:
        seen = (await letter(store, (await place(store, Status.RESOLVED)).id)).version
        clock.advance(1)
        await store.change([seen.id], Transition.RESTORE, by=ANN)
        await store.change([seen.id], Transition.RESOLVE, by=ANN)

        assert await store.purge([seen], by=ANN) == {seen.id: Status.RESOLVED}
        assert await store.purge([(await letter(store, seen.id)).version], by=ANN) == {}

    async def test_a_letter_that_was_delivered_once_more_stays(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.DISCARDED, an_entry("it"))
        seen = (await letter(store, placed.id)).version
        late = an_entry("it", at=NOON + timedelta(hours=1), attempts=2)
        assert (await store.record(late))[1] is Recorded.AGAIN

        assert await store.purge([seen, "0" * 36], by=ANN) == {seen.id: Status.DISCARDED, "0" * 36: None}

    async def test_one_that_changed_holds_up_no_other(self, store: DeadLetterStore) -> None:
        seen = [(await letter(store, (await place(store, Status.DISCARDED)).id)).version for _ in range(3)]
        await store.change([seen[1].id], Transition.RESTORE, by=ANN)

        assert await store.purge(seen, by=ANN) == {seen[1].id: Status.PENDING}
        assert (await store.statistics()).total == 1


class RestoreContract(StoreCase):
    async def test_a_letter_that_was_purged_comes_back_as_it_was(self, store: DeadLetterStore) -> None:
        told = await a_long_life(store)
        before = await _numbers(store)
        await store.purge([told.id], by=ANN)

        assert await store.restore_whole([told], by=Actor("bob", "from a file")) == {told.id}

        found = await letter(store, told.id)
        lines = [each.what for each in found.history]
        assert msgspec.structs.replace(found, history=told.history) == told
        assert found.history[: len(told.history)] == told.history
        assert lines[len(told.history) :] == ["purged", "imported"]
        assert (found.history[-1].by, found.history[-1].reason) == ("bob", "from a file")
        assert await _numbers(store) == before

    @pytest.mark.parametrize("body", BODIES[:5])
    @pytest.mark.parametrize("headers", HEADERS)
    async def test_its_message_is_the_same_byte_for_byte(
        self, store: DeadLetterStore, body: bytes | None, headers: tuple[Any, ...]
    ) -> None:
        message = a_message(body=body, headers=headers, id="\ud800", source="\x00", key=b"\xff")
        placed = await place(store, Status.DISCARDED, an_entry("\x00" * 300, message=message))
        told = await letter(store, placed.id)
        await store.purge([told.id], by=ANN)

        await store.restore_whole([told], by=ANN)

        assert repr(await letter(store, told.id)).encode("utf-8", "surrogatepass").startswith(b"DeadLetter(")
        assert (await letter(store, told.id)).message.body == body
        assert repr((await letter(store, told.id)).message.headers) == repr(told.message.headers)
        assert (await letter(store, told.id)).identity == told.identity

    @pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
    async def test_it_is_sent_with_the_properties_it_had(
        self, store: DeadLetterStore, properties: bytes | None
    ) -> None:
        message = a_message(properties=properties)
        letter_id, _ = await store.record(an_entry(message=message))
        edited = msgspec.structs.replace(message, body=b"better")
        await store.revise(letter_id, edited, base=0, by=ANN)
        await store.change([letter_id], Transition.DISCARD, by=ANN)
        told = await letter(store, letter_id)
        await store.purge([told.id], by=ANN)

        await store.restore_whole([told], by=ANN)

        assert (await letter(store, told.id)).revisions == told.revisions
        assert await whole(store, told.id, story=False) == [
            msgspec.structs.replace(told, failures=(), generations=(), revisions=(), history=())
        ]
        await store.change([told.id], Transition.RESTORE, by=ANN)
        assert (await claimed(store, told.id)).message == edited

    async def test_what_is_here_by_its_id_or_its_identity_is_not_made_twice(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.RESOLVED, an_entry("it"))
        told = await letter(store, placed.id)
        namesake = msgspec.structs.replace(told, id="018f0000-0000-7000-8000-00000000000f", group_id="f" * 32)
        cousin = msgspec.structs.replace(told, identity="another")

        assert await store.restore_whole([told, namesake], by=ANN) == set()
        assert await store.restore_whole([cousin], by=ANN) == set()

        assert await letter(store, told.id) == told
        assert (await store.statistics()).total == 1
        assert [each.id for each in await store.groups()] == [told.group_id]

    async def test_two_of_one_identity_in_one_call_make_one_letter(self, store: DeadLetterStore) -> None:
        told = await letter(store, (await place(store, Status.RESOLVED, an_entry("it"))).id)
        await store.purge([told.id], by=ANN)
        namesake = msgspec.structs.replace(told, id="018f0000-0000-7000-8000-00000000000f")

        assert len(await store.restore_whole([told, namesake, told], by=ANN)) == 1
        assert (await store.statistics()).total == 1

    async def test_two_at_once_make_one_letter(self, store: DeadLetterStore, other: DeadLetterStore) -> None:
        told = [await letter(store, (await place(store, Status.DISCARDED)).id) for _ in range(20)]
        await store.purge([each.id for each in told], by=ANN)

        came = await asyncio.gather(store.restore_whole(told, by=ANN), other.restore_whole(told[::-1], by=ANN))

        assert sorted([*came[0], *came[1]]) == sorted(each.id for each in told)
        assert (await store.statistics()).total == 20

    @pytest.mark.parametrize("status", Status)
    async def test_every_status_comes_back_but_one_that_was_under_way_waits_again(
        self, store: DeadLetterStore, clock: ManualClock, status: Status
    ) -> None:
        told = await letter(store, (await place(store, status)).id)
        fresh = msgspec.structs.replace(told, id="018f0000-0000-7000-8000-00000000000f", identity="elsewhere")

        await store.restore_whole([fresh], by=ANN)

        found = await letter(store, fresh.id)
        assert found.status is (Status.PENDING if status is Status.REDRIVING else status)
        assert (found.history[-1].after, found.changed_at) == (found.status, told.changed_at)
        assert found.history[:-1] == told.history
        clock.advance(600)
        claims = await store.claim([fresh.id], owner="engine", lease=60.0)
        assert bool(claims) is (found.status is Status.PENDING)
