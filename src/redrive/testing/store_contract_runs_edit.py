"""What a run changes in the letters that it takes, and what it leaves as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from redrive.dead_letter import Status
from redrive.editing import Expect, RemoveHeader, Set, SetHeader, SetPayload, json_value
from redrive.run import Progress, RunChange
from redrive.testing.letters import a_message
from redrive.testing.store_case import ANN, StoreCase, letter, returned
from redrive.testing.store_runs import BOB, a_plan, an_approval, recorded, running, send, take

if TYPE_CHECKING:
    from redrive.stores import RunStore
    from redrive.testing.clock import ManualClock


class EditingRunContract(StoreCase):
    async def test_an_edit_is_a_revision_of_each_letter_that_is_taken(self, store: RunStore) -> None:
        ids = await recorded(store, 2)
        edit = (Set(path="order", value=json_value(18)),)
        run = await running(store, replace(a_plan(), edit=edit, reason="wrong order"))

        claims = (await take(store, run)).claims

        assert [(each.revision, each.message.body) for each in claims] == [(1, b'{"order": 18}')] * 2
        for letter_id in ids:
            found = await letter(store, letter_id)
            assert [each.message.body for each in found.revisions] == [b'{"order": 17}', b'{"order": 18}']
            assert (found.revision, found.revisions[1].by, found.revisions[1].reason) == (1, "bob", "wrong order")
            assert [line.what for line in found.history] == ["recorded", "edited", "claimed"]
        await send(store, claims)
        await store.record(returned(claims[0]))  # what came back is the edited message
        assert (await letter(store, claims[0].letter_id)).generation == 2

    async def test_a_letter_that_the_edit_does_not_fit_stays_and_holds_up_nobody(self, store: RunStore) -> None:
        bodies = (b'{"order": 1}', b"no JSON", b'{"order": 2}', b'{"order": 1}')
        ids = await recorded(store, 4, messages=[a_message(body=body) for body in bodies])
        edit = (Expect(path="order", value=json_value(1)), Set(path="done", value=json_value("yes")))
        run = await running(store, replace(a_plan(), edit=edit))

        claims = (await take(store, run)).claims

        assert [each.letter_id for each in claims] == [ids[0], ids[3]]
        told = {each.letter_id: each.outcome for each in await store.outcomes(run)}
        assert told == {ids[0]: "claimed", ids[1]: "not edited", ids[2]: "not edited", ids[3]: "claimed"}
        for letter_id in ids[1:3]:
            found = await letter(store, letter_id)
            assert (found.status, found.revision) == (Status.PENDING, 0)
            assert (found.history[-1].what, found.history[-1].by) == ("not edited", "engine")
            assert found.history[-1].reason
        assert (await store.run(run)).progress == Progress(taken=2, in_hand=2, passed_over=2)  # type: ignore[union-attr]  # there

    async def test_an_edit_that_changes_nothing_makes_no_revision(self, store: RunStore) -> None:
        [letter_id] = await recorded(store, 1)
        run = await running(store, replace(a_plan(), edit=(Set(path="order", value=json_value(17)),)))

        [claim] = (await take(store, run)).claims

        assert claim.revision == (await letter(store, letter_id)).revision == 0

    async def test_operations_are_made_in_their_order(self, store: RunStore) -> None:
        await recorded(store, 1)
        edit = (
            SetPayload(payload=b'{"a": 1}'),
            Set(path="b", value=json_value(2)),
            SetPayload(payload=b'{"c": 3}'),
            Set(path="d", value=json_value(4)),
        )
        run = await running(store, replace(a_plan(), edit=edit))

        [claim] = (await take(store, run)).claims

        assert claim.message.body == b'{"c": 3,"d":4}'

    async def test_any_bytes_can_be_the_payload_of_all(self, store: RunStore) -> None:
        await recorded(store, 2, messages=[a_message(body=body) for body in (None, b"\xff\x00")])
        run = await running(store, replace(a_plan(), edit=(SetPayload(payload=b"\x00\xfe<xml/>"),)))

        claims = (await take(store, run)).claims

        assert [each.message.body for each in claims] == [b"\x00\xfe<xml/>"] * 2

    @pytest.mark.parametrize("allowed", [False, True])
    async def test_sensitive_headers_are_touched_only_if_the_plan_says_so(
        self, store: RunStore, *, allowed: bool
    ) -> None:
        headers = (("authorization", "old"), ("session-id", "1"))
        [letter_id] = await recorded(store, 1, messages=[a_message(headers=headers)])
        edit = (SetHeader(name="authorization", value=json_value("new")), RemoveHeader(name="session-id"))
        run = await running(store, replace(a_plan(), edit=edit, allow_sensitive=allowed))

        claims = (await take(store, run)).claims

        assert [each.message.headers for each in claims] == [(("authorization", "new"),)] * allowed
        assert (await letter(store, letter_id)).revision == int(allowed)

    async def test_a_payload_that_would_not_fit_the_schema_is_never_sent(self, store: RunStore) -> None:
        pytest.importorskip("jsonschema")
        bodies = (b'{"order": 1}', b'{"order": "one"}', b"no JSON", b'{"order": 2}')
        ids = await recorded(store, 4, messages=[a_message(body=body) for body in bodies])
        schema = '{"properties": {"order": {"type": "integer"}, "done": {"const": "yes"}}, "required": ["done"]}'
        edit = (Set(path="done", value=json_value("yes")),)
        run = await running(store, replace(a_plan(), edit=edit, schema=schema))

        claims = (await take(store, run)).claims

        assert [each.letter_id for each in claims] == [ids[0], ids[3]]
        told = {each.letter_id: each.outcome for each in await store.outcomes(run)}
        assert told == {
            ids[0]: "claimed",
            ids[1]: "did not fit the schema",
            ids[2]: "not edited",
            ids[3]: "claimed",
        }
        unfit = await letter(store, ids[1])
        assert (unfit.status, unfit.revision, unfit.message.body) == (Status.PENDING, 0, bodies[1])
        assert (unfit.history[-1].what, unfit.history[-1].reason) == (
            "did not fit the schema",
            'order: type: "integer"',
        )
        assert (await store.run(run)).progress == Progress(taken=2, in_hand=2, passed_over=2)  # type: ignore[union-attr]  # there

    async def test_a_schema_holds_for_letters_that_are_not_edited_too(self, store: RunStore) -> None:
        pytest.importorskip("jsonschema")
        ids = await recorded(store, 2, messages=[a_message(body=body) for body in (b'{"a": 1}', b'{"a": 2}')])
        run = await running(store, replace(a_plan(), schema='{"properties": {"a": {"const": 2}}}'))

        assert [each.letter_id for each in (await take(store, run)).claims] == [ids[1]]

    async def test_what_was_edited_after_an_approval_was_asked_for_is_not_part_of_it(
        self, store: RunStore, clock: ManualClock
    ) -> None:
        before, after, untouched = await recorded(store, 3)
        await store.revise(before, a_message(body=b"edited"), base=0, by=ANN)
        clock.advance(1)
        run = (await store.create_run(a_plan(), by=BOB, approval=an_approval(a_plan(), 3))).id
        clock.advance(1)
        await store.revise(after, a_message(body=b"edited later"), base=0, by=ANN)
        await store.change_run(run, RunChange.APPROVE, by=ANN)

        claims = (await take(store, run)).claims

        assert [each.letter_id for each in claims] == [before, untouched]
        told = {each.letter_id: each.outcome for each in await store.outcomes(run)}
        assert told[after] == "edited meanwhile"
        assert (await letter(store, after)).status is Status.PENDING
