"""Runs that take letters out of quarantine: released and claimed in one go, for a reason, and never unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status, Transition
from redrive.editing import Set, json_value
from redrive.errors import UsageError
from redrive.letter_query import Count, LetterQuery
from redrive.search import parse
from redrive.testing.letters import a_message
from redrive.testing.store_case import ANN, ENGINE, StoreCase, letter, place
from redrive.testing.store_runs import a_plan, every_claim, of_ids, recorded, running, send

if TYPE_CHECKING:
    from typing import Any

    from redrive.run import RunPlan
    from redrive.stores import RunStore
    from redrive.testing.clock import ManualClock


def of_both(plan: RunPlan | None = None, **selection: Any) -> RunPlan:
    return replace(plan or a_plan(**selection), quarantined=True, reason="the size limit is gone")


async def kept_back(store: RunStore, number: int, *, cause: str = "too large", **given: Any) -> list[str]:
    """The ids of letters that are QUARANTINED."""
    return await recorded(store, number, quarantine=cause, **given)


class QuarantinedRunContract(StoreCase):
    async def test_a_run_takes_both_the_oldest_first_if_it_is_made_for_it(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        ids = [*await kept_back(store, 2), *await recorded(store, 2, at=clock.now())]
        for status in {*Status} - {Status.PENDING, Status.QUARANTINED}:
            await place(store, status)

        run = await running(store, of_both())
        claims = await every_claim(store, run, 3)

        assert [claim.letter_id for claim in claims] == ids
        assert {(await letter(store, each)).status for each in ids} == {Status.REDRIVING}
        assert await send(store, claims) == 4
        found = await store.run(run)
        assert found is not None
        assert (found.total, found.progress.sent, found.progress.passed_over) == (4, 4, 0)

    async def test_its_history_tells_the_release_and_why_and_then_the_claim(self, store: RunStore) -> None:
        [kept] = await kept_back(store, 1)

        run = await running(store, of_both())
        await every_claim(store, run)

        *_, release, claim = (await letter(store, kept)).history
        assert (release.what, release.by, release.reason) == ("released", "bob", "the size limit is gone")
        assert (release.before, release.after) == (Status.QUARANTINED, Status.PENDING)
        assert (claim.what, claim.by, claim.reason) == ("claimed", "engine", f"run {run}")
        assert (claim.before, claim.after) == (Status.PENDING, Status.REDRIVING)

    async def test_it_is_as_a_new_one_then(self, store: RunStore) -> None:
        [kept] = await kept_back(store, 1)

        [claim] = await every_claim(store, await running(store, of_both()))
        await store.settle(claim, Transition.REFUSED, by=ENGINE)

        found = await letter(store, kept)
        assert (found.status, found.how) == (Status.PENDING, None)

    async def test_without_it_they_stay_where_they_are(self, store: RunStore) -> None:
        kept = await kept_back(store, 1)
        [pending] = await recorded(store, 1)

        claims = await every_claim(store, await running(store))
        by_id = await store.create_run(of_ids(*kept), by=ANN)

        assert [claim.letter_id for claim in claims] == [pending]
        assert by_id.total == 0
        assert await every_claim(store, by_id.id) == []
        assert (await letter(store, kept[0])).status is Status.QUARANTINED

    async def test_named_letters_and_those_of_a_filter_alike(self, store: RunStore, clock: ManualClock) -> None:
        orders = await kept_back(store, 1)
        mails = await kept_back(store, 1, queue="mail")
        only_kept = parse("status:quarantined", now=clock.now())

        named = await store.create_run(of_both(of_ids(*orders)), by=ANN)
        filtered = await store.create_run(of_both(queue="mail", where=only_kept), by=ANN)

        assert (named.total, filtered.total) == (1, 1)
        assert [claim.letter_id for claim in await every_claim(store, named.id)] == orders
        assert [claim.letter_id for claim in await every_claim(store, filtered.id)] == mails

    async def test_what_was_set_apart_after_the_run_was_made_is_not_sent(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        kept, meanwhile = await recorded(store, 2)
        await store.change([kept], Transition.QUARANTINE, by=ANN)
        run = await running(store, of_both())
        clock.advance(1)
        await store.change([meanwhile], Transition.QUARANTINE, by=ANN)

        assert [claim.letter_id for claim in await every_claim(store, run)] == [kept]
        assert (await letter(store, meanwhile)).status is Status.QUARANTINED
        assert {each.outcome for each in await store.outcomes(run)} == {"claimed", "not pending"}

    async def test_one_that_the_edit_does_not_fit_stays_in_quarantine(self, store: RunStore) -> None:
        messages = [a_message(body=body) for body in (b'{"order": 1}', b"no JSON")]
        good, bad = await kept_back(store, 2, messages=messages)
        plan = replace(of_both(), edit=(Set(path="order", value=json_value(2)),))

        [claim] = await every_claim(store, await running(store, plan))

        assert (claim.letter_id, claim.revision) == (good, 1)
        assert (await letter(store, bad)).status is Status.QUARANTINED
        told = [line.what for line in (await letter(store, good)).history]
        assert told[-3:] == ["released", "edited", "claimed"]

    @pytest.mark.parametrize("reason", ["", " \n"])
    async def test_nobody_does_it_without_a_reason(self, store: RunStore, reason: str) -> None:
        with pytest.raises(UsageError, match="reason"):
            await store.create_run(replace(of_both(), reason=reason), by=ANN)

        assert await store.runs() == []

    async def test_the_overview_tells_how_many_and_why(self, store: RunStore) -> None:
        await kept_back(store, 2)
        await kept_back(store, 1, cause="3 deaths", queue="mail")
        await recorded(store, 4)

        without = await store.overview(LetterQuery())
        both = await store.overview(LetterQuery(), quarantined=True)

        assert (without.count, without.releases, both.count, both.releases) == (4, False, 7, True)
        assert without.quarantined == both.quarantined == Count(3, exact=True)
        assert without.causes == both.causes == {"too large": 2, "3 deaths": 1}
        assert both.by_queue == {"orders": 6, "mail": 1}
        few = await store.overview(LetterQuery(), at_most=2, quarantined=True)
        assert (few.count, len(few.sample)) == (2, 2)
