"""`redrive retry --quarantined`: letters that were kept back go too, for a reason, and the preview says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from redrive.dead_letter import Status
from support.dead_letters import an_order, dead
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

BOTH = ("retry", "--queue", "orders", "--quarantined")
WHY = ("--reason", "the size limit is gone", "--yes")


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    return Desk(tmp_path, store_url=url)


def settings(desk: Desk, text: str) -> None:
    with (desk.folder / "redrive.toml").open("a") as file:
        file.write(text)


@pytest.fixture
def kept(desk: Desk) -> list[str]:
    """Two letters that are QUARANTINED, and one that is not."""
    settings(desk, "[approval]\nquarantined = false\n")
    return desk.record(
        dead(an_order(1), quarantine="too large"),
        dead(an_order(2), quarantine="killed 3 processes"),
        dead(an_order(3)),
    )


def statuses(desk: Desk, ids: list[str]) -> list[Status]:
    return [desk.letter(each).status for each in ids]


def test_they_are_released_and_sent_with_the_others(desk: Desk, kept: list[str]) -> None:
    ended = desk.redrive(*BOTH, *WHY)

    assert (ended.code, ended.out) == (0, "Sent 3 letters back.\n"), ended.err
    assert "2 letters QUARANTINED (1 killed 3 processes, 1 too large) are released and sent" in ended.err or (
        "2 letters QUARANTINED (1 too large, 1 killed 3 processes) are released and sent" in ended.err
    )
    assert statuses(desk, kept) == [Status.REDRIVEN] * 3
    assert len(desk.take("orders")) == 3
    told = [(line.what, line.reason) for line in desk.letter(kept[0]).history]
    assert ("released", "the size limit is gone") in told


def test_named_ones_too(desk: Desk, kept: list[str]) -> None:
    without = desk.redrive("retry", kept[0], "--yes")
    ended = desk.redrive("retry", kept[0], "--quarantined", *WHY)

    assert without.code == 5
    assert (ended.code, ended.out) == (0, "Sent 1 letter back.\n"), ended.err
    assert statuses(desk, kept) == [Status.REDRIVEN, Status.QUARANTINED, Status.PENDING]


def test_without_it_they_are_told_and_left(desk: Desk, kept: list[str]) -> None:
    ended = desk.redrive("retry", "--queue", "orders", "--yes")

    assert ended.out == "Sent 1 letter back.\n"
    assert "match too and are not taken" in ended.err
    assert "--quarantined" in ended.err
    assert statuses(desk, kept) == [Status.QUARANTINED, Status.QUARANTINED, Status.REDRIVEN]


def test_a_dry_run_tells_how_many_and_why(desk: Desk, kept: list[str]) -> None:
    told = desk.redrive(*BOTH, "--reason", "x", "--dry-run", "--output", "json")

    shown: dict[str, Any] = json.loads(told.out)
    assert shown["count"] == 3
    [check] = [each for each in shown["checks"] if each["name"] == "quarantined"]
    assert check["level"] == "warn"
    assert "1 too large" in check["text"]
    assert "1 killed 3 processes" in check["text"]
    assert statuses(desk, kept) == [Status.QUARANTINED, Status.QUARANTINED, Status.PENDING]


def test_a_reason_is_needed(desk: Desk, kept: list[str]) -> None:
    ended = desk.redrive(*BOTH, "--yes")

    assert (ended.code, "--reason" in ended.err) == (2, True)
    assert statuses(desk, kept) == [Status.QUARANTINED, Status.QUARANTINED, Status.PENDING]


def test_nothing_to_take_is_told_as_that(desk: Desk) -> None:
    desk.record(dead(queue="mail"))

    ended = desk.redrive(*BOTH, *WHY)

    assert (ended.code, "no pending or quarantined letter matches" in ended.err) == (3, True)


def test_it_waits_for_a_second_person_where_the_settings_ask_for_one(desk: Desk) -> None:
    settings(desk, "[approval]\nquarantined = true\n")
    [letter] = desk.record(dead(an_order(1), quarantine="too large"))

    asked = desk.redrive(*BOTH, *WHY, account="ann")
    [run] = json.loads(desk.redrive("runs", "list", "--output", "json").out)

    assert (asked.code, run["status"], run["quarantined"]) == (5, "AWAITING_APPROVAL", True)
    assert desk.letter(letter).status is Status.QUARANTINED
    assert desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes").code == 0
    assert desk.redrive("runs", "resume", run["id"]).out == "Sent 1 letter back.\n"
    assert desk.letter(letter).status is Status.REDRIVEN
