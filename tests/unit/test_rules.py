"""What an automatic rule does next: windows, waits, limits, and what people and brakes have decided."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from redrive.assuming import Silence
from redrive.automatic_wiring import rules_of, silence_of
from redrive.configuration import inspect, load
from redrive.dead_letter import MAX_GENERATIONS
from redrive.rules import AutomaticRule, Change, LastRun, Make, Window, judge
from redrive.run import Approval, Run, RunChange, RunStatus
from redrive.search import unparse
from redrive.settings import RuleSettings, Settings

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "automatic-retries.md"


def at(hour: int, minute: int = 0, *, day: int = 1, month: int = 7) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def a_rule(**given: Any) -> AutomaticRule:
    return AutomaticRule(**{"name": "technical", "when": "kind:transient", **given})


def a_last(status: RunStatus, *, by: str = "engine", ended: datetime | None = None, **given: Any) -> LastRun:
    plan = given.pop("plan", None) or a_rule().plan(NOON - timedelta(hours=1))
    run = Run(
        id="r",
        plan=plan,
        status=status,
        requested_by="rule technical",
        created_at=NOON - timedelta(hours=1),
        changed_at=ended or NOON,
        ended_at=ended,
        total=1,
        **given,
    )
    return LastRun(run, by)


NIGHT = Window(opens=time(2), closes=time(5))
OVER_MIDNIGHT = Window(opens=time(22), closes=time(4))
CLOSED_AT_NOON = a_rule(window=NIGHT)


# Windows


@pytest.mark.parametrize(
    ("window", "now", "is_open"),
    [
        (NIGHT, at(1, 59), False),
        (NIGHT, at(2), True),
        (NIGHT, at(4, 59), True),
        (NIGHT, at(5), False),
        (OVER_MIDNIGHT, at(21, 59), False),
        (OVER_MIDNIGHT, at(22), True),
        (OVER_MIDNIGHT, at(0), True),
        (OVER_MIDNIGHT, at(3, 59), True),
        (OVER_MIDNIGHT, at(4), False),
        (Window(opens=time(2), closes=time(5), zone=BERLIN), at(0), True),
        (Window(opens=time(2), closes=time(5), zone=BERLIN), at(3), False),
        (Window(opens=time(2), closes=time(5), zone=BERLIN), at(3, month=1), True),
    ],
)
def test_a_window_is_open_from_its_first_minute_to_its_last_in_its_zone(
    window: Window, now: datetime, *, is_open: bool
) -> None:
    assert window.is_open(now) is is_open


@pytest.mark.parametrize(
    ("window", "now", "hours"),
    [
        (NIGHT, at(1), 1),
        (NIGHT, at(2), 3),
        (NIGHT, at(5), 21),
        (OVER_MIDNIGHT, at(23), 5),
        (OVER_MIDNIGHT, at(4), 18),
    ],
)
def test_the_next_edge_is_when_it_opens_or_closes(window: Window, now: datetime, hours: float) -> None:
    assert window.until_edge(now) == hours * 3600


def test_the_edge_is_found_where_the_clocks_are_put_forward_over_it() -> None:
    window = Window(opens=time(2, 15), closes=time(2, 45), zone=BERLIN)
    assert window.until_edge(datetime(2026, 3, 29, 0, 59, tzinfo=UTC)) > 0


# Letters


def test_a_rule_takes_what_it_names_what_has_waited_and_has_lives_left() -> None:
    plan = a_rule(when="kind:transient age:>1h", wait=600.0, at_most=2, rate=5.0).plan(NOON)
    assert unparse(plan.selection.where) == (
        "kind:transient created:<2026-07-01T11:00:00+00:00 generation:<=2 changed:<=2026-07-01T11:50:00+00:00"
    )
    assert (plan.rule, plan.rate) == ("technical", 5.0)


def test_no_rule_goes_beyond_the_lives_of_a_letter() -> None:
    assert f"generation:<={MAX_GENERATIONS} " in unparse(a_rule(at_most=99).plan(NOON).selection.where)


def test_groups_that_are_left_to_people_are_left_out() -> None:
    where = a_rule().plan(NOON, without_groups=["b" * 32, "a" * 32]).selection.where
    assert f"-group:{'a' * 32}*,{'b' * 32}*" in unparse(where)


@pytest.mark.parametrize(
    ("when", "queue"),
    [("queue:orders", "orders"), ("queue:a,b", None), ("-queue:orders", None), ("queue:ord*", None), ("x", None)],
)
def test_a_rule_for_one_queue_knows_whose_backlog_counts(when: str, queue: str | None) -> None:
    assert a_rule(when=when).plan(NOON).selection.queue == queue


# What comes next


def test_a_rule_without_a_run_makes_one_while_its_window_is_open() -> None:
    assert judge(a_rule(), None, NOON) == Make()
    assert judge(CLOSED_AT_NOON, None, NOON) is None
    assert judge(CLOSED_AT_NOON, None, at(3)) == Make()


def test_a_run_that_is_done_is_followed_by_the_next_one() -> None:
    assert judge(a_rule(), a_last(RunStatus.DONE, ended=NOON), NOON) == Make()


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.AWAITING_APPROVAL])
def test_a_run_that_has_not_ended_is_the_only_one(status: RunStatus) -> None:
    assert judge(a_rule(), a_last(status), NOON) is None


@pytest.mark.parametrize("status", [RunStatus.STOPPED, RunStatus.FAILED])
def test_after_a_run_that_was_stopped_the_letters_wait_once_more(status: RunStatus) -> None:
    last = a_last(status, ended=NOON)
    assert judge(a_rule(wait=600.0), last, NOON + timedelta(seconds=599)) is None
    assert judge(a_rule(wait=600.0), last, NOON + timedelta(seconds=600)) == Make()


def test_letters_of_a_run_that_a_person_cancelled_are_left_to_people_for_good() -> None:
    cancelled = a_last(RunStatus.CANCELLED, by="ann", ended=NOON)
    assert judge(a_rule(), cancelled, NOON) == Make(NOON)
    following = a_last(RunStatus.DONE, ended=at(13), plan=a_rule().plan(at(13), since=NOON))
    assert judge(a_rule(), following, at(14)) == Make(NOON)
    again = a_last(RunStatus.CANCELLED, by="ann", ended=at(14), plan=following.run.plan)
    assert judge(a_rule(), again, at(15)) == Make(at(14))


def test_a_filter_of_the_rules_own_about_changes_is_not_taken_for_a_cancellation() -> None:
    done = a_last(RunStatus.DONE, ended=NOON, plan=a_rule(when="changed:>2d").plan(NOON))
    assert judge(a_rule(), done, NOON) == Make(None)


def test_the_closing_window_pauses_the_run_and_the_opening_one_resumes_it() -> None:
    closing = judge(CLOSED_AT_NOON, a_last(RunStatus.RUNNING), NOON)
    assert isinstance(closing, Change)
    assert (closing.change, closing.why) == (RunChange.PAUSE, "outside of its window 02:00-05:00 UTC")
    paused = a_last(RunStatus.PAUSED, by="rule technical")
    assert judge(CLOSED_AT_NOON, paused, NOON) is None
    opening = judge(CLOSED_AT_NOON, paused, at(2))
    assert isinstance(opening, Change)
    assert opening.change is RunChange.RESUME


@pytest.mark.parametrize("who", ["ann", "engine host 1", "rule technical (said by root)", "rule other"])
def test_what_a_person_or_a_brake_paused_the_window_does_not_resume(who: str) -> None:
    assert judge(CLOSED_AT_NOON, a_last(RunStatus.PAUSED, by=who), at(3)) is None


def test_a_run_that_nobody_approved_in_time_makes_room_for_the_next_one() -> None:
    approval = Approval(digest="d", expires_at=NOON)
    waiting = a_last(RunStatus.AWAITING_APPROVAL, approval=approval)
    assert judge(a_rule(), waiting, NOON) is None
    late = judge(a_rule(), waiting, NOON + timedelta(seconds=1))
    assert isinstance(late, Change)
    assert late.change is RunChange.CANCEL
    assert judge(a_rule(), a_last(RunStatus.CANCELLED, by="rule technical", ended=NOON), NOON) == Make(None)


# Settings


def test_every_example_of_the_documentation_is_a_setting() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    every = [Settings.model_validate(tomllib.loads(block)) for block in blocks]
    assert [rule.name for settings in every for rule in rules_of(settings)] == ["technical", "nightly"]
    assert [silence_of(settings).of("partner") for settings in every] == [None, 2 * 86400.0]


def test_the_documentation_names_every_key_of_a_rule() -> None:
    told = DOCUMENTATION.read_text()
    assert [key for key in RuleSettings.model_fields if f"`{key}`" not in told] == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "redrive.toml"


def test_a_rule_in_the_settings_has_its_own_values_over_those_of_all_runs(file: Path) -> None:
    file.write_text(
        '[runs]\nrate = 9\ncanary = [1, 5]\n[rules.night]\nwhen = "kind:transient"\nwait = "1h"\nat_most = 2\n'
        'rate = 3\nwindow = "22:00-04:30"\ntime_zone = "Europe/Berlin"\n[rules.off]\nwhen = "x"\nenabled = false\n'
    )
    [rule] = rules_of(load(config=file, environ={}).settings)
    assert (rule.name, rule.when, rule.wait, rule.at_most, rule.rate) == ("night", "kind:transient", 3600, 2, 3)
    assert rule.canary.steps == (1, 5)
    assert rule.window == Window(opens=time(22), closes=time(4, 30), zone=BERLIN)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[rules.a]\nwhen = "quue:orders"', 2, "rules.a.when: filter, column 1: unknown field"),
        ('[rules.a]\nwait = "1h"', 1, "rules.a should say `when`"),
        ("[rules.a]\nwhen = 3", 2, "rules.a.when should be a filter"),
        ('[rules.a]\nwhen = "x"\nwindow = "2-5"', 3, "rules.a.window should be two different times"),
        ('[rules.a]\nwhen = "x"\nwindow = "02:00-02:00"', 3, "rules.a.window should be two different times"),
        ('[rules.a]\nwhen = "x"\ntime_zone = "Moon"', 3, "rules.a.time_zone should be a time zone"),
        ('[rules.a]\nwhen = "x"\nat_most = 4', 3, "rules.a.at_most should be less than or equal to 3"),
        ('[rules.a]\nwhen = "x"\nwiat = "1h"', 3, "unknown setting 'rules.a.wiat'"),
        ('[rules."a b"]\nwhen = "x"', 1, "rules.a b: a rule's name should be"),
        ('[dead_letters]\nassume_after = "0s"', 2, "dead_letters.assume_after should be greater than 0"),
    ],
)
def test_a_wrong_rule_is_told_with_its_place_and_a_remedy(file: Path, text: str, line: int, said: str) -> None:
    file.write_text(text)
    [problem] = inspect(config=file, environ={}).problems
    assert str(problem).startswith(f"{file}, line {line}: {said}")
    assert problem.remedy


def test_silence_is_chosen_for_all_queues_and_for_one(file: Path) -> None:
    file.write_text(
        '[dead_letters]\nassume_after = "2d"\n[queues.a.dead_letters]\nassume_after = "1h"\n'
        '[queues.b.dead_letters]\nassume_after = "none"\n'
    )
    silence = silence_of(load(config=file, environ={}).settings)
    assert [silence.of(each) for each in "abc"] == [3600.0, None, 2 * 86400.0]
    assert silence.shortest == 3600.0
    assert Silence().shortest is None
