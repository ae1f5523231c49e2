"""What follows from what is so: who is told of what, how often, and when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from redrive.alerts.alert import Alert, Severity, State
from redrive.alerts.incident import Incident, IncidentChange, IncidentStatus, changed, handed_over, is_newest
from redrive.alerts.judging import LOOKED_AT, judge, key_of_many
from redrive.alerts.observed import NewGroups, Observed, ProcessReport, ProcessRole, Reported, Returned
from redrive.alerts.rule import DEFAULTS, AlertRule, RuleKind
from redrive.dead_letter import FailureGroup
from redrive.errors import Refused
from redrive.insights import Return

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = 3600.0
CRITICAL = replace(DEFAULTS[RuleKind.CRITICAL], cooldown=HOUR)


def group(number: int) -> FailureGroup:
    return FailureGroup(
        id=f"g{number:04}",
        title=f"Error {number} of ana@example.org",
        queue="orders",
        handler="charge",
        first_seen=NOW,
        last_seen=NOW,
        total=1,
        pending=1,
        example=None,
    )


class House:
    """A store of incidents, and everybody who is told."""

    def __init__(self, *rules: AlertRule, mask: Any = str) -> None:
        self.rules = rules or (CRITICAL,)
        self.incidents: dict[str, Incident] = {}
        self.told: list[Alert] = []
        self.at = NOW
        self._mask = mask

    def look(self, letters: dict[int, int] | None = None, *, later: float = 15.0) -> list[str]:
        """One round; what was told in it."""
        self.at += timedelta(seconds=later)
        critical = {f"g{number:04}": count for number, count in (letters or {}).items()}
        groups = {f"g{number:04}": group(number) for number in letters or {}}
        observed = Observed(at=self.at, critical=critical, groups=groups)
        before = len(self.told)
        for each in judge(self.rules, observed, list(self.incidents.values()), mask=self._mask):
            if each.message is not None:
                self.told.append(each.message)
            self.incidents[each.key] = handed_over(each)
        return [f"{each.state} {each.dedup_key}" for each in self.told[before:]]

    def change(self, number: int, change: IncidentChange, until: datetime | None = None) -> None:
        key = f"critical/g{number:04}"
        after = changed(self.incidents[key], change, by="ann", now=self.at, until=until)
        if after.message is not None:
            self.told.append(after.message)
        self.incidents[key] = handed_over(after)

    def status(self, number: int) -> IncidentStatus:
        return self.incidents[f"critical/g{number:04}"].status


def test_what_goes_on_is_told_once_and_its_end_once() -> None:
    house = House()

    assert house.look({1: 1}) == ["raised critical/g0001"]
    assert house.look({1: 10_000}) == []
    assert house.incidents["critical/g0001"].counts == {"letters": 10_000}
    assert house.look({}) == ["resolved critical/g0001"]
    assert house.look({}) == []


def test_a_message_says_what_it_is_about_and_has_a_masked_title() -> None:
    house = House(mask=lambda text: text.replace("ana@example.org", "[masked]"))
    house.look({7: 3})
    house.look({})
    raised, resolved = house.told

    assert (raised.rule, raised.severity, raised.queue, raised.group_id) == (
        "critical",
        Severity.CRITICAL,
        "orders",
        "g0007",
    )
    assert (raised.title, raised.counts) == ("Critical failure: Error 7 of [masked]", {"letters": 3})
    assert (resolved.state, resolved.dedup_key, resolved.since) == (State.RESOLVED, raised.dedup_key, raised.since)
    assert resolved.id != raised.id


def test_what_begins_again_within_the_cooldown_is_told_when_that_is_over() -> None:
    house = House()
    house.look({1: 1})
    house.look({})

    assert house.look({1: 1}) == []
    assert house.status(1) is IncidentStatus.FIRING
    assert house.look({}) == []  # nobody heard of its beginning
    assert house.look({1: 1}) == []
    assert house.look({1: 1}, later=HOUR) == ["raised critical/g0001"]


def test_without_a_cooldown_it_is_told_whenever_it_begins_and_a_flood_is_bounded_all_the_same() -> None:
    house = House(DEFAULTS[RuleKind.CRITICAL])
    house.look({1: 1})
    house.look({})
    assert house.look({1: 1}) == ["raised critical/g0001"]

    house.look(dict.fromkeys(range(200), 1))
    before = len(house.told)
    for more in range(201, 221):
        house.look(dict.fromkeys(range(more), 1))
    assert len(house.told) == before


def test_a_clock_that_was_ahead_keeps_nobody_silent() -> None:
    house = House()
    house.look({1: 1}, later=86400 * 30)
    house.look({})

    assert house.look({1: 1}, later=-86400 * 29) == ["raised critical/g0001"]


def test_somebody_is_reminded_until_it_is_acknowledged() -> None:
    house = House(replace(CRITICAL, remind=600.0))
    house.look({1: 1})

    assert house.look({1: 1}, later=599) == []
    assert house.look({1: 2}, later=1) == ["raised critical/g0001"]
    assert house.told[-1].counts == {"letters": 2}
    house.change(1, IncidentChange.ACKNOWLEDGE)
    assert house.look({1: 1}, later=HOUR) == []
    assert house.look({}) == ["resolved critical/g0001"]


def test_what_is_snoozed_is_not_told_also_when_it_begins_anew() -> None:
    house = House()
    house.look({1: 1})
    house.change(1, IncidentChange.SNOOZE, house.at + timedelta(hours=5))

    assert house.look({}) == ["resolved critical/g0001"]
    assert house.look({1: 1}, later=2 * HOUR) == []
    assert house.look({1: 1}, later=2 * HOUR) == []
    assert house.look({1: 1}, later=2 * HOUR) == ["raised critical/g0001"]


def test_what_is_awake_again_is_told() -> None:
    house = House()
    house.look({1: 1})
    house.change(1, IncidentChange.SNOOZE, house.at + timedelta(days=5))
    house.look({})
    house.look({1: 1}, later=60)
    house.change(1, IncidentChange.WAKE)

    assert house.look({1: 1}) == ["raised critical/g0001"]
    assert house.look({1: 1}) == []


def test_what_goes_on_when_its_snooze_is_over_is_told_again_once() -> None:
    house = House()
    house.look({1: 1})
    house.change(1, IncidentChange.SNOOZE, house.at + timedelta(hours=4))

    assert house.look({1: 1}, later=4 * HOUR - 1) == []
    assert house.look({1: 7}, later=1) == ["raised critical/g0001"]
    assert house.told[-1].counts == {"letters": 7}
    assert house.incidents["critical/g0001"].snoozed_until is None
    assert house.look({1: 7}, later=4 * HOUR) == []


def test_what_somebody_sees_to_while_it_is_snoozed_is_not_told_again() -> None:
    house = House()
    house.look({1: 1})
    house.change(1, IncidentChange.SNOOZE, house.at + timedelta(hours=4))
    house.change(1, IncidentChange.ACKNOWLEDGE)

    assert house.look({1: 1}, later=5 * HOUR) == []
    assert house.look({}) == ["resolved critical/g0001"]


def test_a_snooze_that_was_over_before_it_began_anew_shortens_no_cooldown() -> None:
    house = House(replace(CRITICAL, cooldown=2 * HOUR))
    house.look({1: 1})
    house.change(1, IncidentChange.SNOOZE, house.at + timedelta(minutes=10))
    house.look({})

    assert house.look({1: 1}, later=HOUR) == []


def test_what_somebody_resolved_is_told_again_only_after_it_was_over() -> None:
    house = House()
    house.look({1: 1})
    house.change(1, IncidentChange.RESOLVE)

    assert house.told[-1].state is State.RESOLVED
    assert house.look({1: 5}, later=2 * HOUR) == []
    assert house.status(1) is IncidentStatus.RESOLVED
    house.look({})
    assert house.look({1: 5}, later=2 * HOUR) == ["raised critical/g0001"]


@pytest.mark.parametrize("change", [IncidentChange.ACKNOWLEDGE, IncidentChange.RESOLVE])
def test_nothing_is_done_about_what_is_over(change: IncidentChange) -> None:
    house = House()
    house.look({1: 1})
    house.look({})

    with pytest.raises(Refused, match="over"):
        house.change(1, change)


def test_nothing_is_snoozed_until_a_moment_that_is_past() -> None:
    house = House()
    house.look({1: 1})

    with pytest.raises(Refused, match="ahead"):
        house.change(1, IncidentChange.SNOOZE, house.at)


# Floods


def test_many_things_at_once_are_a_few_messages_and_one_that_counts_the_others() -> None:
    house = House()
    told = house.look({number: number + 1 for number in range(200)})

    assert len(told) == 11
    # Those with the most letters are told by themselves.
    assert told[:10] == [f"raised critical/g{number:04}" for number in range(199, 189, -1)]
    many = house.told[-1]
    assert (many.dedup_key, many.counts) == (
        key_of_many("critical"),
        {"failures": 190, "letters": sum(range(1, 191))},
    )
    assert house.look({number: number + 1 for number in range(200)}) == []


def test_the_message_about_many_is_told_again_when_there_are_more_once_in_a_cooldown() -> None:
    house = House()
    house.look(dict.fromkeys(range(200), 1))

    assert house.look(dict.fromkeys(range(300), 1)) == []
    assert house.look(dict.fromkeys(range(300), 1), later=HOUR) == ["raised critical/(many)"]
    assert house.told[-1].counts == {"failures": 290, "letters": 290}
    assert house.look(dict.fromkeys(range(300), 1), later=HOUR) == []


def test_the_message_about_many_is_over_with_the_last_of_them() -> None:
    house = House()
    house.look(dict.fromkeys(range(200), 1))
    alone = {each.dedup_key for each in house.told}
    left = next(number for number in range(200) if f"critical/g{number:04}" not in alone)

    resolved = house.look({left: 1})
    assert len(resolved) == 10
    assert "resolved critical/(many)" not in resolved
    assert house.look({}) == ["resolved critical/(many)"]


def test_places_are_free_again_after_the_cooldown() -> None:
    house = House()
    house.look(dict.fromkeys(range(10), 1))

    assert house.look(dict.fromkeys(range(12), 1)) == ["raised critical/(many)"]
    assert house.look(dict.fromkeys(range(14), 1), later=HOUR) == [
        "raised critical/g0012",
        "raised critical/g0013",
    ]


def test_a_flood_of_names_fills_neither_the_store_nor_anybody_s_phone() -> None:
    house = House()
    told = house.look(dict.fromkeys(range(5000), 1))

    assert len(told) == 11
    assert len(house.incidents) == LOOKED_AT + 1
    house.look(dict.fromkeys(range(5000), 1))
    assert len(house.incidents) == LOOKED_AT + 1  # those that are known stay the ones that are looked at


def test_reminders_take_no_places_of_those_that_begin() -> None:
    house = House(replace(CRITICAL, cooldown=HOUR, remind=600.0))
    house.look(dict.fromkeys(range(10), 1))
    for _ in range(6):
        house.look(dict.fromkeys(range(10), 1), later=600)

    told = house.look(dict.fromkeys(range(12), 1), later=10)
    assert told == ["raised critical/g0010", "raised critical/g0011"]


def test_whoever_was_told_by_itself_is_reminded_by_itself_and_told_of_the_end() -> None:
    house = House(replace(CRITICAL, remind=1800.0))
    first = house.look(dict.fromkeys(range(6), 1))
    assert len(first) == 6

    assert sorted(house.look(dict.fromkeys(range(6), 1), later=1800)) == sorted(first)
    assert len(house.look({})) == 6


def test_of_those_that_take_the_place_of_others_in_the_message_about_many_somebody_is_told() -> None:
    house = House()
    house.look(dict.fromkeys(range(200), 1))
    many = [each.key for each in house.incidents.values() if each.told_as]
    left = {int(key[-4:]): 1 for key in many[:5]}
    house.look(left)

    told = house.look({**left, **dict.fromkeys(range(300, 400), 1)}, later=HOUR)
    assert "raised critical/(many)" in told
    assert len(told) == 11


@pytest.mark.parametrize("change", [IncidentChange.ACKNOWLEDGE, IncidentChange.RESOLVE])
def test_what_somebody_said_about_many_holds_for_those_of_then(change: IncidentChange) -> None:
    house = House()
    house.look(dict.fromkeys(range(200), 1))
    key = key_of_many("critical")
    house.incidents[key] = handed_over(changed(house.incidents[key], change, by="ann", now=house.at, until=None))

    assert house.look(dict.fromkeys(range(200), 1), later=HOUR) == []
    told = house.look(dict.fromkeys(range(300), 1), later=HOUR)
    assert "raised critical/(many)" in told


def test_what_has_no_place_any_more_is_counted_with_the_many() -> None:
    house = House()
    house.look(dict.fromkeys(range(LOOKED_AT), 1))

    assert house.look(dict.fromkeys(range(LOOKED_AT + 5), 1), later=86400) == ["raised critical/(many)"]
    assert house.told[-1].counts == {"failures": LOOKED_AT - 10 + 5, "letters": LOOKED_AT - 10 + 5}


# Failures that are new and those that are back


def groups_of(*ids: str, returned: Mapping[str, Returned] | None = None, **given: Any) -> Observed:
    open_ones = {each: replace(group(0), id=each, by_status={"PENDING": 1}) for each in (*ids, *(returned or ()))}
    return Observed(groups=open_ones, returned={HOUR: returned or {}}, **given)


NEW = DEFAULTS[RuleKind.NEW_GROUP]


def test_new_failures_that_were_not_looked_at_one_by_one_are_counted_with_the_many() -> None:
    ids = tuple(f"n{number}" for number in range(20))
    new = {HOUR: NewGroups(ids, {"orders": 700, "mails": 5})}
    found = judge([replace(NEW, queues=("orders",))], groups_of(*ids, at=NOW, new=new), [])

    (many,) = [each for each in found if each.key == key_of_many("new_group")]
    assert many.counts["failures"] == 10 + 700
    # Those that were told before are not counted twice, though newer ones have taken their place.
    others = tuple(f"m{number}" for number in range(20))
    later = {HOUR: NewGroups(others, {"orders": 720})}
    again = judge(
        [replace(NEW, queues=("orders",))],
        groups_of(*ids, *others, at=NOW + timedelta(hours=1), new=later),
        [handed_over(each) for each in found],
    )
    (many,) = [each for each in again if each.key == key_of_many("new_group")]
    assert many.counts["failures"] == 10 + 10 + 700


def test_a_failure_that_a_person_had_settled_is_told_as_back_at_once_and_never_as_new_again() -> None:
    rules = [NEW, DEFAULTS[RuleKind.RETURNING_GROUP]]
    kept: dict[str, Incident] = {}

    def look(minutes: float, observed: Observed) -> list[str]:
        found = judge(rules, replace(observed, at=NOW + timedelta(minutes=minutes)), list(kept.values()))
        kept.update({each.key: handed_over(each) for each in found})
        return [f"{each.message.state} {each.rule}" for each in found if each.message is not None]

    new = {HOUR: NewGroups(("g",))}
    settled, back = groups_of(at=NOW), {"g": Returned(Return.SETTLED, by_hand=True)}
    assert look(5, groups_of("g", at=NOW, new=new)) == ["raised new_group"]
    assert look(20, settled) == ["resolved new_group"]
    assert look(22, groups_of("g", at=NOW, new=new, returned=back)) == ["raised returning_group"]
    assert look(23, settled) == ["resolved returning_group"]
    assert look(24, groups_of("g", at=NOW, new=new, returned=back)) == ["raised returning_group"]
    for minutes in (30, 90):  # some of it was settled: it goes on, and is not new
        assert look(minutes, groups_of("g", at=NOW, new=new)) == []


def test_a_failure_that_redrives_had_settled_is_told_as_back_once_in_a_cooldown() -> None:
    """Else an automatic rule that sends back what fails now and then would tell of it every minute."""
    rules, back = [DEFAULTS[RuleKind.RETURNING_GROUP]], {"g": Returned(Return.SETTLED)}
    first = judge(rules, groups_of(at=NOW, returned=back), [])
    over = judge(rules, groups_of(at=NOW + timedelta(minutes=1)), [handed_over(each) for each in first])
    again = judge(
        rules, groups_of(at=NOW + timedelta(minutes=2), returned=back), [handed_over(each) for each in over]
    )

    assert [each.message is not None for each in (*first, *over, *again)] == [True, True, False]


def test_an_end_that_could_not_be_told_comes_before_the_next_beginning() -> None:
    house = House()
    house.look({1: 1})
    key = "critical/g0001"
    (over,) = judge(house.rules, Observed(at=house.at), list(house.incidents.values()))
    house.incidents[key] = over  # its message was not handed over

    assert house.look({1: 1}, later=2 * HOUR) == []
    assert house.incidents[key].message == over.message
    house.incidents[key] = handed_over(over)
    assert house.look({1: 1}) == ["raised critical/g0001"]


def test_of_processes_nothing_is_judged_by_somebody_who_has_just_begun_to_look() -> None:
    missing = DEFAULTS[RuleKind.WORKER_DOWN]
    report = ProcessReport(id="p1", role=ProcessRole.WORKER, host="h1", pid=1, queues=("orders",))
    gone = (Reported(report, NOW - timedelta(minutes=5)),)

    assert judge([missing], Observed(at=NOW, processes=gone, steady=False), []) == []
    (down,) = judge([missing], Observed(at=NOW, processes=gone), [])
    assert judge([missing], Observed(at=NOW, steady=False), [down]) == []  # nor is it over


# Rules that come and go


def test_what_no_rule_asks_about_any_more_is_over() -> None:
    house = House()
    house.look({1: 1})
    house.rules = (DEFAULTS[RuleKind.AGE],)

    assert house.look({1: 1}) == ["resolved critical/g0001"]


def test_whoever_was_told_of_a_beginning_is_told_of_its_end_whatever_becomes_of_the_rule() -> None:
    house = House(replace(CRITICAL, channels=("night",)))
    house.look({1: 1})
    house.rules = (DEFAULTS[RuleKind.AGE],)
    house.look({1: 1})

    over = house.incidents["critical/g0001"]
    assert (over.status, over.channels) == (IncidentStatus.RESOLVED, ("night",))


def test_a_message_names_its_incident_and_the_incident_its_last_message() -> None:
    house = House()
    for letters in ({1: 1}, {}):
        house.look(letters)
        incident, message = house.incidents["critical/g0001"], house.told[-1]
        assert (message.incident_id, message.own_path) == (incident.id, f"/alerts/{incident.id}")
        assert is_newest(message, incident)
    assert not is_newest(house.told[0], incident)
    assert not is_newest(house.told[0], None)
    assert is_newest(house.told[0], replace(incident, last_message=""))  # an older version made it


def test_two_rules_of_one_kind_tell_each_by_itself() -> None:
    house = House(CRITICAL, replace(CRITICAL, name="for-payments", severity=Severity.INFO))

    assert house.look({1: 1}) == ["raised critical/g0001", "raised for-payments/g0001"]
