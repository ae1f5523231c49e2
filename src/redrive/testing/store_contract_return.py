"""T3: redriven messages that fail again come back to their letter, and only they."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.control import RedriveTicket
from redrive.dead_letter import MAX_GENERATIONS, Recorded, Status, Transition
from redrive.failure import FailureKind
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import (
    ANN,
    ENGINE,
    StoreCase,
    claimed,
    letter,
    place,
    returned,
    sent,
    state,
)

if TYPE_CHECKING:
    from redrive.dead_letter import DeadLetter
    from redrive.stores import DeadLetterStore
    from redrive.testing.clock import ManualClock

_LATER = NOON + timedelta(minutes=5)


def _attempts(found: DeadLetter) -> list[int]:
    return [failure.attempt for failure in found.failures]


class ComingBackContract(StoreCase):
    async def test_a_redrive_that_fails_comes_back_as_the_next_generation(
        self, store: DeadLetterStore, clock: ManualClock
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await sent(store, letter_id)
        clock.advance(30)

        assert await store.record(returned(claim, at=_LATER)) == (letter_id, Recorded.CAME_BACK)

        found = await letter(store, letter_id)
        assert (found.status, found.generation, found.deliveries) == (Status.PENDING, 2, 2)
        assert found.changed_at == clock.now()
        assert [line.what for line in found.history] == ["recorded", "claimed", "sent", "came back"]
        assert (await store.statistics()).total == 1

    async def test_the_same_ticket_twice_is_a_redelivery(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await sent(store, letter_id)
        await store.record(returned(claim, at=_LATER))

        again = await store.record(returned(claim, at=_LATER + timedelta(seconds=1), attempts=2))

        found = await letter(store, letter_id)
        assert again == (letter_id, Recorded.AGAIN)
        assert (found.generation, found.deliveries, found.generations) == (2, 3, (1, 2, 2))

    async def test_the_same_entry_with_a_ticket_again_changes_nothing(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        entry = returned(await sent(store, letter_id), at=_LATER)
        await store.record(entry)
        before = await state(store, letter_id)

        assert await store.record(entry) == (letter_id, Recorded.AGAIN)

        assert await state(store, letter_id) == before

    async def test_the_first_entry_again_changes_nothing_even_after_the_letter_came_back(
        self, store: DeadLetterStore
    ) -> None:
        first = an_entry(attempts=2)
        letter_id, _ = await store.record(first)
        await store.record(returned(await sent(store, letter_id), at=_LATER))
        before = await state(store, letter_id)

        assert await store.record(first) == (letter_id, Recorded.AGAIN)

        assert await state(store, letter_id) == before

    async def test_a_late_redelivery_of_the_first_life_is_told_as_the_first_life(
        self, store: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry("it"))
        await store.record(returned(await sent(store, letter_id)))

        await store.record(an_entry("it", attempts=2, at=_LATER))

        found = await letter(store, letter_id)
        assert list(zip(found.generations, _attempts(found), strict=True)) == [
            (1, 1),
            (1, 2),
            (2, 1),
        ]
        assert (found.generation, found.attempts) == (2, 3)

    async def test_a_letter_that_comes_back_may_be_claimed_again(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        first = await sent(store, letter_id)
        await store.record(returned(first))

        second = await claimed(store, letter_id)

        assert second.redrive_id != first.redrive_id
        assert (first.generation, second.generation) == (1, 2)
        assert second.fence > first.fence

    async def test_beyond_the_last_generation_it_is_quarantined(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        for _ in range(MAX_GENERATIONS):
            assert (await letter(store, letter_id)).status is Status.PENDING
            assert (await store.record(returned(await sent(store, letter_id))))[1] is Recorded.CAME_BACK

        found = await letter(store, letter_id)
        assert (found.status, found.how) == (Status.QUARANTINED, "generation limit")
        assert found.generations == (1, 2, 3, 4)
        assert await store.claim([letter_id], owner="engine", lease=1) == []

    async def test_a_redrive_that_must_be_quarantined_comes_back_quarantined(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        entry = returned(await sent(store, letter_id), quarantine="3 process deaths")

        assert (await store.record(entry))[1] is Recorded.CAME_BACK

        found = await letter(store, letter_id)
        assert (found.status, found.how) == (Status.QUARANTINED, "3 process deaths")

    async def test_what_was_resolved_by_hand_still_comes_back(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.RESOLVED)

        assert (await store.record(returned(placed.claim)))[1] is Recorded.CAME_BACK

        found = await letter(store, placed.id)
        assert (found.status, found.how) == (Status.PENDING, None)

    async def test_the_letter_tells_its_latest_failure_and_moves_to_its_group(
        self, store: DeadLetterStore
    ) -> None:
        stays, _ = await store.record(an_entry())
        moves, _ = await store.record(an_entry())
        latest = a_failure(type="shop.errors.SoldOut", text="sold out", kind=FailureKind.TRANSIENT)
        entry = returned(await sent(store, moves), failures=(latest,), group="sold out", at=_LATER)

        await store.record(entry)

        found = await letter(store, moves)
        assert (found.type, found.text, found.kind) == ("shop.errors.SoldOut", "sold out", "transient")
        groups = {group.title: group for group in await store.groups()}
        assert {title: (group.total, group.example) for title, group in groups.items()} == {
            "NoCustomer: no customer": (1, stays),
            "NoCustomer: sold out": (1, moves),
        }
        assert groups["NoCustomer: sold out"].last_seen == _LATER

    async def test_a_ticket_of_a_purged_letter_is_no_ticket(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.RESOLVED)
        await store.purge([placed.id], by=ANN)

        letter_id, recorded = await store.record(returned(placed.claim))

        assert recorded is Recorded.NEW
        assert letter_id != placed.id

    async def test_a_redrive_of_another_letter_is_no_ticket(self, store: DeadLetterStore) -> None:
        first, second = await place(store, Status.REDRIVEN), await place(store, Status.REDRIVEN)
        mixed = RedriveTicket(first.claim.redrive_id, second.id, 1, "orders")

        _, recorded = await store.record(an_entry(message=first.claim.message, ticket=mixed))

        assert recorded is Recorded.NEW
        assert [(await letter(store, each.id)).generation for each in (first, second)] == [1, 1]

    async def test_a_redrive_that_was_never_issued_is_no_ticket(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.REDRIVEN, an_entry("it"))
        invented = RedriveTicket("\ud800 invented", placed.id, 1, "orders")

        entry = an_entry("it", message=placed.claim.message, ticket=invented, at=_LATER)

        assert await store.record(entry) == (placed.id, Recorded.AGAIN)
        assert (await letter(store, placed.id)).status is Status.REDRIVEN

    async def test_a_ticket_copied_onto_another_message_does_not_swallow_it(self, store: DeadLetterStore) -> None:
        placed = await place(store, Status.REDRIVEN)
        other = a_message(body=b"something else")

        letter_id, recorded = await store.record(an_entry(message=other, ticket=placed.claim.ticket))

        assert recorded is Recorded.NEW
        assert (await letter(store, letter_id)).message == other
        assert (await letter(store, placed.id)).status is Status.REDRIVEN

    async def test_an_edited_message_comes_back_to_its_letter(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry())
        original = (await letter(store, letter_id)).message
        await store.revise(letter_id, msgspec.structs.replace(original, body=b"better"), base=0, by=ANN)

        claim = await sent(store, letter_id)

        assert claim.message.body == b"better"
        assert await store.record(returned(claim)) == (letter_id, Recorded.CAME_BACK)

    async def test_an_older_redrive_that_comes_back_does_not_disturb_the_newer_one(
        self, store: DeadLetterStore
    ) -> None:
        old = await place(store, Status.RESOLVED)
        await store.change([old.id], Transition.RESTORE, by=ANN)
        new = await claimed(store, old.id)

        assert await store.record(returned(old.claim, attempts=2)) == (old.id, Recorded.AGAIN)

        found = await letter(store, old.id)
        assert (found.status, found.generations) == (Status.REDRIVING, (1, 2, 2))
        assert await store.settle(new, Transition.SENT, by=ENGINE)
        assert (await store.record(returned(new)))[1] is Recorded.CAME_BACK
        assert (await letter(store, old.id)).generations == (1, 2, 2, 3)

    async def test_an_older_redrive_beyond_the_last_generation_quarantines_a_pending_letter(
        self, store: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry())
        claims = []
        for _ in range(MAX_GENERATIONS):
            claims.append(await sent(store, letter_id))
            await store.change([letter_id], Transition.RESOLVE, by=ANN)
            await store.change([letter_id], Transition.RESTORE, by=ANN)

        assert [(await store.record(returned(each)))[1] for each in claims] == [Recorded.AGAIN] * len(claims)

        found = await letter(store, letter_id)
        assert (found.status, found.how) == (Status.QUARANTINED, "generation limit")
        assert found.generations == (1, 2, 3, 4)
