"""The ledger of a store: a row for each call by which a person or a rule changed something, and for nothing else.

A driver's test opens its stores with `KEY`.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from redrive.alerts.incident import IncidentChange
from redrive.dead_letter import Actor, Status, Transition, Verdict
from redrive.errors import NotFound, Refused
from redrive.ledger import (
    GENESIS,
    GROUP,
    INCIDENT,
    LETTERS,
    RUN,
    TOKEN,
    Deed,
    LedgerKey,
    LedgerQuery,
    Subject,
    digest_of,
)
from redrive.ledger_verifying import Verifier
from redrive.run import RunChange, Settled
from redrive.testing.letters import NOON, a_group, a_message, an_entry
from redrive.testing.store_case import LEASE, StoreCase, claimed, letter, place, returned
from redrive.testing.store_contract_alerts import an_incident, saved
from redrive.testing.store_runs import a_plan, an_approval, every_claim, recorded, running, send, take

if TYPE_CHECKING:
    from redrive.ledger import LedgerEntry
    from redrive.ledger_verifying import LedgerFinding
    from redrive.stores import RunStore, Store
    from redrive.testing.clock import ManualClock

KEY = LedgerKey(b"a secret of at least 32 characters")
ANN = Actor("ann", "because", request_id="req-1", token="tok-1")  # noqa: S106  an id, no secret
BOB = Actor("bob", "seen")
A, B = a_group("a").id, a_group("b").id


async def entries(store: RunStore, **query: Any) -> list[LedgerEntry]:
    """In their order."""
    return await store.ledger(LedgerQuery(after=0, limit=500, **query))


async def told(store: RunStore) -> list[tuple[str, str, str, str, str]]:
    """Who did what to what kind of thing, before and after."""
    rows = await entries(store)
    return [(each.who, each.subject.kind, each.what, each.before, each.after) for each in rows]


async def findings(store: RunStore, *keys: LedgerKey) -> list[LedgerFinding]:
    page = await store.ledger_page(0, 10_000)
    verifier = Verifier(keys or (KEY,))
    found = [finding for row in page.rows for finding in verifier.look(row)]
    return [*found, *verifier.end(page.head)]


class LedgerContract(StoreCase):
    async def test_a_change_is_one_row_however_many_letters(self, store: RunStore) -> None:
        first, second, third = await recorded(store, 3)
        await store.change([third], Transition.QUARANTINE, by=BOB)

        await store.change([first, second, third, "none"], Transition.DISCARD, by=ANN)

        _, row = await entries(store)
        assert msgspec.structs.replace(row, mac="", previous="") == msgspec.structs.replace(
            row,
            seq=2,
            at=NOON,
            who="ann",
            token="tok-1",  # noqa: S106  as above
            request_id="req-1",
            reason="because",
            what="discarded",
            subject=Subject(LETTERS, (first, second, third), 3),
            before="PENDING 2, QUARANTINED 1",
            after="DISCARDED",
            allowed=True,
            key_id=KEY.id,
            previous="",
            mac="",
        )
        assert await findings(store) == []

    async def test_of_many_letters_the_first_are_named_and_all_are_told_by_a_digest(self, store: RunStore) -> None:
        ids = await recorded(store, 130)

        await store.change(ids, Transition.DISCARD, by=ANN)

        [row] = await entries(store)
        assert row.subject == Subject(LETTERS, tuple(sorted(ids)[:100]), 130, digest_of(reversed(ids)))
        assert row.subject.digest != digest_of(ids[1:])

    async def test_what_people_do_about_alerts(self, store: RunStore, clock: ManualClock) -> None:
        alerts = cast("Store", store)
        (kept,) = await saved(store, an_incident())
        until = clock.now() + timedelta(hours=4)

        await alerts.change_incident(kept.id, IncidentChange.ACKNOWLEDGE, by=ANN)
        await alerts.change_incident(kept.id, IncidentChange.SNOOZE, by=ANN, until=until)
        await alerts.change_incident(kept.id, IncidentChange.RESOLVE, by=BOB)

        assert await told(store) == [
            ("ann", INCIDENT, "alert acknowledge", "", "FIRING"),
            ("ann", INCIDENT, "alert snooze", "", f"until {until.isoformat()}"),
            ("bob", INCIDENT, "alert resolve", "", "RESOLVED"),
        ]
        assert {each.subject.ids for each in await entries(store)} == {(kept.id,)}

    async def test_what_people_do_to_letters(self, store: RunStore, clock: ManualClock) -> None:
        letter_id = (await place(store, Status.PENDING)).id
        message = (await letter(store, letter_id)).message
        await store.revise(letter_id, msgspec.structs.replace(message, body=b"{}"), base=0, by=ANN)
        await store.change([letter_id], Transition.RESOLVE, by=ANN)
        whole = await letter(store, letter_id)
        await store.purge([letter_id], by=BOB)
        await store.restore_whole([whole], by=BOB)
        silent = (await place(store, Status.REDRIVEN)).id
        clock.advance(60)
        assert await store.assume([letter_id, silent], sent_before=clock.now(), by=Actor("rule")) == 1

        assert await told(store) == [
            ("ann", LETTERS, "edited", "revision 0", "revision 1"),
            ("ann", LETTERS, "resolved", "PENDING", "RESOLVED"),
            ("bob", LETTERS, "purged", "RESOLVED", ""),
            ("bob", LETTERS, "imported", "", ""),
            ("rule", LETTERS, "resolved", "REDRIVEN", "RESOLVED"),
        ]
        assert {each.subject.ids for each in await entries(store)} == {(letter_id,), (silent,)}

    async def test_what_people_say_about_groups(self, store: RunStore) -> None:
        for name in "ab":
            await store.record(an_entry(group=name))
        await store.annotate(A, owner="ann", verdict=Verdict.INVESTIGATE, by=ANN)
        await store.merge(A, [B], by=ANN)
        await store.split(A, B, by=BOB)

        rows = await told(store)

        assert rows == [
            ("ann", GROUP, "annotated", *rows[0][3:]),
            ("ann", GROUP, "merged into", B, A),
            ("bob", GROUP, "split off", A, B),
        ]
        assert rows[0][3:] == ('{"owner": null, "verdict": null}', '{"owner": "ann", "verdict": "investigate"}')

    async def test_what_people_decide_about_runs(self, store: RunStore) -> None:
        await recorded(store, 2)
        plan = a_plan()
        run = await store.create_run(plan, by=ANN, approval=an_approval(plan, 2))
        for change in (RunChange.APPROVE, RunChange.PAUSE, RunChange.CANCEL):
            await store.change_run(run.id, change, by=BOB)
        rule = msgspec.structs.replace(plan, rule="nightly")
        assert await store.create_rule_run(rule, by=Actor("rule nightly"), behind=None)

        assert await told(store) == [
            ("ann", RUN, "requested", "", f"AWAITING_APPROVAL, letters 2, plan {plan.digest(2)}"),
            ("bob", RUN, "approved", "AWAITING_APPROVAL", "RUNNING"),
            ("bob", RUN, "paused", "RUNNING", "PAUSED"),
            ("bob", RUN, "cancelled", "PAUSED", "CANCELLED"),
            ("rule nightly", RUN, "requested", "", f"RUNNING, letters 2, plan {rule.digest(2)}"),
        ]
        assert (await entries(store))[0].subject.ids == (run.id,)

    async def test_what_somebody_decides_about_letters_in_doubt(self, store: RunStore, clock: ManualClock) -> None:
        ids = await recorded(store, 2)
        run = await running(store)
        await take(store, run)
        clock.advance(LEASE + 1)
        await store.change_run(run, RunChange.CANCEL, by=ANN)

        claims = await store.take_doubtful(run, owner="ann", at_most=9, lease=LEASE, by=ANN)
        sent = [Settled(claim, Transition.SENT) for claim in claims]
        assert await store.settle_together(sent, by=ANN, decided=True) == 2
        assert await store.settle_together(sent, by=ANN, decided=True) == 0

        *_, taken, marked = await entries(store)
        assert (taken.what, marked.what, marked.before) == ("claim taken over", "sent", "REDRIVING")
        assert taken.subject == marked.subject == Subject.of(LETTERS, ids)
        assert taken.request_id == marked.request_id == "req-1"

    async def test_what_machines_do_letter_by_letter_is_not_in_it(self, store: RunStore) -> None:
        [one, two] = await recorded(store, 2)
        claim = await claimed(store, one)
        await store.settle(claim, Transition.SENT, by=ANN)
        await store.record(returned(claim))
        await store.confirm((await claimed(store, two)).ticket, by=ANN)
        run = await running(store)
        claims = await every_claim(store, run)
        await send(store, claims)
        await store.let_go(claims)

        assert [each.what for each in await entries(store)] == ["requested"]

    async def test_what_changes_nothing_or_is_refused_writes_nothing(self, store: RunStore) -> None:
        letter_id = (await place(store, Status.PENDING)).id
        group = (await letter(store, letter_id)).group_id

        await store.change([letter_id, "none"], Transition.RELEASE, by=ANN)
        await store.purge([letter_id], by=ANN)
        await store.annotate(group, owner=None, by=ANN)
        await store.change([], Transition.DISCARD, by=ANN)
        for refused in (
            store.revise(letter_id, a_message(), base=7, by=ANN),
            store.merge(group, [group], by=ANN),
            store.change_run("none", RunChange.PAUSE, by=ANN),
            store.annotate("no group", owner="ann", by=ANN),
        ):
            with pytest.raises((Refused, NotFound)):
                await refused

        assert await entries(store) == []

    async def test_a_repeated_call_writes_nothing_more(self, store: RunStore) -> None:
        letter_id = (await place(store, Status.PENDING)).id
        await store.record(an_entry(group="a"))
        await store.record(an_entry(group="b"))
        message = msgspec.structs.replace((await letter(store, letter_id)).message, body=b"{}")
        calls = (
            lambda: store.revise(letter_id, message, base=0, by=ANN),
            lambda: store.create_run(a_plan(), by=ANN, key="once"),
            lambda: store.annotate(A, owner="ann", by=ANN),
            lambda: store.merge(A, [B], by=ANN),
            lambda: store.split(A, B, by=ANN),
            lambda: store.change([letter_id], Transition.DISCARD, by=ANN),
            lambda: store.note(Deed(what="revealed", subject=Subject.of(LETTERS, [letter_id])), by=ANN, at=NOON),
            lambda: store.purge([letter_id], by=ANN),
        )
        for call in calls:
            await call()
            await call()

        rows = [each.what for each in await entries(store)]

        assert rows == [
            *("edited", "requested", "annotated", "merged into", "split off", "discarded", "revealed", "purged")
        ]

    async def test_what_is_no_change_is_noted(self, store: RunStore, clock: ManualClock) -> None:
        denied = Deed(what="purge", subject=Subject(TOKEN, ("t",)), before="\0", after="\ud800␛", allowed=False)
        await store.note(denied, by=Actor("mal\0lory", "\ud800", request_id="␛0000"))
        clock.advance(1)
        await store.note(denied, by=ANN)
        await store.note(denied, by=BOB)

        first, *_ = await entries(store)

        assert (first.who, first.before, first.request_id) == ("mal\0lory", "\0", "␛0000")
        assert (first.allowed, first.subject, first.seq, first.previous) == (False, denied.subject, 1, GENESIS)
        assert [each.at for each in await entries(store)] == [NOON, *[NOON + timedelta(seconds=1)] * 2]
        assert await findings(store) == []

    async def test_rows_are_found_by_what_is_asked_for_page_by_page(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        for number in range(7):
            deed = Deed(what=f"w{number % 2}", subject=Subject(TOKEN if number < 5 else RUN), allowed=number != 3)
            await store.note(deed, by=(ANN, BOB)[number % 3 == 0])
            clock.advance(60)

        async def seqs(**query: Any) -> list[int]:
            return [each.seq for each in await store.ledger(LedgerQuery(**query))]

        assert await seqs(limit=3) == [7, 6, 5]
        assert await seqs(limit=3, before=5) == [4, 3, 2]
        assert await seqs(limit=3, after=4) == [5, 6, 7]
        assert await seqs(who="bob") == [7, 4, 1]
        assert await seqs(what="w1", who="ann") == [6, 2]
        assert await seqs(kind=RUN) == [7, 6]
        assert await seqs(allowed=False) == [4]
        assert await seqs(since=NOON + timedelta(minutes=5)) == [7, 6]
        assert await seqs(until=NOON + timedelta(minutes=1)) == [1]
        assert await seqs(who="nobody") == []

    async def test_two_who_write_at_once_leave_no_gap(self, store: RunStore, other: RunStore) -> None:
        ids = await recorded(store, 60)
        group = (await letter(other, ids[0])).group_id
        lots = [ids[start : start + 4] for start in range(0, 60, 2)]  # each letter in two of them
        transitions = (Transition.DISCARD, Transition.QUARANTINE, Transition.RESOLVE)

        await asyncio.gather(
            *(
                each.change(list(reversed(lot)), transitions[place % 3], by=ANN)
                for place, lot in enumerate(lots)
                for each in (store, other)
            ),
            *(each.annotate(group, owner=str(number), by=BOB) for number in range(9) for each in (store, other)),
            *(store.note(Deed(what=f"w{number}", subject=Subject(TOKEN)), by=BOB) for number in range(20)),
        )

        rows = await entries(store)
        assert [each.seq for each in rows] == list(range(1, len(rows) + 1))
        changed = [each for row in rows if row.who == "ann" for each in row.subject.ids]
        assert sorted(set(changed)) == sorted(ids)
        assert await findings(store) == []
