"""Which of the things that rules are about are so: each kind, at its edge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from redrive.alerts.conditions import Condition, conditions, key_of
from redrive.alerts.observed import (
    Attempts,
    EndedRun,
    NewGroups,
    Observed,
    ProcessReport,
    ProcessRole,
    Reported,
    Returned,
    Sample,
)
from redrive.alerts.rule import DEFAULTS, AlertRule, RuleKind
from redrive.dead_letter import FailureGroup
from redrive.insights import Return
from redrive.run import RunStatus

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = 60.0


def rule(kind: RuleKind, **given: Any) -> AlertRule:
    return replace(DEFAULTS[kind], **given)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def sample(seconds_ago: float, **numbers: Any) -> Sample:
    empty: dict[str, Any] = {"pending": {}, "received": {}, "attempts": ()}
    return Sample(at=ago(seconds_ago), **(empty | numbers))


def group(name: str = "g1", **facts: Any) -> FailureGroup:
    usual: dict[str, Any] = {
        "title": "TimeoutError",
        "queue": "orders",
        "handler": "charge",
        "first_seen": ago(5 * 3600),
        "last_seen": NOW,
        "total": 9,
        "pending": 3,
        "by_status": {"PENDING": 2, "QUARANTINED": 1, "RESOLVED": 6},
        "example": None,
        "trend": (0,) * 24,
    }
    return FailureGroup(id=name, **(usual | facts))


def so(wanted: AlertRule, firing: set[str] | None = None, **observed: Any) -> list[Condition]:
    return conditions(wanted, Observed(at=NOW, **observed), firing or set())


# Numbers


def test_pending_letters_are_told_when_there_were_too_many_all_through_the_window() -> None:
    wanted = rule(RuleKind.PENDING)
    many, few = {"orders": 900, "mails": 101}, {"orders": 900, "mails": 100}

    (found,) = so(wanted, samples=(sample(300, pending=many), sample(150, pending=many), sample(0, pending=many)))
    assert (found.subject, found.counts) == ("", {"pending": 1001})
    assert not so(wanted, samples=(sample(300, pending=many), sample(150, pending=few), sample(0, pending=many)))
    assert not so(
        wanted, samples=(sample(200, pending=many), sample(0, pending=many))
    )  # nobody knows what was before


def test_each_queue_may_be_looked_at_by_itself_and_some_alone() -> None:
    numbers = {"orders": 20, "orders-eu": 30, "mails": 40}
    samples = (sample(300, pending=numbers), sample(0, pending=numbers))

    by_queue = so(rule(RuleKind.PENDING, threshold=25, each_queue=True), samples=samples)
    assert {(each.queue, each.counts["pending"]) for each in by_queue} == {("orders-eu", 30), ("mails", 40)}
    (together,) = so(rule(RuleKind.PENDING, threshold=25, queues=("orders*",)), samples=samples)
    assert together.counts == {"pending": 50}


def test_growth_is_what_is_pending_now_and_was_not_a_window_ago() -> None:
    samples = (sample(7200, pending={}), sample(3600, pending={"orders": 50}), sample(0, pending={"orders": 151}))

    (found,) = so(rule(RuleKind.GROWTH), samples=samples)
    assert found.counts == {"more": 101, "pending": 151}
    assert not so(rule(RuleKind.GROWTH, threshold=101), samples=samples)


def test_a_rate_is_the_average_of_the_window() -> None:
    samples = (sample(300, received={"orders": 1000}), sample(0, received={"orders": 1051}))

    (found,) = so(rule(RuleKind.RATE), samples=samples)
    assert found.counts == {"letters": 51, "per minute": 10}
    assert not so(rule(RuleKind.RATE), samples=(samples[0], sample(0, received={"orders": 1050})))


def test_a_rate_is_told_before_the_window_is_over_if_it_is_reached_already_and_not_of_one_moment() -> None:
    assert so(rule(RuleKind.RATE), samples=(sample(20, received={}), sample(0, received={"orders": 500})))
    assert not so(rule(RuleKind.RATE), samples=(sample(0, received={"orders": 500}),))


def test_a_steady_rate_is_the_same_whenever_one_looks_and_however_seldom_samples_are_taken() -> None:
    steady = rule(RuleKind.RATE, threshold=10)
    for every in (15, 86, 290, 600):
        for phase in range(0, every, 5):
            ages = range(1200 - 1200 % every + phase, 0, -every)
            taken = tuple(sample(age, received={"orders": 100_000 - round(10.5 * age / 60)}) for age in ages)
            assert so(steady, samples=(*taken, sample(0, received={"orders": 100_000}))), (every, phase)
            calm = tuple(sample(age, received={"orders": 100_000 - round(9.5 * age / 60)}) for age in ages)
            assert not so(steady, samples=(*calm, sample(0, received={"orders": 100_000})))


def test_a_rule_about_one_queue_is_seen_by_those_who_look_after_it() -> None:
    samples = (sample(300, received={}), sample(0, received={"orders": 500}))

    assert [each.queue for each in so(rule(RuleKind.RATE, queues=("orders",)), samples=samples)] == ["orders"]
    assert [each.queue for each in so(rule(RuleKind.RATE, queues=("ord*",)), samples=samples)] == [""]


def test_a_store_that_was_restored_from_a_copy_is_no_rate() -> None:
    assert not so(
        rule(RuleKind.RATE), samples=(sample(300, received={"orders": 1000}), sample(0, received={"orders": 10}))
    )


def test_a_share_of_attempts_that_fail_is_told_by_handler_if_there_are_enough_of_them() -> None:
    before = (Attempts("charge", "orders", 100, 50), Attempts("mail", "mails", 0, 0))
    after = (Attempts("charge", "orders", 117, 53), Attempts("mail", "mails", 0, 19))

    (found,) = so(rule(RuleKind.FAILURE_RATE), samples=(sample(300, attempts=before), sample(0, attempts=after)))
    assert (found.subject, found.counts) == ("charge", {"failed": 3, "attempts": 20, "percent": 15})


def test_the_oldest_letter_is_told_when_it_has_waited_too_long() -> None:
    (found,) = so(rule(RuleKind.AGE), oldest={(): ago(25 * 3600)})
    assert found.counts == {"hours": 25}
    assert not so(rule(RuleKind.AGE), oldest={(): ago(24 * 3600)})
    assert not so(rule(RuleKind.AGE), oldest={(): None})
    assert so(rule(RuleKind.AGE, queues=("mails",)), oldest={(): None, ("mails",): ago(25 * 3600)})


# Groups


def back(why: Return, **facts: Any) -> dict[str, Any]:
    return {"returned": {3600.0: {"g1": Returned(why, **facts)}}, "groups": {"g1": group()}}


NEW: dict[str, Any] = {"new": {3600.0: NewGroups(("g1",))}, "groups": {"g1": group()}}


def test_a_new_failure_is_told_with_its_title_and_its_page() -> None:
    (found,) = so(rule(RuleKind.NEW_GROUP), **NEW)

    assert (found.title, found.group_id, found.path) == ("New failure: TimeoutError", "g1", "/groups/g1")
    assert found.counts == {"letters": 3}
    assert not so(rule(RuleKind.NEW_GROUP), groups={"g1": group()})
    assert not so(rule(RuleKind.NEW_GROUP), **NEW | back(Return.SETTLED)), "it is back, and told as that"


def test_a_new_failure_lasts_until_nothing_of_it_is_left_however_long_ago_it_was_new() -> None:
    wanted = rule(RuleKind.NEW_GROUP)

    assert so(wanted, {"g1"}, groups={"g1": group()})
    assert so(wanted, {"g1"}, groups={"g1": group(pending=0, by_status={"QUARANTINED": 1})})
    assert not so(wanted, {"g1"}, groups={"g1": group(pending=0, by_status={"RESOLVED": 9})})
    assert not so(wanted, {"g1"}, groups={})


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (Return.QUIET, "Back after days of quiet"),
        (Return.SETTLED, "Back, though all of it was settled"),
        (Return.CAME_BACK, "Back after it was redriven"),
    ],
)
def test_a_failure_that_returns_is_told_with_the_reason(why: Return, told: str) -> None:
    (found,) = so(rule(RuleKind.RETURNING_GROUP), **back(why))
    assert (found.title, found.at_once) == (f"{told}: TimeoutError", False)
    (found,) = so(rule(RuleKind.RETURNING_GROUP), **back(why, by_hand=True))
    assert found.at_once


def test_a_known_failure_accelerates_when_it_fails_more_often_than_the_day_before() -> None:
    wanted, calm = rule(RuleKind.ACCELERATING_GROUP), group(first_seen=ago(48 * 3600), trend=(40,) * 23 + (99,))
    # 40 in an hour are 10 in a quarter of one: 30 is three times as many.
    (found,) = so(wanted, recent={900.0: {"g1": 30}}, groups={"g1": calm})
    assert found.counts == {"letters": 30, "usual": 10, "open": 3}
    assert not so(wanted, recent={900.0: {"g1": 29}}, groups={"g1": calm})


def test_a_failure_that_was_quiet_needs_some_letters_to_accelerate_and_a_new_one_does_not() -> None:
    wanted = rule(RuleKind.ACCELERATING_GROUP)

    assert so(wanted, recent={900.0: {"g1": 20}}, groups={"g1": group()})
    assert not so(wanted, recent={900.0: {"g1": 19}}, groups={"g1": group()})
    assert not so(wanted, recent={900.0: {"g1": 500}}, groups={"g1": group(first_seen=ago(3599))})


def test_a_failure_that_comes_steadily_since_shortly_before_the_hour_does_not_accelerate() -> None:
    wanted, began = rule(RuleKind.ACCELERATING_GROUP), ago(3600)
    steady = group(first_seen=began, trend=(0,) * 22 + (500, 5500))  # 100 a minute, of which 500 before the hour
    faster = group(first_seen=began, trend=(0,) * 22 + (100, 1100 + 1500))

    assert not so(wanted, recent={900.0: {"g1": 1500}}, groups={"g1": steady})
    assert so(wanted, recent={900.0: {"g1": 1500}}, groups={"g1": faster})


def test_critical_failures_are_told_by_group() -> None:
    (found,) = so(rule(RuleKind.CRITICAL), critical={"g1": 2, "unknown": 1}, groups={"g1": group()})
    assert (found.title, found.counts) == ("Critical failure: TimeoutError", {"letters": 2})


# Runs and processes


def test_a_run_that_failed_or_was_stopped_is_told_for_as_long_as_the_window() -> None:
    runs = (
        EndedRun("r1", RunStatus.FAILED, ago(10), 5),
        EndedRun("r2", RunStatus.STOPPED, ago(86400), 7),
        EndedRun("r3", RunStatus.FAILED, ago(86401), 9),
    )
    found = so(rule(RuleKind.FAILED_RUN), runs=runs)
    assert [(each.title, each.path) for each in found] == [
        ("Run r1 has failed", "/runs/r1"),
        ("Run r2 was stopped", "/runs/r2"),
    ]


def reported(at: datetime, **facts: Any) -> Reported:
    usual: dict[str, Any] = {
        "id": "p1",
        "role": ProcessRole.COLLECTOR,
        "host": "h1",
        "pid": 1,
        "queues": ("orders",),
    }
    return Reported(ProcessReport(**(usual | facts)), at)


def test_a_spool_in_use_is_told_by_host_when_it_lasts() -> None:
    spooling = {"role": ProcessRole.WORKER, "spooled_bytes": 70, "spooled_for": 60.0}
    (found,) = so(rule(RuleKind.SPOOL), processes=(reported(NOW, **spooling), reported(NOW, **spooling, id="p2")))
    assert (found.subject, found.counts) == ("h1", {"bytes": 70})
    assert not so(rule(RuleKind.SPOOL), processes=(reported(NOW, **spooling | {"spooled_for": 59.0}),))
    assert not so(rule(RuleKind.SPOOL), processes=(reported(NOW),))


def test_of_one_spool_whoever_reported_last_is_believed() -> None:
    spooling = {"role": ProcessRole.WORKER, "spool": "/spool", "spooled_bytes": 70, "spooled_for": 600.0}
    empty = spooling | {"spooled_bytes": 0, "spooled_for": None}
    killed = reported(ago(300), **spooling)

    assert so(rule(RuleKind.SPOOL), processes=(killed,))
    assert not so(rule(RuleKind.SPOOL), processes=(killed, reported(NOW, id="p2", **empty)))
    assert so(rule(RuleKind.SPOOL), processes=(killed, reported(NOW, id="p2", **empty | {"spool": "/other"})))
    assert so(rule(RuleKind.SPOOL), processes=(killed, reported(NOW, id="p2", **empty | {"host": "h2"})))
    collector = reported(NOW, id="p2", host="h1", spool="")
    assert so(rule(RuleKind.SPOOL), processes=(killed, collector)), "collectors have no spool"


def test_a_worker_that_has_just_begun_shortens_no_time_that_letters_lie_in_a_spool() -> None:
    spooling = {"role": ProcessRole.WORKER, "spooled_bytes": 70}
    killed, successor = reported(ago(50), **spooling, spooled_for=20.0), reported(NOW, **spooling, spooled_for=0.0)

    assert so(rule(RuleKind.SPOOL), processes=(killed, successor))
    assert not so(rule(RuleKind.SPOOL), processes=(successor,))


def test_a_spool_that_nobody_uses_any_more_is_told_by_rules_about_any_queue() -> None:
    left = reported(ago(86400), role=ProcessRole.WORKER, queues=(), spooled_bytes=70, spooled_for=20.0)

    assert so(rule(RuleKind.SPOOL, queues=("mails",)), processes=(left,))
    assert not so(rule(RuleKind.WORKER_DOWN), processes=(left,))


def test_a_collector_is_missed_when_it_says_nothing_or_cannot_work() -> None:
    wanted = rule(RuleKind.COLLECTOR_DOWN)

    assert not so(wanted, processes=(reported(ago(120)),))
    (silent,) = so(wanted, processes=(reported(ago(121)),))
    assert (silent.queue, silent.title) == ("orders", "No collector collects queue orders: gone, or held up")
    assert so(wanted, processes=(reported(NOW, unready={"orders": 121.0}),))
    assert not so(wanted, processes=(reported(NOW, unready={"orders": 120.0}),))


def test_nobody_is_missed_whose_queue_another_one_works_on() -> None:
    dead, alive = reported(ago(3000)), reported(NOW, id="p2", queues=("orders", "mails"))

    assert not so(rule(RuleKind.COLLECTOR_DOWN), processes=(dead, alive))
    assert not so(rule(RuleKind.WORKER_DOWN), processes=(dead,))
    assert so(rule(RuleKind.WORKER_DOWN), processes=(reported(ago(3000), role=ProcessRole.WORKER),))


# Keys


def test_a_key_is_what_every_channel_takes_and_no_two_things_share_one() -> None:
    hostile = ["", "orders", "or/ders", "a" * 5000, "line\nbreak", "\ud800", "\ud801", "orders\u0000", "ø"]
    keys = [key_of("pending", each) for each in hostile]

    assert len(set(keys)) == len(keys)
    assert all(len(each) <= 255 and each.isprintable() and each.isascii() for each in keys)
