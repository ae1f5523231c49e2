"""What people do to letters: decide, edit, purge; each with its line in the history."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from redrive.dead_letter import BY_HAND, TRANSITIONS, Actor, Status, Transition
from redrive.errors import NotFound, Refused, TransitionRefused
from redrive.testing.letters import a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, claimed, letter, place, returned, sent, state
from redrive.testing.store_contract_record import BODIES, HEADERS, PROPERTIES

if TYPE_CHECKING:
    from typing import Any

    from redrive.stores import DeadLetterStore
    from redrive.testing.clock import ManualClock


class ChangeContract(StoreCase):
    @pytest.mark.parametrize("transition", sorted(BY_HAND))
    async def test_a_change_is_written_down_with_who_when_and_why(
        self, store: DeadLetterStore, clock: ManualClock, transition: Transition
    ) -> None:
        rule = TRANSITIONS[transition]
        source = min(rule.sources)
        placed = await place(store, source)
        clock.advance(7)

        assert await store.change([placed.id], transition, by=Actor("ann", "it is \ud800 so")) == {}

        found = await letter(store, placed.id)
        last = found.history[-1]
        assert (found.status, found.changed_at, last.at) == (rule.target, clock.now(), clock.now())
        assert (last.by, last.reason, last.before, last.after) == (
            "ann",
            "it is \\ud800 so",
            source,
            rule.target,
        )

    @pytest.mark.parametrize(
        ("transition", "source", "how"),
        [
            (Transition.RESOLVE, Status.PENDING, "by hand"),
            (Transition.DISCARD, Status.PENDING, "by hand"),
            (Transition.QUARANTINE, Status.PENDING, "by hand"),
            (Transition.EXPIRE, Status.PENDING, "expired"),
            (Transition.RESTORE, Status.RESOLVED, None),
            (Transition.RESTORE, Status.DISCARDED, None),
            (Transition.RELEASE, Status.QUARANTINED, None),
        ],
    )
    async def test_a_letter_says_how_it_came_to_its_status(
        self, store: DeadLetterStore, transition: Transition, source: Status, how: str | None
    ) -> None:
        placed = await place(store, source)

        await store.change([placed.id], transition, by=ANN)

        assert (await letter(store, placed.id)).how == how

    async def test_the_caller_may_say_how(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.PENDING)

        await store.change([placed.id], Transition.QUARANTINE, by=ANN, how="too \x00 large")

        assert (await letter(store, placed.id)).how == "too \x00 large"

    async def test_what_was_not_changed_is_named_with_its_status(self, store: DeadLetterStore) -> None:
        pending, _ = await store.record(an_entry())
        discarded = await place(store, Status.DISCARDED)
        redriving = await place(store, Status.REDRIVING)
        ids = [pending, discarded.id, redriving.id, "no such letter", "\ud800", pending]

        unchanged = await store.change(ids, Transition.DISCARD, by=ANN)

        assert unchanged == {
            discarded.id: Status.DISCARDED,
            redriving.id: Status.REDRIVING,
            "no such letter": None,
            "\ud800": None,
        }
        assert (await letter(store, pending)).status is Status.DISCARDED
        assert await store.change([], Transition.DISCARD, by=ANN) == {}

    async def test_the_same_change_again_changes_nothing(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.PENDING)
        await store.change([placed.id], Transition.RESOLVE, by=ANN)
        before = await state(store, placed.id)

        assert await store.change([placed.id], Transition.RESOLVE, by=ANN) == {placed.id: Status.RESOLVED}

        assert await state(store, placed.id) == before

    async def test_of_two_decisions_at_once_one_is_made(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(20)]

        left = await asyncio.gather(
            store.change(ids, Transition.DISCARD, by=ANN), other.change(ids, Transition.QUARANTINE, by=ANN)
        )

        # Discarding a quarantined letter is allowed, quarantining a discarded one is not.
        assert left[0] == {}
        assert set(left[1].values()) <= {Status.DISCARDED}
        assert {(await letter(store, each)).status for each in ids} == {Status.DISCARDED}

    async def test_more_letters_than_one_statement_takes_are_all_changed(self, store: DeadLetterStore) -> None:
        done = await asyncio.gather(*(store.record(an_entry()) for _ in range(1_100)))
        ids = [letter_id for letter_id, _ in done]

        assert await store.change(ids, Transition.DISCARD, by=ANN) == {}
        assert (await store.statistics()).by_status["DISCARDED"] == 1_100
        assert await store.purge(ids, by=ANN) == {}
        assert (await store.statistics()).total == 0

    async def test_time_never_goes_back_in_a_letter(self, store: DeadLetterStore, clock: ManualClock) -> None:
        placed = await place(store, Status.PENDING)
        await store.change([placed.id], Transition.DISCARD, by=ANN)
        changed_at = (await letter(store, placed.id)).changed_at
        clock.advance(-3600)

        await store.change([placed.id], Transition.RESTORE, by=ANN)

        assert (await letter(store, placed.id)).changed_at == changed_at


class ReviseContract(StoreCase):
    @pytest.mark.parametrize("body", BODIES[:5])
    @pytest.mark.parametrize("headers", HEADERS[:3])
    async def test_an_edit_is_a_new_revision_and_the_original_stays(
        self, store: DeadLetterStore, clock: ManualClock, body: bytes | None, headers: tuple[Any, ...]
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        original = (await letter(store, letter_id)).message
        edited = msgspec.structs.replace(original, body=body, headers=headers, key=b"k")
        clock.advance(60)

        assert await store.revise(letter_id, edited, base=0, by=ANN) == 1

        found = await letter(store, letter_id)
        assert (found.revision, found.message, found.status) == (1, edited, Status.PENDING)
        assert [revision.message for revision in found.revisions] == [original, edited]
        newest = found.revisions[1]
        assert (newest.number, newest.by, newest.reason, newest.at) == (1, "ann", "because", clock.now())
        last = found.history[-1]
        assert (last.what, last.before, last.after) == ("edited", "revision 0", "revision 1")

    async def test_an_edit_changes_the_content_and_nothing_else(self, store: DeadLetterStore) -> None:
        original = a_message(properties=b"\x00original")
        letter_id, _ = await store.record(an_entry(message=original))
        other = a_message(id="other", queue="other", body=b"better", properties=b"other")

        await store.revise(letter_id, other, base=0, by=ANN)

        edited = msgspec.structs.replace(original, body=b"better")
        found = await letter(store, letter_id)
        assert [found.message, *(each.message for each in found.revisions)] == [edited, original, edited]
        assert (await claimed(store, letter_id)).message == edited

    @pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
    async def test_an_edited_message_is_sent_with_the_properties_it_came_with(
        self, store: DeadLetterStore, properties: bytes | None
    ) -> None:
        message = a_message(properties=properties)
        letter_id, _ = await store.record(an_entry(message=message))
        for base, body in enumerate([b"one", None]):
            await store.revise(letter_id, msgspec.structs.replace(message, body=body), base=base, by=ANN)

        assert (await claimed(store, letter_id)).message == msgspec.structs.replace(message, body=None)

    async def test_a_second_edit_builds_on_the_first_and_is_what_is_sent(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        message = (await letter(store, letter_id)).message
        for base, body in enumerate([b"one", b"two"]):
            await store.revise(letter_id, msgspec.structs.replace(message, body=body), base=base, by=ANN)

        claim = await claimed(store, letter_id)

        assert (claim.revision, claim.message.body) == (2, b"two")

    async def test_an_edit_of_an_old_revision_is_refused(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        message = (await letter(store, letter_id)).message
        await store.revise(letter_id, msgspec.structs.replace(message, body=b"hers"), base=0, by=ANN)
        before = await state(store, letter_id)

        for base in (0, 2, -1):
            with pytest.raises(Refused, match="revision 1"):
                await store.revise(letter_id, message, base=base, by=Actor("bob", "mine"))

        assert await state(store, letter_id) == before

    async def test_of_two_editors_at_once_one_is_refused(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        message = (await letter(store, letter_id)).message

        done = await asyncio.gather(
            store.revise(letter_id, msgspec.structs.replace(message, body=b"a"), base=0, by=ANN),
            other.revise(letter_id, msgspec.structs.replace(message, body=b"b"), base=0, by=ANN),
            return_exceptions=True,
        )

        assert sorted(type(each).__name__ for each in done) == ["Refused", "int"]
        assert len((await letter(store, letter_id)).revisions) == 2

    async def test_the_same_edit_again_is_the_same_revision(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        message = (await letter(store, letter_id)).message
        edited = msgspec.structs.replace(message, body=None, key=None)
        await store.revise(letter_id, edited, base=0, by=ANN)
        before = await state(store, letter_id)

        assert await store.revise(letter_id, edited, base=0, by=ANN) == 1

        assert await state(store, letter_id) == before

    async def test_a_letter_that_does_not_exist_cannot_be_edited(self, store: DeadLetterStore) -> None:
        with pytest.raises(NotFound, match="no such letter"):
            await store.revise("no such letter", a_message(), base=0, by=ANN)

    async def test_a_letter_on_its_way_cannot_be_edited(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.REDRIVING)

        with pytest.raises(TransitionRefused, match="REDRIVING"):
            await store.revise(placed.id, a_message(), base=0, by=ANN)


class PurgeContract(StoreCase):
    @pytest.mark.parametrize("status", [Status.RESOLVED, Status.DISCARDED])
    async def test_a_purged_letter_is_gone_for_good(self, store: DeadLetterStore, status: Status) -> None:
        placed = await place(store, status, an_entry("it"))

        assert await store.purge([placed.id], by=ANN) == {}

        assert await store.get(placed.id) is None
        assert await store.groups() == []
        assert (await store.statistics()).total == 0
        assert not await store.confirm(placed.claim.ticket, by=ANN)
        assert await store.purge([placed.id], by=ANN) == {placed.id: None}

    async def test_a_purged_identity_may_come_again_as_a_new_letter(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.DISCARDED, an_entry("it"))
        await store.purge([placed.id], by=ANN)

        letter_id, _ = await store.record(an_entry("it"))

        assert letter_id != placed.id
        assert len((await letter(store, letter_id)).failures) == 1

    async def test_a_letter_that_was_edited_and_redriven_is_purged_whole(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        message = (await letter(store, letter_id)).message
        await store.revise(letter_id, msgspec.structs.replace(message, body=b"better"), base=0, by=ANN)
        await store.record(returned(await sent(store, letter_id)))
        await store.change([letter_id], Transition.DISCARD, by=ANN)

        assert await store.purge([letter_id], by=ANN) == {}
        assert await store.get(letter_id) is None

    async def test_what_may_not_be_purged_is_named_with_its_status(self, store: DeadLetterStore) -> None:
        placed = {status: (await place(store, status)).id for status in Status}

        unchanged = await store.purge([*placed.values(), "no such letter"], by=ANN)

        kept = set(Status) - TRANSITIONS[Transition.PURGE].sources
        assert unchanged == {placed[status]: status for status in kept} | {"no such letter": None}
        assert [group.total for group in await store.groups()] == [len(kept)]

    async def test_a_group_loses_what_is_purged_and_keeps_a_living_example(self, store: DeadLetterStore) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(3)]
        await store.change(ids[1:], Transition.DISCARD, by=ANN)

        await store.purge(ids[1:], by=ANN)

        [group] = await store.groups()
        assert (group.total, group.pending, group.example) == (1, 1, ids[0])
