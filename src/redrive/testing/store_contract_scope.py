"""Scopes: every answer is as if nothing outside existed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Fingerprint, Transition
from redrive.errors import UsageError
from redrive.letter_query import LetterQuery
from redrive.statistics import FailureRate
from redrive.testing.letters import NOON, an_entry
from redrive.testing.scoped_shelf import QUEUES, answers, fill, fitting, mark_of, marked_entry
from redrive.testing.store_case import ANN, StoreCase
from redrive.testing.store_runs import a_plan, every_claim, of_ids, running, take

if TYPE_CHECKING:
    from redrive.access import Scope
    from redrive.stores import RunStore
    from redrive.testing.clock import ManualClock
    from redrive.testing.scoped_shelf import Shelf

_SCOPES: tuple[Scope, ...] = (
    (),
    ("pay",),
    ("Pay", "pay%*", "orders*"),
    ("pay*", "p\u00e4y", "nothing*"),
    ("ORDERS", "PAY*", "%", "_*", "orders_e", "pay_"),
    ("pay", "*"),
)
_MARKED = ("find", "find by text", "find by ids", "overview", "get", "whole", "known_values", "groups", "group")
_ALSO_MARKED = (
    "statistics",
    "top_errors",
    "by_event_type",
    "arrivals",
    "seen_groups",
    "group_page",
    "facets",
    "related",
)


def _leaked(told: Any, within: Scope) -> list[str]:
    """Marks of queues outside the scope that are in an answer, and names of such queues."""
    text = repr(told)
    strangers = set(QUEUES) - set(fitting(within))
    return [queue for queue in strangers if mark_of(queue) in text or f"'{queue}'" in text]


class ScopeContract(StoreCase):
    async def test_nothing_of_a_queue_outside_is_in_any_answer(self, store: RunStore, clock: ManualClock) -> None:
        shelf = await fill(store)
        clock.advance(60)

        for within in _SCOPES:
            for question, told in (await answers(store, shelf, within)).items():
                assert _leaked(told, within) == [], (within, question)
                for queue in fitting(within) if question in (*_MARKED, *_ALSO_MARKED) else ():
                    assert mark_of(queue) in repr(told), (within, question, queue)

    @pytest.mark.parametrize("within", [("orders*", "Pay"), ("pay*",)], ids=" ".join)
    async def test_every_answer_is_as_if_nothing_outside_existed(
        self, store: RunStore, within: tuple[str, ...]
    ) -> None:
        shelf = await fill(store)
        scoped = await answers(store, shelf, within)
        outside = sorted(set(shelf.every_id) - shelf.inside(within))
        for queue in set(QUEUES) - set(fitting(within)):  # what people said about a group outlives its letters
            await store.annotate(shelf.groups[queue], owner=None, note=None, by=ANN)
        await store.change(outside, Transition.DISCARD, by=ANN)
        assert await store.purge(outside, by=ANN) == {}
        alone = await answers(store, shelf, None)

        assert scoped["inside"] == shelf.inside(within)
        for question, told in scoped.items():
            assert _without_rates(told) == _without_rates(alone[question]), question

    async def test_attempts_are_counted_in_the_queues_of_the_scope(self, store: RunStore) -> None:
        await fill(store)

        found = (await store.statistics(within=("pay", "orders*"))).failure_rates

        assert FailureRate("shared", 3, 3) in found
        assert len(found) == 4

    async def test_letters_outside_that_wait_to_be_searchable_are_not_counted(self, store: RunStore) -> None:
        await store.record_together([marked_entry(queue) for queue in ("pay", "pay", "Pay", "orders")])

        waiting = [await store.search_backlog(within=each) for each in (None, ("pay",), ("pay*", "orders"), ())]

        assert waiting == [4, 2, 3, 0]

    async def test_the_oldest_open_letter_is_one_of_the_scope(self, store: RunStore) -> None:
        def failed(queue: str, hours: float) -> Any:
            return an_entry(queue=queue, at=NOON - timedelta(hours=hours))

        await store.record_together([failed("pay", 900), failed("orders", 50.5), failed("pay", 50)])
        await store.record(failed("o", 9))
        [resolved] = [each.id for each in await store.find(LetterQuery(queue="o"))]
        await store.change([resolved], Transition.RESOLVE, by=ANN)

        oldest = [(await store.statistics(within=(each,))).oldest for each in ("pay", "orders", "o", "x")]

        assert oldest == [NOON - timedelta(hours=900), NOON - timedelta(hours=50.5), None, None]

    async def test_a_beginning_is_that_of_a_letter_of_the_scope(self, store: RunStore) -> None:
        ours, theirs, both = "0192aaaa-1", "0192aaaa-2", "0192aaaa"
        await self._restored(store, {ours: "pay", theirs: "orders", f"{both}-3": "orders"})

        found = await store.get(both, within=("pay",))

        assert found is not None
        assert found.id.startswith(ours)
        assert await store.get(theirs, within=("pay",)) is None
        assert await store.get(both, within=("p",)) is None
        for within in (None, ("orders",)):
            with pytest.raises(UsageError, match=both):
                await store.get(both, within=within)

    async def _restored(self, store: RunStore, queues: dict[str, str]) -> None:
        for letter_id, queue in queues.items():
            await store.record(an_entry(letter_id, queue=queue))
        letters = [each async for each in store.whole([each.id for each in await store.find(LetterQuery())])]
        ids = [each.id for each in letters]
        await store.change(ids, Transition.DISCARD, by=ANN)
        await store.purge(ids, by=ANN)
        renamed = [replace(each, id=f"{each.identity}000") for each in letters]
        assert len(await store.restore_whole(renamed, by=ANN)) == len(queues)

    async def test_those_that_do_not_exist_are_in_no_scope(self, store: RunStore) -> None:
        shelf = await fill(store)
        asked = [*shelf.every_id, "unknown", "\x00", "\ud800"]

        assert await store.inside(asked, None) == set(shelf.every_id)
        assert await store.inside(asked * 60, ("pay", "orders")) == shelf.inside(("pay", "orders"))
        assert await store.inside(asked, ()) == set()


def _without_rates(told: Any) -> Any:
    """Attempts of handlers are counted without letters, and stay when letters go."""
    return replace(told, failure_rates=[]) if hasattr(told, "failure_rates") else told


class ScopedGroupContract(StoreCase):
    """A group that was merged with one of another queue is there only for those who may know of both."""

    async def test_merged_groups_tell_nothing_to_those_who_may_know_of_one_queue(self, store: RunStore) -> None:
        shelf = await fill(store)
        await store.merge(shelf.groups["orders"], [shelf.groups["pay"]], by=ANN)
        await store.merge(shelf.groups["Pay"], [shelf.groups["pay%"]], by=ANN)

        for within in (("orders",), ("pay",), ("pay*",), ("pay", "Pay", "p\u00e4y")):
            for question, told in (await answers(store, shelf, within)).items():
                assert _leaked(told, within) == [], (within, question)

    async def test_a_merged_group_is_seen_by_those_who_may_know_of_all_of_it(self, store: RunStore) -> None:
        shelf = await fill(store)
        whole, part = shelf.groups["orders"], shelf.groups["pay"]
        await store.merge(whole, [part], by=ANN)

        for within, sees in ((("orders",), False), (("pay",), False), (("pay", "orders"), True), (("*",), True)):
            listed = {group.id for group in await store.groups(within=within)}
            found = [await store.group(each, within=within) for each in (whole, part, part[:9])]
            assert (whole in listed, [each is not None for each in found]) == (sees, [sees] * 3), within

    async def test_letters_of_a_merged_group_are_counted_without_its_title(self, store: RunStore) -> None:
        shelf = await fill(store)
        await store.merge(shelf.groups["orders"], [shelf.groups["pay"]], by=ANN)

        [ours] = await store.top_errors(within=("pay",))
        [theirs] = await store.top_errors(within=("orders",))
        overview = await store.overview(LetterQuery(within=("pay",)))

        assert (ours.title, ours.pending) == ("Error", 2)
        assert (theirs.title, theirs.pending) == (f"Error: {mark_of('orders')}", 2)
        assert [(each.title, each.count) for each in overview.by_group] == [("", 2)]
        assert (await store.overview(LetterQuery(within=("orders",)))).earlier.total == 2
        assert overview.earlier.total == 0

    async def test_a_group_that_holds_a_letter_outside_is_not_seen(self, store: RunStore) -> None:
        entry = marked_entry("pay")
        await store.record(entry)
        stranger, _ = await store.record(replace(marked_entry("orders"), fingerprint=entry.fingerprint))
        asked = [await store.group(entry.fingerprint.id, within=each) for each in (("pay",), ("pay", "orders"))]
        await store.change([stranger], Transition.DISCARD, by=ANN)
        await store.purge([stranger], by=ANN)
        again = await store.group(entry.fingerprint.id, within=("pay",))

        assert asked[0] is None
        assert asked[1] is not None
        assert again is not None
        assert (again.total, await store.groups(within=("orders",))) == (1, [])

    async def test_a_group_without_letters_is_still_one_of_its_queue_and_of_those_merged_into_it(
        self, store: RunStore
    ) -> None:
        ours, theirs = (marked_entry(queue).fingerprint.id for queue in ("pay", "orders"))
        ids = [(await store.record(marked_entry(queue)))[0] for queue in ("pay", "orders")]
        for each in (ours, theirs):
            await store.annotate(each, owner="somebody", by=ANN)
        await store.change(ids, Transition.DISCARD, by=ANN)
        await store.purge(ids, by=ANN)
        apart = [await store.group(each, within=("pay",)) for each in (ours, theirs)]
        await store.merge(ours, [theirs], by=ANN)
        merged = [await store.group(ours, within=each) for each in (("pay",), ("pay", "orders"))]

        assert [each is not None for each in (*apart, *merged)] == [True, False, False, True]

    async def test_a_beginning_is_that_of_a_group_of_the_scope(self, store: RunStore) -> None:
        for number, queue in enumerate(("pay", "orders", "orders")):
            group = Fingerprint(id=f"abcd{number}" + "0" * 27, title=queue)
            await store.record(replace(an_entry(queue=queue), fingerprint=group))

        found = await store.group("abcd", within=("pay",))

        assert found is not None
        assert found.title == "pay"
        assert await store.group("abcd", within=("p",)) is None
        for within in (None, ("orders",)):
            with pytest.raises(UsageError, match="abcd"):
                await store.group("abcd", within=within)


class ScopedRunContract(StoreCase):
    async def test_a_run_takes_letters_of_its_scope_whoever_carries_it_out(
        self, store: RunStore, other: RunStore
    ) -> None:
        shelf = await fill(store)
        within = ("pay", "orders*")
        run = await running(store, a_plan(within=within))

        found = await other.run(run)
        taken = [*(await take(store, run, 1)).claims, *await every_claim(other, run, 2)]

        assert found is not None
        assert (found.plan.selection.within, found.total) == (within, 6)
        assert {each.letter_id for each in taken} == _pending(shelf, "pay", "orders", "orders_eu")

    async def test_of_ids_those_outside_are_neither_taken_nor_told(self, store: RunStore) -> None:
        shelf = await fill(store)
        run = await running(store, of_ids(*shelf.every_id, within=("Pay",)))

        taken = await every_claim(store, run)

        assert {each.letter_id for each in taken} == _pending(shelf, "Pay")
        assert {each.letter_id for each in await store.outcomes(run)} <= set(shelf.ids["Pay"])

    async def test_a_scope_of_nothing_is_a_run_of_nothing(self, store: RunStore) -> None:
        shelf = await fill(store)

        for plan in (a_plan(within=()), of_ids(*shelf.every_id, within=())):
            run = await running(store, plan)
            assert not (await take(store, run)).claims
            assert (await store.run(run)).total == 0  # type: ignore[union-attr]  # it is there


def _pending(shelf: Shelf, *queues: str) -> set[str]:
    return {letter_id for queue in queues for letter_id in (shelf.ids[queue][0], shelf.ids[queue][2])}
