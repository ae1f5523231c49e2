"""Deciding about dead letters: `resolve`, `discard`, `restore`, `quarantine`, `release`, `purge`."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import pytest

from redrive.dead_letter import Status
from support.dead_letters import dead
from support.desk import Desk
from support.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = "01a1e159-cf20-722c-a384-905c90383150"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def decide(desk: Desk, command: str, *ids: str) -> int:
    return desk.redrive(command, *ids, "--reason", "because", "--yes").code


@pytest.mark.parametrize(
    ("before", "command", "status"),
    [
        ((), "resolve", Status.RESOLVED),
        ((), "discard", Status.DISCARDED),
        ((), "quarantine", Status.QUARANTINED),
        (("discard",), "restore", Status.PENDING),
        (("resolve",), "restore", Status.PENDING),
        (("quarantine",), "release", Status.PENDING),
        (("quarantine",), "discard", Status.DISCARDED),
    ],
)
def test_a_decision_changes_the_status_and_writes_down_who_and_why(
    desk: Desk, before: tuple[str, ...], command: str, status: Status
) -> None:
    [letter_id] = desk.record(dead())
    for step in before:
        decide(desk, step, letter_id)

    assert decide(desk, command, letter_id) == 0

    letter = desk.letter(letter_id)
    assert letter.status is status
    assert (letter.history[-1].by, letter.history[-1].reason) == (getpass.getuser(), "because")


def test_what_the_status_does_not_allow_is_refused_with_the_status_and_what_would_be(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    ended = desk.redrive("restore", letter_id, "--reason", "because", "--yes")

    assert ended.code == 5
    assert ended.err == (
        f"error: letter {letter_id} is PENDING: cannot restore it\n"
        "  hint: only RESOLVED and DISCARDED letters can be\n"
    )


def test_some_done_and_some_not_is_partly_failed_and_the_rest_is_done(desk: Desk) -> None:
    pending, discarded = desk.record(dead(), dead())
    decide(desk, "discard", discarded)

    ended = desk.redrive("discard", pending, discarded, UNKNOWN, "--reason", "because", "--yes")

    assert (ended.code, ended.out) == (4, "Discarded 1 letter.\n")
    assert f"error: no letter {UNKNOWN}" in ended.err
    assert desk.letter(pending).status is Status.DISCARDED


def test_only_unknown_ids_is_nothing_matched(desk: Desk) -> None:
    assert decide(desk, "resolve", UNKNOWN) == 3


def test_a_beginning_that_fits_no_letter_stops_the_command_before_anything_is_changed(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    assert decide(desk, "discard", letter_id, "00000000") == 3

    assert desk.letter(letter_id).status is Status.PENDING


@pytest.mark.parametrize("command", ["resolve", "discard", "restore", "quarantine", "release", "purge"])
def test_every_decision_needs_a_reason(desk: Desk, command: str) -> None:
    [letter_id] = desk.record(dead())

    missing = desk.redrive(command, letter_id, "--yes")
    blank = desk.redrive(command, letter_id, "--yes", "--reason", "  ")

    assert (missing.code, blank.code) == (2, 2)
    assert "--reason" in missing.err


@pytest.mark.parametrize("command", ["resolve", "discard", "quarantine"])
def test_a_dry_run_and_a_missing_yes_change_nothing(desk: Desk, command: str) -> None:
    [letter_id] = desk.record(dead())

    dry = desk.redrive(command, letter_id, "--dry-run")
    refused = desk.redrive(command, letter_id, "--reason", "because")

    assert (dry.code, dry.out) == (0, f"Would {command} 1 letter. Nothing was changed.\n")
    assert (refused.code, refused.out) == (5, "")
    assert desk.letter(letter_id).status is Status.PENDING


def test_s2_purge_removes_for_good_only_what_is_resolved_or_discarded(desk: Desk) -> None:
    """S2's PurgeDeadLetterMessageAsync, "Após Análise"."""
    resolved, discarded, pending = desk.record(dead(), dead(), dead())
    decide(desk, "resolve", resolved)
    decide(desk, "discard", discarded)

    ended = desk.redrive("purge", resolved, discarded, pending, "--reason", "analysed", "--yes")

    assert (ended.code, ended.out) == (4, "Purged 2 letters.\n")
    assert f"letter {pending} is PENDING: cannot purge it" in ended.err
    assert desk.redrive("show", resolved).code == 3
    assert desk.letter(pending).status is Status.PENDING


def test_ids_come_from_a_pipe_one_per_line(desk: Desk) -> None:
    ids = desk.record(dead(), dead(), dead())

    ended = desk.redrive("discard", "-", "--reason", "because", "--yes", stdin="\n".join(ids))

    assert (ended.code, ended.out) == (0, "Discarded 3 letters.\n")
    empty = desk.redrive("discard", "-", "--reason", "because", "--yes")
    assert (empty.code, "no ids on standard input" in empty.err) == (3, True)


def test_an_id_given_twice_is_changed_once(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    ended = desk.redrive("discard", letter_id, letter_id, "--reason", "because", "--yes")

    assert (ended.code, ended.out) == (0, "Discarded 1 letter.\n")


def test_more_letters_than_one_transaction_takes_are_all_changed(desk: Desk) -> None:
    ids = desk.record(*(dead() for _ in range(120)))

    ended = desk.redrive("discard", *ids, "--reason", "because", "--yes")

    assert (ended.code, ended.out) == (0, "Discarded 120 letters.\n")


def test_on_a_terminal_a_person_is_asked_why_and_whether(desk: Desk) -> None:
    [letter_id] = desk.record(dead())

    seen = on_terminal(desk.folder, "discard", letter_id, typed="a test order\ny\n")

    assert seen.code == 0
    assert "Discard 1 letter? [y/N]" in seen.text
    assert desk.letter(letter_id).history[-1].reason == "a test order"
