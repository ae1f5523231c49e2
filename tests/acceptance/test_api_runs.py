"""Runs, groups, numbers and queues over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redrive.access import Role
from redrive.approvals import ApprovalRules
from redrive.dead_letter import Status
from redrive.engine import RedriveEngine
from redrive.run_policy import RunPolicy
from support.api_house import House, open_house

ADMIN, VIEWER, OPERATOR, EDITOR, APPROVER = Role.ADMIN, Role.VIEWER, Role.OPERATOR, Role.EDITOR, Role.APPROVER
ORDERS: dict[str, Any] = {"selection": {"q": "queue:orders"}, "reason": "the customer database is back"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


async def made(house: House, *roles: Role, **more: Any) -> dict[str, Any]:
    answer = await house.ask("POST", "/runs", *(roles or (OPERATOR,)), json={**ORDERS, **more})
    assert answer.status_code == 202, answer.text
    run: dict[str, Any] = answer.json()["run"]
    return run


async def test_a_preview_tells_what_a_run_would_do_and_changes_nothing(house: House) -> None:
    for queue in ("orders", "orders", "payments"):
        await house.letter(queue)

    told = (await house.ask("POST", "/runs/preview", OPERATOR, json=ORDERS)).json()

    assert (told["count"], told["exact"], told["by_queue"]) == (2, True, {"orders": 2})
    assert {"name", "level", "text"} == set(told["checks"][0])
    assert (await house.ask("GET", "/runs", OPERATOR)).json()["items"] == []


async def test_a_run_is_made_carried_out_and_told_to_its_end(house: House) -> None:
    ids = {await house.letter() for _ in range(3)}
    other = await house.letter("payments")
    run = await made(house)

    await house.carry_out()

    shown = (await house.ask("GET", f"/runs/{run['id']}", VIEWER)).json()
    assert (shown["run"]["status"], shown["run"]["progress"]["sent"]) == ("DONE", 3)
    assert shown["run"]["requested_by"] == "token:operator of test"
    assert shown["history"][0]["what"]
    page = (await house.ask("GET", f"/runs/{run['id']}/letters?limit=2", VIEWER)).json()
    rest = (await house.ask("GET", f"/runs/{run['id']}/letters?limit=2&after={page['next']}", VIEWER)).json()
    assert {each["letter_id"] for each in page["items"] + rest["items"]} == ids
    untouched = await house.store.get(other)
    assert untouched is not None
    assert untouched.status is Status.PENDING


async def test_a_run_can_be_paused_resumed_and_cancelled(house: House) -> None:
    await house.letter()
    run = await made(house)

    told = []
    for decision in ("pause", "resume", "cancel", "resume"):
        answer = await house.ask("POST", f"/runs/{run['id']}/{decision}", OPERATOR, json={"reason": "let me look"})
        told.append((answer.status_code, answer.json().get("run", {}).get("status")))

    assert told == [(200, "PAUSED"), (200, "RUNNING"), (200, "CANCELLED"), (409, None)]


async def test_nobody_approves_their_own_run_not_even_with_another_token_of_theirs(tmp_path: Path) -> None:
    policy = RunPolicy(approval=ApprovalRules(more_than=1))
    async with open_house(tmp_path, policy=policy) as house:
        for _ in range(2):
            await house.letter()
        run = await made(house, ADMIN)
        assert run["status"] == "AWAITING_APPROVAL"
        grants = [{"role": "approver"}]
        own = await house.ask("POST", "/tokens", ADMIN, json={"name": "mine", "grants": grants})

        path = f"/api/v1/runs/{run['id']}/approve"
        myself = await house.ask("POST", f"/runs/{run['id']}/approve", ADMIN, json={})
        mine = await house.client.post(path, json={}, headers={"authorization": f"Bearer {own.json()['text']}"})
        unable = await house.ask("POST", f"/runs/{run['id']}/approve", OPERATOR, json={})
        somebody = await house.ask("POST", f"/runs/{run['id']}/approve", APPROVER, json={})

    codes = [each.status_code for each in (myself, mine, unable, somebody)]
    assert codes == [409, 409, 403, 200]
    assert somebody.json()["run"]["status"] == "RUNNING"


async def test_an_edit_in_a_run_needs_the_permission_to_edit(house: House) -> None:
    await house.letter()
    edit = [{"op": "replace", "path": "/order_id", "value": 2}]

    operator = await house.ask("POST", "/runs", OPERATOR, json={**ORDERS, "edit": edit})
    both = await house.ask("POST", "/runs", OPERATOR, EDITOR, json={**ORDERS, "edit": edit})

    assert (operator.status_code, both.status_code) == (403, 202)


async def test_whoever_has_some_queues_sends_letters_of_those_alone_and_to_those_alone(house: House) -> None:
    mine, other = await house.letter("orders"), await house.letter("payments")
    everything = {"selection": {}, "reason": "all of it"}

    run = await house.ask("POST", "/runs", OPERATOR, queues=("orders*",), json=everything)
    away = await house.ask(
        "POST", "/runs", OPERATOR, queues=("orders*",), json={**everything, "target": "payments"}
    )
    seen = await house.ask("GET", f"/runs/{run.json()['run']['id']}", VIEWER, queues=("payments",))
    await house.carry_out()

    assert (run.json()["run"]["total"], away.status_code, seen.status_code) == (1, 403, 404)
    statuses = {letter.id: letter.status for each in (mine, other) if (letter := await house.store.get(each))}
    assert statuses == {mine: Status.REDRIVEN, other: Status.PENDING}


async def test_the_same_key_is_the_same_run_for_whoever_has_some_queues_and_tells_nobody_else_of_it(
    house: House,
) -> None:
    await house.letter("orders")
    await house.letter("payments")
    asked: dict[str, Any] = {"json": {"selection": {}, "reason": "all"}, "headers": {"idempotency-key": "k1"}}

    first = await house.ask("POST", "/runs", OPERATOR, queues=("orders",), **asked)
    again = await house.ask("POST", "/runs", OPERATOR, queues=("orders",), **asked)
    other = await house.ask("POST", "/runs", OPERATOR, queues=("payments",), **asked)

    assert (first.status_code, again.status_code, other.status_code) == (202, 202, 409)
    assert again.json()["run"]["id"] == first.json()["run"]["id"]
    assert first.json()["run"]["id"] not in other.text


async def test_the_progress_of_a_run_comes_as_events_until_it_has_ended(house: House) -> None:
    for _ in range(3):
        await house.letter()
    run = await made(house, OPERATOR, EDITOR, edit=[{"op": "set", "path": "version", "value": 2}])
    headers = {"authorization": f"Bearer {await house.token(VIEWER)}"}
    engine = RedriveEngine(store=house.store, transport=house.transport, clock=house.clock, owner="test")

    async def watched() -> list[dict[str, Any]]:
        async with house.client.stream("GET", f"/api/v1/runs/{run['id']}/events", headers=headers) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = [line async for line in stream.aiter_lines() if line.startswith("data: ")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]

    watching = asyncio.create_task(watched())
    await engine.carry_out(run["id"])
    told = await watching

    assert (told[-1]["status"], told[-1]["progress"]["sent"]) == ("DONE", 3)


async def test_what_is_said_about_a_group_survives_a_redrive(house: House) -> None:
    letter_id = await house.letter()
    group_id = (await house.ask("GET", f"/dlq/{letter_id}", VIEWER)).json()["group_id"]
    said = {"owner": "payments team", "verdict": "replayable", "note": "known", "runbook": "https://wiki/1"}

    changed = await house.ask("PATCH", f"/groups/{group_id}", OPERATOR, json=said)
    await made(house)
    await house.carry_out()
    after = (await house.ask("GET", f"/groups/{group_id}", VIEWER)).json()
    removed = await house.ask("PATCH", f"/groups/{group_id}", OPERATOR, json={"owner": None})

    assert changed.status_code == 200
    assert {name: after[name] for name in said} == said
    assert (removed.json()["owner"], removed.json()["note"]) == (None, "known")


async def test_s1s_five_analyses_and_s2s_statistics(house: House) -> None:
    ids = [await house.letter() for _ in range(3)]
    await house.ask("PUT", f"/dlq/{ids[0]}/resolve?reason=done", OPERATOR)

    async def asked(path: str) -> Any:
        return (await house.ask("GET", f"/stats{path}", VIEWER)).json()

    assert len((await asked("/pending"))["items"]) == 2
    assert (await asked("/top-errors"))["items"][0]["pending"] == 2
    assert sum(each["letters"] for each in (await asked("/rate?within=2h"))["items"]) == 3
    [kind] = (await asked("/event-types"))["items"]
    assert (kind["total"], kind["pending"], kind["resolved"]) == (3, 2, 1)
    assert (await asked("/resolution"))["resolved"] == 1
    numbers = await asked("?older_than=1h")
    assert (numbers["total"], numbers["by_queue"], numbers["older"]) == (3, {"orders": 2}, 0)
    assert (await asked("/count?status=PENDING")) == {"number": 2, "exact": True}
    assert (await asked("/values/queue"))["items"][0]["value"] == "orders"


async def test_every_change_reveal_and_denial_is_in_the_audit_trail(tmp_path: Path) -> None:
    async with open_house(tmp_path, audited=True) as house:
        letter_id = await house.letter()
        await house.ask("DELETE", f"/dlq/{letter_id}?reason=a%20test", OPERATOR, headers={"x-request-id": "r-1"})
        await house.ask("POST", f"/dlq/{letter_id}/reveal", EDITOR, json={"reason": "she called"})
        for _ in range(3):
            await house.ask("DELETE", f"/dlq/{letter_id}", VIEWER)
        unexplained = await house.ask("POST", f"/dlq/{letter_id}/reveal", EDITOR, json={})

        lines = (await house.ask("GET", "/audit", Role.AUDITOR)).json()["items"]
        denials = (await house.ask("GET", "/audit?denied=true", Role.AUDITOR)).json()["items"]

    told = {(each["who"], each["what"], each["reason"], each["request_id"] == "r-1") for each in lines}
    assert ("token:operator of test", "discarded", "a test", True) in told
    assert ("token:editor of test", "revealed", "she called", False) in told
    assert [each["who"] for each in denials] == ["token:viewer of test"]
    assert unexplained.status_code == 400


async def test_queues_are_told_with_their_letters_to_those_who_may_see_them(house: House) -> None:
    await house.letter("orders")
    await house.letter("payments")

    everybodys = (await house.ask("GET", "/queues", VIEWER)).json()["items"]
    some = (await house.ask("GET", "/queues", VIEWER, queues=("pay*",))).json()["items"]

    assert {each["name"]: each["letters"] for each in everybodys} == {"orders": 1, "payments": 1}
    assert [each["name"] for each in some] == ["payments"]
