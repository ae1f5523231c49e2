"""How long settled letters are kept: what settings say, as rules, and rules at one moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.dead_letter import Status
from redrive.keeping import Keep, KeepRules
from redrive.loaded_wiring import loaded_of
from redrive.retention_wiring import keep_rules
from redrive.run_policy import RunPolicy
from redrive.settings import Settings

DAY = 86400.0
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def rules(general: dict[str, Any], queue: dict[str, Any] | None = None) -> KeepRules:
    given = {"retention": general, "queues": {"orders": {"retention": queue or {}}}}
    return keep_rules(Settings.model_validate(given))


def test_without_a_word_all_are_kept_for_ninety_days() -> None:
    """S1's."""
    assert rules({}) == KeepRules(Keep(90 * DAY, 90 * DAY))


@pytest.mark.parametrize(
    ("general", "queue", "expected"),
    [
        ({"keep": "10d"}, {}, Keep(10 * DAY, 10 * DAY)),
        ({"keep": "10d", "keep_discarded": "5d"}, {}, Keep(10 * DAY, 5 * DAY)),
        ({"keep_discarded": "0s"}, {}, Keep(90 * DAY, 0)),
        ({"keep": "10d", "keep_discarded": "5d"}, {"keep": "20d"}, Keep(20 * DAY, 20 * DAY)),
        ({"keep": "10d", "keep_discarded": "5d"}, {"keep_discarded": "1d"}, Keep(10 * DAY, 1 * DAY)),
        ({"keep": "10d"}, {"keep": "20d", "keep_discarded": "1d"}, Keep(20 * DAY, 1 * DAY)),
        ({"keep": "10d"}, {"keep": "0s"}, Keep(0, 0)),
        ({"keep": "10d"}, {"keep": "none"}, Keep(10 * DAY, 10 * DAY)),
    ],
)
def test_the_queue_s_own_word_counts_before_the_general_one(
    general: dict[str, Any], queue: dict[str, Any], expected: Keep
) -> None:
    found = rules(general, queue)

    assert [found.of("orders", each) for each in (Status.RESOLVED, Status.DISCARDED)] == [
        expected.resolved,
        expected.discarded,
    ]


def test_what_is_shown_of_the_settings_is_what_holds() -> None:
    given = {
        "retention": {"keep": "10d", "every": "1d"},
        "queues": {"mail": {"retention": {"keep_discarded": "5d"}}},
    }

    found = loaded_of(Settings.model_validate(given), RunPolicy())

    general, mail = found.retention, found.queues["mail"]
    assert (general.keep, general.keep_discarded, general.every) == (10 * DAY, 10 * DAY, DAY)
    assert (mail.keep, mail.keep_discarded) == (10 * DAY, 5 * DAY)


def test_the_shortest_and_the_latest_are_of_all_rules_together() -> None:
    found = KeepRules(Keep(9.0, 8.0), {"orders": Keep(7.0, 3.0), "mail": Keep(20.0, 30.0)})

    assert found.shortest == 3.0
    assert found.limits(NOON).latest == NOON - timedelta(seconds=3)
    assert found.limits(NOON).of("orders", Status.DISCARDED) == NOON - timedelta(seconds=3)
    assert found.limits(NOON).of("other", Status.DISCARDED) == NOON - timedelta(seconds=8)


def test_longer_than_there_was_time_is_for_ever() -> None:
    limits = KeepRules.alike(1e15).limits(NOON)

    assert limits.latest == datetime.min.replace(tzinfo=UTC)
