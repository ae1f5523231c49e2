"""`redrive retry --dry-run`: what would be sent, what speaks against it, what an edit does. Nothing is changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_selection_is_previewed_and_no_run_is_made(desk: Desk) -> None:
    ids = desk.record(*(dead(an_order(number)) for number in range(3)), dead(queue="mail"))

    ended = desk.redrive("retry", "--where", "queue:orders", "--dry-run")

    assert (ended.code, ended.err) == (0, "Nothing was changed.\n")
    assert ended.out.startswith("3 letters")
    assert {desk.letter(each).status for each in ids} == {Status.PENDING}
    assert desk.redrive("runs").err == "No runs.\n"


def test_a_selection_that_nothing_matches_exits_3(desk: Desk) -> None:
    desk.record(dead())
    assert desk.redrive("retry", "--queue", "mail", "--dry-run").code == 3


def test_named_letters_that_would_not_be_sent_are_told(desk: Desk) -> None:
    pending, discarded = desk.record(dead(), dead())
    desk.redrive("discard", discarded, "--reason", "test", "--yes")

    ended = desk.redrive("retry", pending, discarded, "--dry-run")
    assert (ended.code, f"letter {discarded} is DISCARDED" in ended.err) == (4, True)
    assert desk.redrive("retry", discarded, "--dry-run").code == 5


def test_an_edit_is_shown_on_the_first_letters(desk: Desk) -> None:
    fits, broken = desk.record(dead(an_order(7)), dead(foreign(b"{")))

    ended = desk.redrive("retry", "--queue", "orders", "--set", "order_id=8", "--dry-run")

    assert f"Edit of letter {fits}\n  ~ order_id: 7 -> 8\n" in ended.out
    assert f"Edit of letter {broken}\n  does not fit: the body is not JSON" in ended.out
    assert desk.letter(fits).revision == 0


def test_a_preview_can_be_written_as_json(desk: Desk) -> None:
    desk.record(dead(an_order(7)))
    ended = desk.redrive("retry", "--queue", "orders", "--set", "order_id=8", "--dry-run", "--output", "json")
    told = json.loads(ended.out)
    assert (told["count"], told["edited"][0]["differences"]) == (1, ["~ order_id: 7 -> 8"])


def test_letters_that_an_edit_does_not_fit_are_passed_over_and_told(desk: Desk) -> None:
    fits, broken = desk.record(dead(an_order(7)), dead(foreign(b"{")))

    ended = desk.redrive("retry", "--queue", "orders", "--set", "order_id=8", "--yes")

    assert (ended.code, ended.out.splitlines()[0]) == (4, "Sent 1 letter back."), ended.err
    assert [desk.letter(each).status for each in (fits, broken)] == [Status.REDRIVEN, Status.PENDING]
    assert f"letter {broken}: not edited" in ended.err
