"""Which runs need a second person, and who counts as one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from redrive.approvals import ApprovalRules, Shown, approval_for, said_name, same_person, token_name
from redrive.editing import Remove
from redrive.errors import UsageError
from redrive.letter_query import LetterQuery
from redrive.run import Approval, RunPlan
from redrive.settings import Settings
from redrive.wiring import run_policy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = RunPlan(selection=LetterQuery(queue="orders"))
EDITED = RunPlan(selection=LetterQuery(queue="orders"), edit=(Remove(path="note"),))


def asked_for(plan: RunPlan = PLAN, count: int = 10, edited: int = 0, **rules: Any) -> Any:
    shown = Shown(count=count, queues=("orders",), edited=edited)
    return approval_for(plan, shown, rules=ApprovalRules(**rules), now=NOW)


def test_without_rules_nobody_has_to_approve_anything() -> None:
    assert asked_for(EDITED, count=1_000_000) is None


@pytest.mark.parametrize(("count", "needed"), [(100, False), (101, True)])
def test_more_letters_than_the_limit_need_an_approval(count: int, *, needed: bool) -> None:
    assert (asked_for(count=count, more_than=100) is not None) is needed


def test_a_limit_of_zero_means_every_run() -> None:
    assert asked_for(count=1, more_than=0).why == "1 letters are more than 0"


@pytest.mark.parametrize(("queues", "needed"), [(("mail",), False), (("mail", "orders"), True)])
def test_a_guarded_queue_needs_an_approval(queues: tuple[str, ...], *, needed: bool) -> None:
    rules = ApprovalRules(queues=frozenset({"orders"}))
    assert (approval_for(PLAN, Shown(count=1, queues=queues), rules=rules, now=NOW) is not None) is needed


def test_edits_need_an_approval_where_the_settings_say_so() -> None:
    assert asked_for(PLAN, edits=True) is None
    assert asked_for(EDITED, edits=True).why == "messages are edited"


def test_letters_that_were_edited_before_are_edits_too() -> None:
    assert asked_for(PLAN, edited=3) is None
    assert asked_for(PLAN, edited=1, edits=True).why == "1 letter was edited before"
    assert asked_for(PLAN, edited=3, edits=True).why == "3 letters were edited before"


def test_letters_out_of_quarantine_need_an_approval_where_the_settings_say_so() -> None:
    released = replace(PLAN, quarantined=True)
    assert asked_for(PLAN, quarantined=True) is None
    assert asked_for(released) is None
    assert asked_for(released, quarantined=True).why == "letters are taken out of quarantine"


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, False),
        ({"more_than": 1000}, True),
        ({"queues": ["payments"]}, True),
        ({"edits": True}, True),
        ({"edits": True, "quarantined": False}, False),
        ({"quarantined": True}, True),
        ({"edits": True, "quarantined": "auto"}, True),
        ({"rules": True, "expires_after": "1h"}, False),
    ],
)
def test_a_team_that_has_approvals_has_them_for_the_quarantine_unless_it_says_otherwise(
    settings: dict[str, Any], *, needed: bool
) -> None:
    policy = run_policy(Settings.model_validate({"approval": settings}))
    assert policy.approval.quarantined is needed


def test_an_approval_is_bound_to_what_was_shown_and_ends() -> None:
    approval: Approval = asked_for(EDITED, count=7, more_than=5, edits=True, expires_after=60.0)
    assert approval.digest == EDITED.digest(7)
    assert approval.digest != EDITED.digest(8)
    assert approval.digest != PLAN.digest(7)
    for more in ({"allow_sensitive": True}, {"schema": "{}"}, {"quarantined": True}, {"target": "repair"}):
        assert approval.digest != replace(EDITED, **more).digest(7), more
    for less in ({"reason": "another"}, {"rate": 5.0}):
        assert approval.digest == replace(EDITED, **less).digest(7), less
    assert approval.expires_at == NOW + timedelta(minutes=1)
    assert approval.why == "7 letters are more than 5; messages are edited"


def test_a_name_that_was_only_said_is_recorded_as_that() -> None:
    assert said_name(" ann ", "root") == "ann (said by root)"
    assert said_name("ann", "ann") == "ann"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[1m", "ann (said by bob)", "x" * 101])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        said_name(name, "root")


def test_nobody_becomes_a_second_person_by_saying_their_own_name() -> None:
    assert same_person("ann", said_name("ann", "root"))
    assert same_person(said_name("Ann", "bob"), said_name("ann ", "root"))
    assert not same_person("ann", said_name("bob", "cal"))


def test_one_account_is_one_person_whatever_name_it_says() -> None:
    assert same_person("root", said_name("bob", "root"))
    assert same_person(said_name("ann", "root"), said_name("bob", "root"))
    assert same_person(said_name("ann", "Root"), "ROOT")
    assert same_person(token_name("ci", said_name("ann", "root")), said_name("bob", "root"))
    assert not same_person(said_name("ann", "deploy"), said_name("bob", "root"))


def test_a_token_is_the_person_who_made_it_and_two_tokens_are_two() -> None:
    mine, other = token_name("ci", "ann"), token_name("bob", "ann")

    assert same_person("ann", mine)
    assert same_person(mine, said_name("Ann", "root"))
    assert same_person(mine, mine)
    assert not same_person(mine, other)
    assert not same_person("bob", other)
    assert not same_person(token_name("x", "bob"), "ann")
    assert same_person(token_name("made by ci", mine), mine)
    assert same_person(token_name("made by ci", mine), "ann")
