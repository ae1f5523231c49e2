from __future__ import annotations

from datetime import UTC, datetime, timedelta

from redrive.monitor import judge
from redrive.statistics import Statistics

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def counted(pending: int, *, quarantined: int = 0, oldest: timedelta | None = None) -> Statistics:
    return Statistics(
        total=pending + quarantined,
        by_status={"PENDING": pending, "QUARANTINED": quarantined},
        by_queue={},
        by_type={},
        reasons=(),
        failure_rates=(),
        oldest=None if oldest is None else NOW - oldest,
        older=0,
    )


def test_s0_ten_letters_and_a_threshold_of_five_is_an_alert_that_says_both_numbers() -> None:
    verdict = judge(counted(10, oldest=timedelta(days=2, hours=3)), now=NOW, max_pending=5, max_age=86400)

    assert verdict.alert
    assert verdict.line == "ALERT: 10 pending dead letters (limit 5), oldest 2d3h (limit 1d)"


def test_as_many_as_the_limit_are_not_too_many() -> None:
    verdict = judge(counted(5), now=NOW, max_pending=5)

    assert not verdict.alert
    assert verdict.line == "OK: 5 pending dead letters (limit 5)"


def test_a_limit_of_zero_is_a_limit() -> None:
    assert judge(counted(1), now=NOW, max_pending=0).alert
    assert not judge(counted(0), now=NOW, max_pending=0).alert


def test_one_old_letter_alone_is_an_alert() -> None:
    verdict = judge(counted(1, oldest=timedelta(days=2)), now=NOW, max_age=86400)

    assert verdict.line == "ALERT: 1 pending dead letter, oldest 2d (limit 1d)"


def test_a_quarantined_letter_waits_for_a_person_too() -> None:
    verdict = judge(counted(0, quarantined=1, oldest=timedelta(days=2)), now=NOW, max_pending=0, max_age=86400)

    assert verdict.alert
    assert verdict.line == "ALERT: 0 pending dead letters (limit 0), 1 quarantined, oldest 2d (limit 1d)"


def test_a_letter_from_a_clock_ahead_of_ours_is_not_old() -> None:
    assert not judge(counted(1, oldest=-timedelta(hours=1)), now=NOW, max_age=1).alert


def test_letters_in_quarantine_are_open_and_counted() -> None:
    verdict = judge(counted(0, quarantined=3), now=NOW, max_pending=2)
    assert verdict.alert
