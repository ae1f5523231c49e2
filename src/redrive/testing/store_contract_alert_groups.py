"""Which causes are new and which are back, for rules of alerts: to the moment, and all of them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redrive.alerts.observed import NewGroups, Returned
from redrive.dead_letter import Transition
from redrive.insights import Return
from redrive.testing.letters import NOON, a_group, an_entry
from redrive.testing.store_case import ANN, ENGINE, StoreCase, returned, sent

if TYPE_CHECKING:
    from redrive.stores import Store
    from redrive.testing.clock import ManualClock


class GroupNewsContract(StoreCase):
    """NOON is when rules look; they look back for an hour."""

    SINCE = NOON - timedelta(hours=1)

    async def _at(self, store: Store, clock: ManualClock, minutes: float, *groups: str, **facts: Any) -> list[str]:
        """Letters of these groups that came so many minutes before NOON."""
        clock.set_wall(NOON - timedelta(minutes=minutes))
        entries = [an_entry(group=name, at=clock.now(), **facts) for name in groups]
        return [letter_id for letter_id, _ in await store.record_together(entries)]

    async def _settle(
        self,
        store: Store,
        clock: ManualClock,
        minutes: float,
        *letter_ids: str,
        how: Transition = Transition.RESOLVE,
    ) -> None:
        clock.set_wall(NOON - timedelta(minutes=minutes))
        await store.change(list(letter_ids), how, by=ANN)

    async def _returned(self, store: Store) -> dict[str, Returned]:
        return dict(await store.returned_groups(self.SINCE, limit=100))

    async def test_new_groups_are_those_with_open_letters_and_all_of_them_are_counted(
        self, store: Store, clock: ManualClock
    ) -> None:
        await self._at(store, clock, 61, "old")
        (settled,) = await self._at(store, clock, 50, "settled")
        await self._settle(store, clock, 45, settled)
        await self._at(store, clock, 40, *"abc")
        await self._at(store, clock, 30, "d", queue="mails")

        found = await store.new_groups(self.SINCE, limit=2)
        assert found.ids[0] == a_group("d").id
        assert len(found.ids) == 2
        assert found.more == {"orders": 2}
        assert (await store.new_groups(self.SINCE, limit=9)).more == {}
        assert await store.new_groups(NOON, limit=2) == NewGroups()

    async def test_a_group_is_back_after_quiet_however_many_others_fail_more(
        self, store: Store, clock: ManualClock
    ) -> None:
        others = [f"known {number}" for number in range(40)]
        await self._at(store, clock, 24 * 60 * 10, "back", "open")
        await self._at(store, clock, 24 * 60, *others, "open")
        await self._at(store, clock, 30, *others, *others, "back", "open")

        assert await self._returned(store) == {a_group("back").id: Returned(Return.QUIET)}

    async def test_a_group_is_back_when_all_that_was_there_had_been_settled_to_the_minute(
        self, store: Store, clock: ManualClock
    ) -> None:
        first = await self._at(store, clock, 55, "a", "b", "c")
        await self._settle(store, clock, 40, *first[:2])
        await self._at(store, clock, 38, "a", "b", "c")

        by_hand = Returned(Return.SETTLED, by_hand=True)
        assert await self._returned(store) == {a_group("a").id: by_hand, a_group("b").id: by_hand}

    async def test_a_group_of_which_something_was_settled_while_it_went_on_is_not_back(
        self, store: Store, clock: ManualClock
    ) -> None:
        (first,) = await self._at(store, clock, 55, "a")
        await self._at(store, clock, 50, "a")
        await self._settle(store, clock, 40, first)

        assert await self._returned(store) == {}

    async def test_a_group_that_was_first_seen_and_settled_before_the_hour_is_back_at_once(
        self, store: Store, clock: ManualClock
    ) -> None:
        (first,) = await self._at(store, clock, 85, "a")
        await self._settle(store, clock, 80, first, how=Transition.DISCARD)
        await self._at(store, clock, 0.1, "a")

        assert await self._returned(store) == {a_group("a").id: Returned(Return.SETTLED, by_hand=True)}

    async def test_a_group_that_was_settled_by_redrives_is_back_and_no_person_settled_it(
        self, store: Store, clock: ManualClock
    ) -> None:
        (letter_id,) = await self._at(store, clock, 55, "a")
        claim = await sent(store, letter_id)
        await store.confirm(claim.ticket, by=ENGINE)
        await self._at(store, clock, 30, "a")

        assert await self._returned(store) == {a_group("a").id: Returned(Return.SETTLED)}

    async def test_what_a_spool_had_is_back_when_it_is_recorded(self, store: Store, clock: ManualClock) -> None:
        (first,) = await self._at(store, clock, 50, "a")
        await self._settle(store, clock, 30, first)
        clock.set_wall(NOON - timedelta(minutes=10))
        await store.record(an_entry(group="a", at=NOON - timedelta(minutes=40)))

        assert list(await self._returned(store)) == [a_group("a").id]

    async def test_a_letter_that_comes_back_brings_its_group_back_however_old_it_is(
        self, store: Store, clock: ManualClock
    ) -> None:
        (letter_id,) = await self._at(store, clock, 24 * 60, "a")
        claim = await sent(store, letter_id)
        assert await self._returned(store) == {}
        clock.set_wall(NOON - timedelta(minutes=10))
        await store.record(returned(claim, group="a", at=clock.now()))

        assert await self._returned(store) == {a_group("a").id: Returned(Return.CAME_BACK)}
        clock.set_wall(NOON)
        assert await store.returned_groups(NOON, limit=100) == {}
