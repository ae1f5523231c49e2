"""A flood of one cause is one alert: numbers are told only of letters that no alert about a cause tells of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from redrive.alerts.alert import Severity
from redrive.alerts.incident import Incident, IncidentChange, changed, handed_over
from redrive.alerts.judging import judge
from redrive.alerts.observed import MOST_RECENT, NewGroups, Observed, Sample
from redrive.alerts.rule import DEFAULTS, AlertRule, RuleKind
from redrive.dead_letter import FailureGroup

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NEW, RATE, GROWTH, PENDING = (DEFAULTS[RuleKind(each)] for each in ("new_group", "rate", "growth", "pending"))
CRITICAL = DEFAULTS[RuleKind.CRITICAL]


def group(name: str, pending: int, queue: str = "orders") -> FailureGroup:
    return FailureGroup(
        id=name,
        title="TimeoutError",
        queue=queue,
        handler="charge",
        first_seen=NOW,
        last_seen=NOW,
        total=pending,
        pending=pending,
        by_status={"PENDING": pending},
        example=None,
    )


def flood(letters: int, *, others: int = 0, **given: Any) -> Observed:
    """So many of the cause `g`, and of causes that were known before, all of the last minutes."""
    number = letters + others
    samples = (
        Sample(at=NOW - timedelta(hours=2), pending={}, received={}, attempts=()),
        Sample(at=NOW - timedelta(seconds=301), pending={"orders": number}, received={}, attempts=()),
        Sample(at=NOW, pending={"orders": number}, received={"orders": number}, attempts=()),
    )
    recent = {"g": letters, "known": others}
    return Observed(
        at=NOW,
        samples=samples,
        lately={rule.window: recent for rule in (RATE, GROWTH, PENDING)},
        groups={"g": group("g", letters)} if letters else {},
        new={NEW.window: NewGroups(("g",))},
        **given,
    )


class House:
    def __init__(self, *rules: AlertRule) -> None:
        self.rules = rules
        self.kept: dict[str, Incident] = {}

    def look(self, observed: Observed) -> list[str]:
        found = judge(self.rules, observed, list(self.kept.values()))
        self.kept.update({each.key: handed_over(each) for each in found})
        told = [each.message for each in found if each.message is not None]
        return sorted(f"{each.severity} {each.state} {each.rule}" for each in told)


def test_a_flood_of_one_cause_is_one_message_by_all_the_usual_rules() -> None:
    house = House(*DEFAULTS.values())

    assert house.look(flood(10_000)) == ["error raised new_group"]
    assert house.look(flood(20_000)) == []


def test_an_alert_about_a_cause_that_becomes_worse_is_told_once_more_and_stays_so_until_its_end() -> None:
    house = House(NEW, RATE)
    assert house.look(flood(3)) == ["warning raised new_group"]
    assert house.look(flood(10_000)) == ["error raised new_group"]
    assert house.look(flood(20_000)) == []
    assert house.look(flood(0)) == ["error resolved new_group"]


def test_what_numbers_say_of_other_causes_is_told() -> None:
    assert house_told(flood(10_000, others=101), NEW, GROWTH) == [
        "warning raised growth",
        "warning raised new_group",
    ]
    assert house_told(flood(10_000, others=100), NEW, GROWTH) == ["warning raised new_group"]
    assert house_told(flood(10_000, others=1001), NEW, PENDING) == [
        "warning raised new_group",
        "warning raised pending",
    ]
    assert house_told(flood(10_000, others=1000), NEW, PENDING) == ["warning raised new_group"]


def house_told(observed: Observed, *rules: AlertRule) -> list[str]:
    return House(*rules).look(observed)


def test_whoever_hears_of_the_number_and_not_of_the_cause_is_told_of_the_number() -> None:
    elsewhere, both = replace(NEW, channels=("chat",)), replace(NEW, channels=("chat", "night"))
    night = replace(GROWTH, channels=("night",))

    assert "warning raised growth" in house_told(flood(10_000), elsewhere, GROWTH)
    assert "warning raised growth" in house_told(flood(10_000), elsewhere, night)
    assert "warning raised growth" not in house_told(flood(10_000), both, night)
    assert "warning raised growth" in house_told(flood(10_000), replace(NEW, queues=("mails",)), GROWTH)


def test_a_number_that_was_told_before_the_cause_is_over_by_itself_alone() -> None:
    house = House(GROWTH)
    house.look(flood(10_000))
    house.rules = (NEW, GROWTH)

    assert house.look(flood(10_000)) == ["warning raised new_group"]
    assert house.kept["growth"].is_firing


def test_a_rate_is_not_told_of_a_cause_that_is_over_since_a_moment() -> None:
    house = House(replace(NEW, severity=Severity.ERROR), RATE)
    house.look(flood(10_000))
    assert house.look(replace(flood(10_000), groups={}, new={})) == ["error resolved new_group"]


@pytest.mark.parametrize("told", [True, False])
def test_of_a_cause_that_is_snoozed_no_number_is_told_either(told: bool) -> None:  # noqa: FBT001  a case
    house = House(NEW, RATE)
    house.look(flood(3))
    until = NOW + timedelta(hours=1)
    snoozed = changed(house.kept["new_group/g"], IncidentChange.SNOOZE, by="ann", now=NOW, until=until)
    house.kept["new_group/g"] = replace(snoozed, told=told)

    assert house.look(flood(10_000)) == []
    assert house.look(replace(flood(10_000), at=until)) == ["error raised new_group"]


def test_what_a_person_said_to_be_over_though_it_is_not_is_told_by_its_numbers() -> None:
    house = House(NEW, GROWTH)
    house.look(flood(3))
    over = changed(house.kept["new_group/g"], IncidentChange.RESOLVE, by="ann", now=NOW, until=None)
    house.kept["new_group/g"] = handed_over(over)

    assert house.look(flood(10_000)) == ["warning raised growth"]


def test_of_more_letters_than_are_counted_by_cause_the_newest_stand_for_all() -> None:
    huge = flood(10 * MOST_RECENT)
    newest = {rule.window: {"g": MOST_RECENT - 1, "known": 1} for rule in (RATE, GROWTH)}

    assert house_told(replace(huge, lately=newest), NEW, GROWTH) == ["warning raised new_group"]
    few = {window: {"g": MOST_RECENT // 2} for window in newest}
    assert "warning raised growth" in house_told(replace(huge, lately=few), NEW, GROWTH)


def test_a_failure_that_was_told_as_critical_is_not_told_as_new_too() -> None:
    house = House(NEW, CRITICAL)
    assert house.look(flood(3, critical={"g": 3})) == ["critical raised critical"]
    assert house.look(flood(4, critical={"g": 4})) == []
    house.kept["critical/g"] = handed_over(
        changed(house.kept["critical/g"], IncidentChange.RESOLVE, by="ann", now=NOW, until=None)
    )
    assert house.look(flood(4, critical={"g": 4})) == []  # somebody has said that it is over


def test_whoever_does_not_hear_of_critical_failures_is_told_of_a_new_one() -> None:
    night = replace(CRITICAL, channels=("night",))

    assert "warning raised new_group" in house_told(flood(3, critical={"g": 3}), NEW, night)
    assert house_told(flood(3), NEW, CRITICAL) == ["warning raised new_group"]


def test_a_new_failure_that_becomes_critical_stays_until_it_is_over() -> None:
    house = House(NEW, CRITICAL)
    assert house.look(flood(3)) == ["warning raised new_group"]
    assert house.look(flood(4, critical={"g": 1})) == ["critical raised critical"]
    assert house.look(flood(0)) == ["critical resolved critical", "warning resolved new_group"]
