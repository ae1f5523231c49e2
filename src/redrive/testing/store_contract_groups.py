"""What people do with groups: say something about them, merge them, split them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Actor, Status, Transition, Verdict
from redrive.errors import NotFound, Refused, UsageError
from redrive.letter_query import LetterQuery
from redrive.testing.letters import NOON, a_group, an_entry
from redrive.testing.store_case import ANN, StoreCase, letter, place, returned

if TYPE_CHECKING:
    from redrive.dead_letter import FailureGroup
    from redrive.stores import DeadLetterStore

BOB = Actor("bob", "one cause")
A, B, C, D = (a_group(name).id for name in "abcd")
HOUR = timedelta(hours=1)


async def recorded(store: DeadLetterStore, group: str, hour: int = 0) -> str:
    return (await store.record(an_entry(group=group, at=NOON + hour * HOUR)))[0]


async def a_group_of(store: DeadLetterStore, group_id: str) -> FailureGroup:
    found = await store.group(group_id)
    assert found is not None
    return found


async def numbers(store: DeadLetterStore) -> dict[str, tuple[int, int]]:
    """Total and pending of each group that is listed."""
    return {group.id: (group.total, group.pending) for group in await store.groups()}


def told(group: FailureGroup) -> list[tuple[str, str, str]]:
    return [(line.what, line.before, line.after) for line in group.history]


class AnnotateContract(StoreCase):
    async def test_what_is_not_given_stays_and_none_takes_away(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        await store.annotate(A, owner="ann", verdict=Verdict.INVESTIGATE, note="since friday", by=ANN)

        changed = await store.annotate(A, verdict=Verdict.REQUIRES_FIX, note=None, runbook="wiki/17", by=BOB)

        said = (changed.owner, changed.verdict, changed.note, changed.runbook)
        assert said == ("ann", Verdict.REQUIRES_FIX, None, "wiki/17")
        assert await store.group(A) == changed

    async def test_each_change_is_a_line_of_history_and_no_change_is_none(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        await store.annotate(A, owner="ann", verdict=Verdict.REPLAYABLE, by=ANN)
        await store.annotate(A, owner="ann", by=ANN)

        group = await store.annotate(A, owner="bob", by=BOB)

        assert told(group) == [
            ("owner", "", "ann"),
            ("verdict", "", "replayable"),
            ("owner", "ann", "bob"),
        ]
        assert [(line.by, line.reason) for line in group.history][-1] == ("bob", "one cause")
        [listed] = await store.groups()
        assert (listed.owner, listed.history) == ("bob", ())

    async def test_groups_are_listed_by_owner_and_verdict(self, store: DeadLetterStore) -> None:
        for name in "abc":
            await recorded(store, name)
        await store.annotate(A, owner="ann", verdict=Verdict.DO_NOT_REPLAY, by=ANN)
        await store.annotate(B, owner="ann", by=ANN)

        assert {group.id for group in await store.groups(owner="ann")} == {A, B}
        assert [group.id for group in await store.groups(verdict=Verdict.DO_NOT_REPLAY)] == [A]
        assert await store.groups(owner="' OR 1=1 --") == []

    async def test_what_was_said_outlives_the_letters(self, store: DeadLetterStore) -> None:
        letter_id = await recorded(store, "a")
        said = await store.annotate(A, verdict=Verdict.DO_NOT_REPLAY, by=ANN)
        await store.change([letter_id], Transition.DISCARD, by=ANN)
        assert await store.purge([letter_id], by=ANN) == {}

        empty = await a_group_of(store, A)

        assert await store.groups() == []
        assert (empty.total, empty.example, empty.verdict) == (0, None, Verdict.DO_NOT_REPLAY)
        assert empty.history == said.history
        await recorded(store, "a")
        assert [(group.id, group.verdict) for group in await store.groups()] == [(A, Verdict.DO_NOT_REPLAY)]

    async def test_what_was_said_outlives_a_redrive(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        await store.annotate(A, owner="ann", by=ANN)
        placed = await place(store, Status.REDRIVEN, an_entry(group="a"))

        await store.record(returned(placed.claim, group="a", at=NOON + HOUR))

        group = await a_group_of(store, A)
        assert (group.total, group.owner) == (2, "ann")
        assert group.redrives == {"came back": 1}

    async def test_a_group_of_which_nothing_is_said_any_more_goes_with_its_last_letter(
        self, store: DeadLetterStore
    ) -> None:
        letter_id = await recorded(store, "a")
        await store.annotate(A, owner="ann", by=ANN)
        await store.annotate(A, owner=None, by=ANN)
        await store.change([letter_id], Transition.DISCARD, by=ANN)
        await store.purge([letter_id], by=ANN)

        assert await store.group(A) is None

    async def test_any_text_is_kept_as_it_is_and_too_long_a_one_refused(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        hostile = "'; DROP TABLE groups; --\x00\ud800\n\x1b[2J"

        assert (await store.annotate(A, note=hostile, by=ANN)).note == hostile
        with pytest.raises(UsageError, match="note has 10000 characters"):
            await store.annotate(A, note="x" * 10_000, by=ANN)
        assert (await a_group_of(store, A)).note == hostile

    @pytest.mark.parametrize("unknown", ["", "%", "0" * 32, "\x00", "' OR 1=1 --"])
    async def test_an_unknown_group_is_not_found(self, store: DeadLetterStore, unknown: str) -> None:
        await recorded(store, "a")

        with pytest.raises(NotFound):
            await store.annotate(unknown, owner="ann", by=ANN)
        with pytest.raises(NotFound):
            await store.merge(A, [unknown], by=ANN)
        with pytest.raises(NotFound):
            await store.split(A, unknown, by=ANN)


class MergeContract(StoreCase):
    async def test_letters_of_both_are_one_group_those_to_come_included(self, store: DeadLetterStore) -> None:
        first, second = await recorded(store, "b", hour=-30), await recorded(store, "a")
        await store.change([first], Transition.DISCARD, by=ANN)

        merged = await store.merge(A, [B[:8]], by=BOB)
        third = await recorded(store, "b", hour=2)

        group = await a_group_of(store, A)
        assert (merged.total, merged.pending, merged.merged) == (2, 1, (B,))
        assert (group.total, group.by_status) == (3, {"DISCARDED": 1, "PENDING": 2})
        assert (group.first_seen, group.last_seen, group.example) == (NOON - 30 * HOUR, NOON + 2 * HOUR, third)
        assert group.title == a_group("a").title
        assert await store.group(B) == group
        assert await numbers(store) == {A: (3, 2)}
        assert {each.id for each in await store.find(LetterQuery(group=A))} == {first, second, third}

    async def test_what_was_merged_before_comes_along(self, store: DeadLetterStore) -> None:
        for name in "abc":
            await recorded(store, name)
        await store.merge(B, [A], by=BOB)

        group = await store.merge(C, [B], by=BOB)
        await recorded(store, "a", hour=1)
        await recorded(store, "b", hour=1)

        assert (group.total, group.merged) == (3, tuple(sorted((A, B))))
        assert await numbers(store) == {C: (5, 5)}
        assert [(await a_group_of(store, each)).id for each in (A, B, C)] == [C] * 3

    async def test_merging_into_a_merged_group_is_merging_into_what_it_is_part_of(
        self, store: DeadLetterStore
    ) -> None:
        for name in "abc":
            await recorded(store, name)
        await store.merge(C, [B], by=BOB)

        assert (await store.merge(B, [A], by=BOB)).id == C
        assert await numbers(store) == {C: (3, 3)}

    async def test_several_are_merged_at_once(self, store: DeadLetterStore) -> None:
        for name in "abcd":
            await recorded(store, name)

        group = await store.merge(D, [A, B, C, B], by=BOB)

        assert (group.total, group.merged) == (4, tuple(sorted((A, B, C))))

    async def test_more_letters_than_go_at_once_are_moved(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        await asyncio.gather(*(recorded(store, "b", hour=number % 40) for number in range(1_020)))

        assert (await store.merge(A, [B], by=BOB)).total == 1_021
        assert (await store.split(A, B, by=BOB)).total == 1_020
        assert await numbers(store) == {A: (1, 1), B: (1_020, 1_020)}

    async def test_what_was_said_stays_and_where_nothing_was_the_others_is_taken_over(
        self, store: DeadLetterStore
    ) -> None:
        for name in "abc":
            await recorded(store, name)
        await store.annotate(A, owner="ann", by=ANN)
        await store.annotate(B, owner="bob", verdict=Verdict.DO_NOT_REPLAY, by=ANN)
        await store.annotate(C, verdict=Verdict.REPLAYABLE, runbook="wiki/17", by=ANN)

        group = await store.merge(A, [B, C], by=BOB)

        said = (group.owner, group.verdict, group.note, group.runbook)
        assert said == ("ann", Verdict.DO_NOT_REPLAY, None, "wiki/17")
        assert told(group) == [
            ("owner", "", "ann"),
            ("took in", "", B),
            ("verdict", "", "do not replay"),
            ("took in", "", C),
            ("runbook", "", "wiki/17"),
        ]
        assert {line.reason for line in group.history[1:]} == {"one cause"}
        assert (await store.annotate(B, note="by its old id", by=ANN)).id == A

    async def test_the_same_merge_again_changes_nothing(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        await recorded(store, "b")
        once = await store.merge(A, [B], by=BOB)

        assert await store.merge(A, [B], by=BOB) == once

    async def test_what_makes_no_sense_is_refused(self, store: DeadLetterStore) -> None:
        for name in "abc":
            await recorded(store, name)
        await store.merge(A, [B], by=BOB)
        before = await store.groups()

        for into, other in ((A, A), (B, A), (A, A[:8])):
            with pytest.raises(Refused, match="into itself"):
                await store.merge(into, [other], by=BOB)
        with pytest.raises(Refused, match=f"{B} is part of {A}"):
            await store.merge(C, [B], by=BOB)
        with pytest.raises(UsageError):
            await store.merge(A, [], by=BOB)
        assert await store.groups() == before

    async def test_a_letter_that_comes_back_goes_where_its_group_is_now(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        placed = await place(store, Status.REDRIVEN, an_entry(group="b"))
        await store.merge(A, [B], by=BOB)

        await store.record(returned(placed.claim, group="b", at=NOON + HOUR))

        assert (await letter(store, placed.id)).group_id == A
        assert await numbers(store) == {A: (2, 2)}

    async def test_a_merge_outlives_the_letters(self, store: DeadLetterStore) -> None:
        ids = [await recorded(store, "a"), await recorded(store, "b")]
        await store.merge(A, [B], by=BOB)
        await store.change(ids, Transition.DISCARD, by=ANN)
        await store.purge(ids, by=ANN)

        await recorded(store, "b")

        assert await numbers(store) == {A: (1, 1)}


class SplitContract(StoreCase):
    async def test_letters_of_the_fingerprint_are_a_group_again_those_recorded_since_included(
        self, store: DeadLetterStore
    ) -> None:
        await recorded(store, "a")
        oldest = await recorded(store, "b", hour=-3)
        await store.merge(A, [B], by=BOB)
        newest = await recorded(store, "b", hour=5)

        part = await store.split(A, B, by=ANN)

        whole = await a_group_of(store, A)
        assert (part.id, part.total, part.example, part.merged) == (B, 2, newest, ())
        assert (part.first_seen, part.last_seen) == (NOON - 3 * HOUR, NOON + 5 * HOUR)
        assert (whole.total, whole.merged) == (1, ())
        assert (whole.first_seen, whole.last_seen) == (NOON, NOON)
        assert {each.id for each in await store.find(LetterQuery(group=B))} == {oldest, newest}
        await recorded(store, "b")
        assert await numbers(store) == {A: (1, 1), B: (3, 3)}

    async def test_what_was_said_before_the_merge_is_there_again(self, store: DeadLetterStore) -> None:
        await recorded(store, "a")
        await recorded(store, "b")
        await store.annotate(A, owner="ann", by=ANN)
        await store.annotate(B, owner="bob", by=ANN)
        await store.merge(A, [B], by=BOB)

        part = await store.split(A, B, by=ANN)

        assert (part.owner, (await a_group_of(store, A)).owner) == ("bob", "ann")
        assert told(part)[1:] == [("merged into", "", A), ("split off", A, "")]
        assert told(await a_group_of(store, A))[1:] == [("took in", "", B), ("gave up", B, "")]

    async def test_the_others_stay(self, store: DeadLetterStore) -> None:
        for name in "abc":
            await recorded(store, name)
        await store.merge(B, [A], by=BOB)
        await store.merge(C, [B], by=BOB)

        await store.split(C, B, by=BOB)

        assert await numbers(store) == {C: (2, 2), B: (1, 1)}
        assert (await a_group_of(store, C)).merged == (A,)

    async def test_a_group_that_has_nothing_left_is_gone(self, store: DeadLetterStore) -> None:
        await recorded(store, "b")
        own = await recorded(store, "a")
        await store.merge(A, [B], by=BOB)
        await store.change([own], Transition.DISCARD, by=ANN)
        await store.purge([own], by=ANN)

        await store.split(A, B, by=BOB)

        assert await store.group(A) is None
        assert await numbers(store) == {B: (1, 1)}

    async def test_what_is_not_part_of_the_group_is_refused(self, store: DeadLetterStore) -> None:
        for name in "abcd":
            await recorded(store, name)
        await store.merge(A, [B], by=BOB)
        await store.merge(C, [D], by=BOB)
        before = await store.groups()

        for group_id, fingerprint in ((A, C), (A, D), (A, A), (B, A)):
            with pytest.raises(Refused):
                await store.split(group_id, fingerprint, by=BOB)
        assert await store.groups() == before
