"""Letters over HTTP: S1's four endpoints as S1 wrote them, and what is beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redrive.access import Role
from redrive.dead_letter import Status
from support.api_house import House, open_house

ADMIN, VIEWER, OPERATOR, EDITOR = Role.ADMIN, Role.VIEWER, Role.OPERATOR, Role.EDITOR


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


async def status(house: House, letter_id: str) -> Status:
    letter = await house.store.get(letter_id)
    assert letter is not None
    return letter.status


@pytest.mark.parametrize("prefix", ["", "/validation"])
async def test_s1s_four_endpoints_have_s1s_methods_and_status_codes(house: House, prefix: str) -> None:
    solved, dropped, retried = [await house.letter() for _ in range(3)]

    listed = await house.ask("GET", f"{prefix}/dlq?status=PENDING", VIEWER)
    again = await house.ask("POST", f"{prefix}/dlq/{retried}/retry", OPERATOR)
    resolved = await house.ask("PUT", f"{prefix}/dlq/{solved}/resolve?resolvedBy=ana", OPERATOR)
    discarded = await house.ask("DELETE", f"{prefix}/dlq/{dropped}", OPERATOR)

    assert [each.status_code for each in (listed, again, resolved, discarded)] == [200, 202, 200, 204]
    items = listed.json() if prefix else listed.json()["items"]
    assert {each["id"] for each in items} == {solved, dropped, retried}
    assert await status(house, solved) is Status.RESOLVED
    assert await status(house, dropped) is Status.DISCARDED
    await house.carry_out()
    assert await status(house, retried) is Status.REDRIVEN


async def test_who_resolved_it_is_who_asked_and_resolved_by_is_a_remark(house: House) -> None:
    letter_id = await house.letter()

    await house.ask("PUT", f"/dlq/{letter_id}/resolve?resolvedBy=the%20boss", OPERATOR)

    shown = (await house.ask("GET", f"/dlq/{letter_id}", VIEWER)).json()
    assert shown["history"][-1]["by"] == "token:operator of test"
    assert shown["history"][-1]["reason"] == "resolved by the boss"


async def test_a_retry_tells_where_its_run_is_and_the_same_key_is_the_same_run(house: House) -> None:
    letter_id = await house.letter()
    key = {"idempotency-key": "order 66"}

    first = await house.ask("POST", f"/dlq/{letter_id}/retry", OPERATOR, headers=key)
    second = await house.ask("POST", f"/dlq/{letter_id}/retry", OPERATOR, headers=key)

    assert first.headers["location"] == f"/api/v1/runs/{first.json()['run_id']}"
    assert second.json()["run_id"] == first.json()["run_id"]
    run = await house.client.get(
        first.headers["location"], headers={"authorization": f"Bearer {await house.token(VIEWER)}"}
    )
    assert run.json()["run"]["total"] == 1


async def test_pages_go_on_behind_their_cursor_and_back(house: House) -> None:
    ids = [await house.letter() for _ in range(5)][::-1]

    first = (await house.ask("GET", "/dlq?limit=2&count=true", VIEWER)).json()
    second = (await house.ask("GET", f"/dlq?limit=2&after={first['next']}", VIEWER)).json()
    last = (await house.ask("GET", f"/dlq?limit=2&after={second['next']}", VIEWER)).json()
    back = (await house.ask("GET", f"/dlq?limit=2&before={second['previous']}", VIEWER)).json()

    assert [each["id"] for page in (first, second, last) for each in page["items"]] == ids
    assert last["next"] is None
    assert first["previous"] is None
    assert [each["id"] for each in back["items"]] == ids[:2]
    assert first["count"] == {"number": 5, "exact": True}


async def test_a_filter_that_cannot_be_read_says_where_and_what_to_do(house: House) -> None:
    told = await house.ask("GET", "/dlq?q=queue:orders%20quue:x", VIEWER)

    assert told.status_code == 400
    assert told.headers["content-type"] == "application/problem+json"
    assert told.json()["column"] == 14
    assert "queue" in told.json()["remedy"]


async def test_an_edit_names_the_revision_it_is_based_on(house: House) -> None:
    letter_id = await house.letter()
    edit = {"payload": '{"order_id": 2}', "reason": "the customer moved"}
    etag = (await house.ask("GET", f"/dlq/{letter_id}", EDITOR)).headers["etag"]

    unbased = await house.ask("POST", f"/dlq/{letter_id}/revisions", EDITOR, json=edit)
    made = await house.ask("POST", f"/dlq/{letter_id}/revisions", EDITOR, json=edit, headers={"if-match": etag})
    late = {**edit, "payload": "{}"}
    outdated = await house.ask(
        "POST", f"/dlq/{letter_id}/revisions", EDITOR, json=late, headers={"if-match": etag}
    )

    assert [each.status_code for each in (unbased, made, outdated)] == [428, 201, 412]
    letter = await house.store.get(letter_id)
    assert letter is not None
    assert letter.message.data == {"order_id": 2}
    revisions = (await house.ask("GET", f"/dlq/{letter_id}/revisions", EDITOR)).json()["items"]
    assert [each["number"] for each in revisions] == [0, 1]


async def test_what_the_status_forbids_is_a_conflict_and_changes_nothing(house: House) -> None:
    letter_id = await house.letter()
    await house.ask("DELETE", f"/dlq/{letter_id}", OPERATOR)

    again = await house.ask("DELETE", f"/dlq/{letter_id}", OPERATOR)
    retried = await house.ask("POST", f"/dlq/{letter_id}/retry", OPERATOR)
    restored = await house.ask("POST", f"/dlq/{letter_id}/restore", OPERATOR, json={"reason": "needed after all"})

    assert [each.status_code for each in (again, retried, restored)] == [409, 409, 200]
    assert await status(house, letter_id) is Status.PENDING


async def test_a_letter_in_a_queue_of_somebody_elses_is_not_there(house: House) -> None:
    """TH9: nobody can try out ids."""
    letter_id, unknown = await house.letter("payments"), "0" * 8 + "-0000" * 3 + "-" + "0" * 12

    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/retry"),
        ("PUT", "/resolve"),
        ("GET", "/attempts"),
    ):
        there = await house.ask(method, f"/dlq/{letter_id}{path}", ADMIN, queues=("orders*",))
        missing = await house.ask(method, f"/dlq/{unknown}{path}", ADMIN, queues=("orders*",))
        assert (there.status_code, missing.status_code) == (404, 404), path
        assert there.json()["detail"].replace(letter_id, unknown) == missing.json()["detail"]
    listed = await house.ask("GET", "/dlq?count=true", ADMIN, queues=("orders*",))
    assert listed.json()["items"] == []
    assert listed.json()["count"]["number"] == 0
    assert await status(house, letter_id) is Status.PENDING


async def test_several_letters_are_decided_about_at_once_and_a_dry_run_changes_nothing(house: House) -> None:
    ids = [await house.letter() for _ in range(3)]
    asked = {"change": "discard", "ids": [*ids], "reason": "test orders"}

    dry = await house.ask("POST", "/dlq-changes", OPERATOR, json={**asked, "dry_run": True})
    assert dry.json() == {"done": ids, "left": {}}
    assert await status(house, ids[0]) is Status.PENDING

    done = await house.ask("POST", "/dlq-changes", OPERATOR, json=asked)
    assert done.json() == {"done": ids, "left": {}}
    again = await house.ask("POST", "/dlq-changes", OPERATOR, json=asked)
    assert again.json() == {"done": [], "left": dict.fromkeys(ids, "DISCARDED")}
