"""What is looked at first: numbers over time, groups in an order, what became of redrives."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status, Transition, Verdict
from redrive.errors import UsageError
from redrive.insights import (
    Appearance,
    AttemptCount,
    FacetValue,
    GroupOrder,
    GroupPlace,
    GroupQuery,
    Return,
)
from redrive.letter_query import Count, LetterQuery
from redrive.search import parse
from redrive.testing.letters import NOON, a_group, a_message, an_entry
from redrive.testing.store_case import ANN, StoreCase, place, returned, sent
from redrive.testing.store_runs import BOB, every_claim, of_ids, running, send

if TYPE_CHECKING:
    from redrive.stores import Store

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONG_AGO, IN_LONG = NOON.replace(year=2000), NOON.replace(year=2200)
"""Redrives are told by their ids, which have the time of the machine."""


class InsightContract(StoreCase):
    async def test_the_situation_is_what_the_letters_are_now_and_those_of_the_span(self, store: Store) -> None:
        old = NOON - 30 * HOUR
        for status, at in (
            (Status.PENDING, old),
            (Status.RESOLVED, NOON - HOUR),
            (Status.PENDING, NOON - 2 * HOUR),
        ):
            await place(store, status, an_entry(at=at))

        found = await store.situation(NOON - DAY, NOON)

        assert (found.by_status["PENDING"], found.by_status["RESOLVED"]) == (2, 1)
        assert (found.arrived["PENDING"], found.arrived["RESOLVED"]) == (1, 1)
        assert (found.oldest_pending, found.at) == (old, NOON)

    async def test_what_arrives_is_counted_by_the_minute(self, store: Store) -> None:
        for minutes in (1, 4, 6, 59, 61):
            await store.record(an_entry(at=NOON - timedelta(minutes=minutes)))

        found = await store.situation(NOON - DAY, NOON)

        assert (found.last_5_minutes, found.last_hour) == (Count(2, exact=True), Count(4, exact=True))

    async def test_redrives_are_counted_by_how_they_ended(self, store: Store) -> None:
        await place(store, Status.RESOLVED)
        await place(store, Status.REDRIVEN)
        back = await place(store, Status.REDRIVEN)
        await store.record(returned(back.claim))

        found = (await store.situation(LONG_AGO, IN_LONG)).redriven
        before = (await store.situation(LONG_AGO, LONG_AGO + DAY)).redriven

        assert found.outcomes == {"came back": 1, "resolved": 1, "under way": 1}
        assert (found.redrives, found.exact, before.redrives) == (3, True, 0)

    async def test_arrivals_are_stacked_by_group_the_others_together(self, store: Store) -> None:
        for name, hours in (("a", (1, 1, 2)), ("b", (2, 2)), ("c", (1,))):
            for each in hours:
                await store.record(an_entry(group=name, at=NOON - each * HOUR))

        found = await store.arrivals(NOON - 2 * HOUR, NOON, groups=2)

        assert (found.step_hours, found.starts) == (1, (NOON - 2 * HOUR, NOON - HOUR))
        assert [(each.title, each.letters, each.counts) for each in found.groups] == [
            (a_group("a").title, 3, (1, 2)),
            (a_group("b").title, 2, (2, 0)),
        ]
        assert (found.others, found.total) == ((0, 1), (3, 3))

    async def test_beyond_a_week_arrivals_are_told_by_the_day(self, store: Store) -> None:
        for days in (1, 1, 9):
            await store.record(an_entry(at=NOON - days * DAY))

        found = await store.arrivals(NOON - 9 * DAY, NOON, groups=1)

        assert (found.step_hours, len(found.starts)) == (24, 10)
        assert found.groups[0].counts == (1, 0, 0, 0, 0, 0, 0, 0, 2, 0)

    async def test_arrivals_of_centuries_are_refused(self, store: Store) -> None:
        with pytest.raises(UsageError, match="hours"):
            await store.arrivals(LONG_AGO, IN_LONG, groups=1)

    @pytest.mark.parametrize(
        ("order", "names"),
        [
            (GroupOrder.PENDING, "bac"),
            (GroupOrder.TOTAL, "cba"),
            (GroupOrder.LAST_SEEN, "abc"),
            (GroupOrder.FIRST_SEEN, "cab"),
        ],
    )
    async def test_groups_come_in_an_order_page_by_page(self, store: Store, order: GroupOrder, names: str) -> None:
        for name, hours in (("a", (1, 5)), ("b", (2, 6, 6)), ("c", (3, 3, 3, 3))):
            for each in hours:
                await store.record(an_entry(group=name, at=NOON - each * HOUR))
        ids = [each.id for each in await store.find(LetterQuery(group=a_group("c").id))]
        await store.change(ids, Transition.RESOLVE, by=ANN)

        found, after = "", None
        for _ in names:
            (group,) = await store.group_page(GroupQuery(order=order, after=after, limit=1))
            found += next(name for name in "abc" if a_group(name).id == group.id)
            after = GroupPlace.of(group, order)

        assert found == names
        assert await store.group_page(GroupQuery(order=order, after=after, limit=1)) == []

    async def test_groups_are_found_by_a_text_in_which_no_character_has_a_meaning(self, store: Store) -> None:
        for name in ("Time% out", "time_out", "caf\u00e9"):
            await store.record(an_entry(group=name))

        async def titles(text: str) -> list[str]:
            return [each.title for each in await store.group_page(GroupQuery(text=text))]

        assert len(await titles("TIME")) == 2
        assert [len(await titles(each)) for each in ("%", "_", "e% O", "caf\u00e9", "'")] == [1, 1, 1, 1, 0]

    async def test_groups_are_found_by_who_owns_them_and_what_was_said(self, store: Store) -> None:
        for name in "ab":
            await store.record(an_entry(group=name, queue=name))
        await store.annotate(a_group("a").id, owner="team", verdict=Verdict.REPLAYABLE, by=ANN)

        for query in (
            GroupQuery(owner="team"), GroupQuery(verdict=Verdict.REPLAYABLE), GroupQuery(queue="a"),
        ):  # fmt: skip
            assert [each.id for each in await store.group_page(query)] == [a_group("a").id]

    async def test_attempts_that_failed_are_counted_by_their_number(self, store: Store) -> None:
        await store.record(an_entry(attempts=2))
        await store.record(an_entry(attempts=1))

        found = await store.group_attempts(a_group("no customer").id)

        assert found.letters == 2
        assert [(each.attempt, each.failed) for each in found.attempts] == [(1, 2), (2, 1)]
        assert isinstance(found.attempts[0], AttemptCount)

    async def test_redrives_of_a_group_are_told_by_run_the_last_first(self, store: Store) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(3)]
        await sent(store, ids[0])
        run_id = await running(store, of_ids(*ids[1:]))
        claims = await every_claim(store, run_id)
        await send(store, claims)
        await store.confirm(claims[0].ticket, by=ANN)

        found = await store.group_redrives(a_group("no customer").id)

        told = {each.run_id: (each.by, each.outcomes) for each in found.runs}
        assert told == {
            run_id: (BOB.name, {"confirmed": 1, "under way": 1}),
            None: ("", {"under way": 1}),
        }
        assert found.letters == 3

    async def test_redrives_of_a_letter_tell_who_and_how_they_ended(self, store: Store) -> None:
        letter_id, _ = await store.record(an_entry())
        claim = await sent(store, letter_id)
        await store.record(returned(claim))
        run_id = await running(store, of_ids(letter_id))
        await every_claim(store, run_id)

        latest, first = await store.letter_redrives(letter_id, limit=9)

        assert (latest.run_id, latest.by, latest.outcome) == (run_id, BOB.name, "under way")
        assert (first.run_id, first.by, first.outcome, first.returned_as) == (None, "engine", "came back", 2)
        assert await store.letter_redrives(letter_id, limit=1) == [latest]

    async def test_letters_of_one_correlation_id_are_related(self, store: Store) -> None:
        def correlated(name: str) -> bytes:
            return f'{{"correlation_id": "{name}"}}'.encode()

        bodies = [correlated("x"), correlated("x"), correlated("y"), b"{}", b"{}"]
        ids = [(await store.record(an_entry(message=a_message(body=each))))[0] for each in bodies]

        related = [[each.id for each in await store.related(letter_id, limit=9)] for letter_id in ids]

        assert related == [[ids[1]], [ids[0]], [], [], []]

    async def test_what_is_masked_relates_no_letters(self, store: Store) -> None:
        bodies = [b'{"correlation_id": "[masked]"}'] * 2
        ids = [(await store.record(an_entry(message=a_message(body=each))))[0] for each in bodies]

        assert await store.related(ids[0], limit=9) == []

    async def test_samples_are_the_newest_of_the_group_and_of_the_rest_of_its_queue(self, store: Store) -> None:
        async def record(group: str, minutes: int, body: bytes = b"{}", queue: str = "orders") -> str:
            entry = an_entry(
                group=group, queue=queue, at=NOON - timedelta(minutes=minutes), message=a_message(body=body)
            )
            return (await store.record(entry))[0]

        mine = [await record("a", minutes) for minutes in (1, 2, 3)]
        await record("a", 0, b"x" * 5000)
        rest = [await record("b", 4), await record("c", 5)]
        await record("d", 1, queue="mail")

        found = await store.samples(a_group("a").id, "orders", number=2, largest=1000)

        assert [list(each) for each in found] == [mine[:2], rest]

    async def test_the_rest_of_a_queue_is_found_behind_a_flood_of_one_group(self, store: Store) -> None:
        other, _ = await store.record(an_entry(group="b", at=NOON - DAY))
        flood = [an_entry(group="a", at=NOON - timedelta(seconds=each)) for each in range(1100)]
        await store.record_together(flood)

        _, elsewhere = await store.samples(a_group("a").id, "orders", number=5, largest=1000)

        assert list(elsewhere) == [other]

    @pytest.mark.parametrize("text", ["", "queue:orders,mail", "age:<10d", "age:<90m", "attempts:<9", "customer"])
    async def test_facets_count_the_letters_that_match(self, store: Store, text: str) -> None:
        for queue, number in (("orders", 2), ("mail", 1)):
            for _ in range(number):
                await store.record(an_entry(queue=queue, at=NOON - HOUR))

        found = await store.facets(LetterQuery(where=parse(text, now=NOON)), at_most=100)

        assert found.queue == (FacetValue("orders", 2), FacetValue("mail", 1))
        assert found.status == (FacetValue("PENDING", 3),)
        assert (found.counted, found.exact) == (3, True)

    async def test_facets_of_more_than_is_looked_at_say_so(self, store: Store) -> None:
        await store.record_together([an_entry(attempts=1) for _ in range(5)])

        found = await store.facets(LetterQuery(where=parse("attempts:<9", now=NOON)), at_most=3)

        assert (found.counted, found.exact, found.status) == (3, False, (FacetValue("PENDING", 3),))

    async def test_facets_of_no_moment_are_none(self, store: Store) -> None:
        await store.record(an_entry())

        found = await store.facets(LetterQuery(where=parse("age:>1d age:<1h", now=NOON)), at_most=3)

        assert (found.counted, found.status) == (0, ())

    async def test_runs_are_listed_page_by_page(self, store: Store) -> None:
        ids = [(await store.record(an_entry()))[0] for _ in range(3)]
        made = [await running(store, of_ids(each)) for each in ids]

        first = await store.runs(limit=2)
        rest = await store.runs(limit=2, after=first[-1].id)

        assert [each.id for each in (*first, *rest)] == made[::-1]


class SeenGroupContract(StoreCase):
    async def _appearance(self, store: Store) -> dict[str, tuple[Appearance, Return | None, int]]:
        found = await store.seen_groups(NOON - 6 * HOUR, NOON, limit=9)
        return {each.group.title: (each.appearance, each.why, each.letters) for each in found}

    async def _record(self, store: Store, group: str, *hours: float) -> list[str]:
        entries = [an_entry(group=group, at=NOON - each * HOUR) for each in hours]
        return [letter_id for letter_id, _ in await store.record_together(entries)]

    async def test_a_group_whose_first_letter_is_of_the_span_is_new(self, store: Store) -> None:
        await self._record(store, "a", 1, 2)

        assert await self._appearance(store) == {a_group("a").title: (Appearance.NEW, None, 2)}

    async def test_a_group_without_letters_of_the_span_is_not_seen(self, store: Store) -> None:
        await self._record(store, "a", 8)

        assert await self._appearance(store) == {}

    async def test_a_group_that_goes_on_is_known(self, store: Store) -> None:
        await self._record(store, "a", 20, 1)

        assert await self._appearance(store) == {a_group("a").title: (Appearance.KNOWN, None, 1)}

    async def test_a_group_that_was_new_in_the_hour_that_the_span_begins_in_does_not_return(
        self, store: Store
    ) -> None:
        await self._record(store, "a", 6.25)
        found = await store.seen_groups(NOON - 6.1 * HOUR, NOON, limit=9)

        assert [(each.appearance, each.why) for each in found] == [(Appearance.KNOWN, None)]

    async def test_a_group_that_was_quiet_returns(self, store: Store) -> None:
        await self._record(store, "a", 24 * 9, 1)

        assert await self._appearance(store) == {a_group("a").title: (Appearance.RETURNING, Return.QUIET, 1)}

    async def test_a_group_whose_letters_were_all_settled_returns(self, store: Store) -> None:
        old, other, _ = await self._record(store, "a", 20, 21, 1)
        await store.change([old], Transition.RESOLVE, by=ANN)
        one_is_open = await self._appearance(store)
        await store.change([other], Transition.DISCARD, by=ANN)

        title = a_group("a").title
        assert one_is_open == {title: (Appearance.KNOWN, None, 1)}
        assert await self._appearance(store) == {title: (Appearance.RETURNING, Return.SETTLED, 1)}

    async def test_a_group_whose_letters_come_back_returns(self, store: Store) -> None:
        await self._record(store, "a", 20)
        (letter_id,) = await self._record(store, "a", 2)
        claim = await sent(store, letter_id)
        await store.record(returned(claim, group="a", at=NOON - HOUR))

        title = a_group("a").title
        assert (await self._appearance(store))[title][:2] == (Appearance.RETURNING, Return.CAME_BACK)

    async def test_new_ones_come_first_the_latest_before_all_then_those_that_return(self, store: Store) -> None:
        await self._record(store, "known", 20, 1, 1, 1, 1)
        await self._record(store, "back", 24 * 9, 1, 1)
        await self._record(store, "new", 3, 3, 3)
        await self._record(store, "newer", 1)

        found = await store.seen_groups(NOON - 6 * HOUR, NOON, limit=3)

        assert [each.group.title for each in found] == [a_group(name).title for name in ("newer", "new", "back")]
