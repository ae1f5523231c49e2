"""The options of `retry`, what the settings put in their place, and the ceilings of queues."""

from __future__ import annotations

import pytest

from redrive.cli.run_options import RunOptions, share, steps
from redrive.errors import UsageError
from redrive.letter_query import LetterQuery
from redrive.run import Brakes, Canary
from redrive.run_policy import RunPolicy
from redrive.settings import Settings
from redrive.wiring import run_policy

ORDERS = LetterQuery(queue="orders")
USUAL = RunPolicy(
    rate=5.0, canary=Canary(steps=(1, 10), wait=60.0, at_most_back=0.1), brakes=Brakes(came_back=0.3, backlog=7)
)


def test_what_nobody_says_comes_from_the_settings() -> None:
    plan = RunOptions().plan(ORDERS, USUAL)
    assert (plan.rate, plan.canary, plan.brakes) == (USUAL.rate, USUAL.canary, USUAL.brakes)


def test_what_somebody_says_wins() -> None:
    options = RunOptions(
        rate=50, canary="2,20", canary_wait="2m", at_most_back="50%", pause_when_back="never", max_backlog=100
    )
    plan = options.plan(ORDERS, USUAL)
    assert plan.rate == 50
    assert plan.canary == Canary(steps=(2, 20), wait=120.0, at_most_back=0.5)
    assert plan.brakes == Brakes(came_back=None, backlog=100)


def test_a_canary_of_the_settings_can_be_left_out() -> None:
    assert RunOptions(canary="0").plan(ORDERS, USUAL).canary.steps == ()


@pytest.mark.parametrize("text", ["", "x", "-1", "5,5", "5,1", "0,5", "1,,5"])
def test_what_is_no_canary_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--canary"):
        steps(text)


@pytest.mark.parametrize(("text", "value"), [("20%", 0.2), ("0.2", 0.2), ("0", 0.0), ("100 %", 1.0)])
def test_a_share_is_a_percentage_or_a_number_up_to_one(text: str, value: float) -> None:
    assert share(text, "--at-most-back") == value


@pytest.mark.parametrize("text", ["20", "-1%", "101%", "nan", "", "%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--at-most-back"):
        share(text, "--at-most-back")


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_not_possible_is_refused(rate: float) -> None:
    with pytest.raises(UsageError, match="rate"):
        RunOptions(rate=rate).plan(ORDERS, USUAL)


def test_another_queue_and_the_first_exchange_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--original-exchange"):
        RunOptions(to="repair", original_exchange=True).plan(ORDERS, USUAL)


@pytest.mark.parametrize(
    ("asked", "targets", "rate"),
    [
        (None, {"orders"}, 20.0),
        (5.0, {"orders"}, 5.0),
        (50.0, {"orders"}, 20.0),
        (50.0, {"mail"}, 50.0),
        (None, {"mail"}, None),
        (None, {"orders", "slow"}, 1.0),
    ],
)
def test_no_run_is_quicker_than_the_slowest_queue_it_sends_to(
    asked: float | None, targets: set[str], rate: float | None
) -> None:
    queues = {"orders": {"redrive_rate": 20}, "slow": {"redrive_rate": 1}, "mail": {}}
    policy = run_policy(Settings.model_validate({"queues": queues}))
    plan = RunOptions(rate=asked).plan(ORDERS, policy)
    assert policy.limited(plan, targets).rate == rate


def test_the_settings_say_how_runs_go_about_it() -> None:
    policy = run_policy(
        Settings.model_validate(
            {
                "runs": {"rate": 3, "canary": [1, 5], "canary_wait": "1m", "pause_when_back": "none"},
                "approval": {"more_than": 0, "queues": "orders, mail", "edits": True, "expires_after": "1h"},
            }
        )
    )
    assert (policy.rate, policy.canary) == (3.0, Canary(steps=(1, 5), wait=60.0))
    assert policy.brakes == Brakes(came_back=None)
    assert policy.approval.more_than == 0
    assert policy.approval.queues == {"orders", "mail"}
    assert policy.approval.expires_after == 3600


def test_settings_that_say_nothing_are_the_defaults_of_a_plan() -> None:
    plan = RunOptions().plan(ORDERS, run_policy(Settings()))
    assert (plan.rate, plan.canary, plan.brakes) == (None, Canary(), Brakes())


def test_a_canary_that_does_not_rise_is_refused_with_the_settings() -> None:
    with pytest.raises(ValueError, match="canary should rise"):
        Settings.model_validate({"runs": {"canary": [5, 5]}})
