"""A letter that a run looked at and did not take was not redriven: nobody counts it as if it had been."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    return Desk(tmp_path, store_url=url)


@pytest.fixture
def passed_over(desk: Desk) -> str:
    """A letter that a run could not edit, and that it has told so."""
    [letter_id] = desk.record(dead(foreign(b"\xff not JSON")))
    ended = desk.redrive("retry", letter_id, "--set", "paid=true", "--reason", "it was paid", "--yes")
    assert ended.code != 0
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)
    told = json.loads(desk.redrive("runs", "show", run["id"], "--output", "json").out)
    assert (told["status"], told["sent"], told["passed_over"]) == ("DONE", 0, 1)
    assert desk.letter(letter_id).status is Status.PENDING
    return letter_id


def test_the_page_of_its_group_tells_no_redrive(desk: Desk, passed_over: str) -> None:
    group = desk.letter(passed_over).group_id

    shown = desk.redrive("groups", "show", group)

    assert shown.code == 0, shown.err
    assert "redrives" not in shown.out
    assert not json.loads(desk.redrive("groups", "show", group, "--output", "json").out).get("redrives")


def test_the_page_of_its_group_counts_the_redrives_of_others_only(desk: Desk, passed_over: str) -> None:
    group = desk.letter(passed_over).group_id
    [other] = desk.record(dead(an_order(2)))
    assert desk.letter(other).group_id == group
    assert desk.redrive("retry", other, "--yes").code == 0

    async def redrives(store: DeadLetterStore, _transport: Transport) -> dict[str, int]:
        found = await store.group(group)
        assert found is not None
        return dict(found.redrives)

    assert desk.do(redrives) == {"under way": 1}


def test_show_tells_one_life_and_no_sending(desk: Desk, passed_over: str) -> None:
    letter = desk.letter(passed_over)

    shown = desk.redrive("show", passed_over).out

    assert letter.generation == 1
    assert not {"claimed", "sent"} & {line.what for line in letter.history}
    assert "REDRIV" not in shown


def test_a_preview_says_that_it_was_not_sent_before(desk: Desk, passed_over: str) -> None:
    ended = desk.redrive("retry", passed_over, "--dry-run", "--output", "json")

    told = {check["name"]: check for check in json.loads(ended.out)["checks"]}
    assert told["earlier redrives"]["level"] == "ok"
    assert "was sent before" in told["earlier redrives"]["text"]
    assert "none of" in told["earlier redrives"]["text"]
