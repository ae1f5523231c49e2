"""Runs that a second person has to approve: by count, by queue, by edit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from redrive.dead_letter import Status
from support.dead_letters import an_order, dead
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
[approval]
more_than = 3
queues = ["payments"]
edits = true
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "redrive.toml").write_text(RULES)
    return Desk(tmp_path)


def orders(desk: Desk, number: int, queue: str = "orders") -> list[str]:
    return desk.record(*(dead(an_order(each, queue=queue), queue=queue) for each in range(number)))


def the_run(desk: Desk) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(desk.redrive("runs", "list", "--output", "json").out)[0]
    return run


def asked_for(desk: Desk, *more: str) -> dict[str, Any]:
    ended = desk.redrive("retry", "--queue", "orders", "--as", "ann", "--yes", *more, account="ann")
    assert ended.code == 5, ended.err
    return the_run(desk)


def test_a_large_run_waits_for_somebody_else_and_says_how_to_approve_it(desk: Desk) -> None:
    ids = orders(desk, 5)

    ended = desk.redrive("retry", "--queue", "orders", "--as", "ann", "--yes", account="ann")

    run = the_run(desk)
    assert ended.code == 5
    assert f"run {run['id']} of 5 letters is made and needs an approval: 5 letters are more than 3" in ended.err
    assert f"redrive runs approve {run['id']}" in ended.err
    assert (run["status"], run["requested_by"].split()[0]) == ("AWAITING_APPROVAL", "ann")
    assert {desk.letter(each).status for each in ids} == {Status.PENDING}
    assert desk.take("orders") == []
    assert "needed until" in desk.redrive("runs", "show", run["id"]).out


@pytest.mark.parametrize("name", ["ann", "ANN", " ann "])
def test_nobody_approves_their_own_run(desk: Desk, name: str) -> None:
    orders(desk, 5)
    run = asked_for(desk)

    ended = desk.redrive("runs", "approve", run["id"], "--as", name, "--yes")

    assert (ended.code, "nobody approves their own run" in ended.err) == (5, True)
    assert the_run(desk)["status"] == "AWAITING_APPROVAL"


def test_what_another_person_approves_is_carried_out(desk: Desk) -> None:
    orders(desk, 5)
    run = asked_for(desk, "--reason", "till is open again")

    approved = desk.redrive("runs", "approve", run["id"], "--as", "bob", "--reason", "seen", "--yes")
    assert (approved.code, approved.out) == (0, f"Approved run {run['id']}.\n")
    ended = desk.redrive("runs", "resume", run["id"])

    assert (ended.code, ended.out) == (0, "Sent 5 letters back.\n"), ended.err
    assert len(desk.take("orders")) == 5
    shown = desk.redrive("runs", "show", run["id"]).out
    assert "approval      by bob (said by " in shown
    assert "till is open again" in shown


def test_letters_that_die_before_the_approval_are_not_part_of_it(desk: Desk) -> None:
    orders(desk, 4)
    run = asked_for(desk)
    orders(desk, 3)

    desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes")

    assert desk.redrive("runs", "resume", run["id"]).out == "Sent 4 letters back.\n"


def test_a_rejected_run_is_over_and_keeps_its_reason(desk: Desk) -> None:
    orders(desk, 5)
    run = asked_for(desk)
    assert desk.redrive("runs", "reject", run["id"], "--as", "bob").code == 2  # a reason is needed

    assert desk.redrive("runs", "reject", run["id"], "--as", "bob", "--reason", "not today").code == 0

    rejected = the_run(desk)
    assert (rejected["status"], rejected["why"]) == ("CANCELLED", "not today")
    assert desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes").code == 5
    assert desk.take("orders") == []


def test_an_approval_that_nobody_gave_in_time_cannot_be_given_any_more(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text(RULES + 'expires_after = "1ms"\n')
    orders(desk, 5)
    run = asked_for(desk)

    ended = desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes")

    assert (ended.code, "time to approve" in ended.err) == (5, True)
    assert desk.redrive("runs", "cancel", run["id"], "--yes").code == 0


def test_a_small_run_needs_nobody(desk: Desk) -> None:
    orders(desk, 3)
    assert desk.redrive("retry", "--queue", "orders", "--yes").code == 0


def test_letters_of_a_guarded_queue_need_an_approval_whatever_the_filter_says(desk: Desk) -> None:
    orders(desk, 1)
    orders(desk, 1, "payments")
    ended = desk.redrive("retry", "--where", "age:<1d", "--yes")
    assert (ended.code, "of or to payments" in ended.err) == (5, True)


def test_letters_sent_to_a_guarded_queue_need_an_approval(desk: Desk) -> None:
    orders(desk, 1)
    ended = desk.redrive("retry", "--queue", "orders", "--to", "payments", "--yes")
    assert (ended.code, "of or to payments" in ended.err) == (5, True)


def test_letters_of_a_guarded_queue_need_an_approval_wherever_they_are_sent(desk: Desk) -> None:
    orders(desk, 1, "payments")
    assert desk.redrive("retry", "--queue", "payments", "--to", "orders", "--yes").code == 5
    assert desk.take("orders") == []


def test_named_letters_of_a_guarded_queue_need_an_approval(desk: Desk) -> None:
    [letter] = orders(desk, 1, "payments")
    assert desk.redrive("retry", letter, "--yes").code == 5
    assert desk.letter(letter).status is Status.PENDING


def test_an_edit_by_hand_is_no_way_around_it(desk: Desk) -> None:
    [letter] = orders(desk, 1, "payments")
    (desk.folder / "new.json").write_text('{"order_id": 2}')
    edit = ("edit", letter, "--from", "new.json", "--reason", "wrong number", "--retry", "--yes")

    ended = desk.redrive(*edit)

    assert (ended.code, "needs an approval: of or to payments" in ended.err) == (5, True)
    assert (desk.letter(letter).status, desk.letter(letter).revision) == (Status.PENDING, 1)


def test_an_edit_needs_an_approval(desk: Desk) -> None:
    orders(desk, 1)
    ended = desk.redrive("retry", "--queue", "orders", "--set", "customer=7", "--yes")
    assert (ended.code, "messages are edited" in ended.err) == (5, True)


def an_edited_order(desk: Desk) -> str:
    [letter] = orders(desk, 1)
    (desk.folder / "new.json").write_text('{"order_id": 2}')
    assert desk.redrive("edit", letter, "--from", "new.json", "--reason", "wrong number", "--yes").code == 0
    return letter


@pytest.mark.parametrize("chosen", [("--queue", "orders"), ("--where", "order_id"), ()])
def test_letters_that_were_edited_by_hand_need_an_approval(desk: Desk, chosen: tuple[str, ...]) -> None:
    orders(desk, 1)
    letter = an_edited_order(desk)

    ended = desk.redrive("retry", *(chosen or (letter,)), "--yes")

    assert (ended.code, "needs an approval: 1 letter was edited before" in ended.err) == (5, True), ended.err
    assert desk.take("orders") == []


def test_an_edit_that_is_sent_at_once_needs_an_approval(desk: Desk) -> None:
    [letter] = orders(desk, 1)
    (desk.folder / "new.json").write_text('{"order_id": 2}')

    ended = desk.redrive("edit", letter, "--from", "new.json", "--reason", "wrong number", "--retry", "--yes")

    assert (ended.code, "1 letter was edited before" in ended.err) == (5, True)


def test_letters_beside_an_edited_one_need_no_approval(desk: Desk) -> None:
    an_edited_order(desk)
    orders(desk, 1, "mail")
    assert desk.redrive("retry", "--queue", "mail", "--yes").code == 0


def test_what_is_edited_after_it_was_shown_is_not_sent_by_the_approval(desk: Desk) -> None:
    first, *_ = orders(desk, 4)
    run = asked_for(desk)
    (desk.folder / "new.json").write_text('{"order_id": 666}')
    desk.redrive("edit", first, "--from", "new.json", "--reason", "nobody saw this", "--yes")

    desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes")
    ended = desk.redrive("runs", "resume", run["id"])

    assert ended.out.splitlines()[0] == "Sent 3 letters back."
    assert f"letter {first}: edited meanwhile: after an approval of the run was asked for" in ended.err
    assert desk.letter(first).status is Status.PENDING


def a_quarantined_order(desk: Desk) -> str:
    [letter] = orders(desk, 1)
    assert desk.redrive("quarantine", letter, "--reason", "kills its worker", "--yes").code == 0
    return letter


def test_letters_out_of_quarantine_need_an_approval_where_there_are_approvals(desk: Desk) -> None:
    letter = a_quarantined_order(desk)

    run = asked_for(desk, "--quarantined", "--reason", "worker is mended")
    assert run["approval"]["why"] == "letters are taken out of quarantine"
    assert "letters are taken out of quarantine" in desk.redrive("runs", "show", run["id"]).out
    assert desk.letter(letter).status is Status.QUARANTINED

    desk.redrive("runs", "approve", run["id"], "--as", "bob", "--yes")
    assert desk.redrive("runs", "resume", run["id"]).out == "Sent 1 letter back.\n"
    assert desk.letter(letter).status is Status.REDRIVEN


@pytest.mark.parametrize("rules", ["", "[approval]\nmore_than = 3\nquarantined = false\n"])
def test_a_team_without_that_approval_takes_letters_out_of_quarantine_itself(desk: Desk, rules: str) -> None:
    (desk.folder / "redrive.toml").write_text(rules)
    letter = a_quarantined_order(desk)

    ended = desk.redrive(
        *("retry", "--queue", "orders", "--quarantined", "--reason", "mended", "--set", "order_id=9", "--yes")
    )

    assert (ended.code, desk.letter(letter).status) == (0, Status.REDRIVEN), ended.err
    assert [each.message.data for each in desk.take("orders")] == [{"order_id": 9}]


def test_letters_that_come_between_cannot_carry_a_run_over_the_limit(desk: Desk) -> None:
    orders(desk, 2)
    desk.redrive("retry", "--queue", "orders", "--detach", "--yes")
    assert the_run(desk)["at_most"] == 3
