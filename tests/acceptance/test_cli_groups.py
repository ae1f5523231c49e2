"""Groups and analyses on the command line: `groups show|set|merge|split`, `stats pending|errors|rate|...`."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from redrive.cli.sparkline import sparkline
from support.dead_letters import dead, foreign
from support.desk import Desk
from support.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\n\u202efake \x9b31m"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def groups(desk: Desk, *filters: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(desk.redrive("groups", "--output", "json", *filters).out)
    return found


def group_of(desk: Desk, error: Exception, number: int = 1, **options: Any) -> str:
    """The id of the group of these new letters."""
    ids = desk.record(*(dead(error=error, **options) for _ in range(number)))
    return desk.letter(ids[0]).group_id


def test_a_sparkline_tells_nothing_from_little_and_much() -> None:
    assert sparkline([0, 1, 4, 8, 7]) == "·▁▄█▇"
    assert sparkline([0, 0]) == "··"
    assert sparkline([1]) == "█"
    assert sparkline([1, 10**9]) == "▁█"
    assert sparkline([]) == ""


def test_what_is_said_about_a_group_is_listed_shown_and_filtered_by(desk: Desk) -> None:
    owned, other = group_of(desk, ValueError("a")), group_of(desk, TimeoutError("b"))

    done = desk.redrive("groups", "set", owned[:12], "--owner", "ann", "--verdict", "requires-fix", "--note", "x")

    assert (done.code, done.out) == (0, f"Set owner, verdict, note of group {owned}.\n")
    assert {each["id"]: each["verdict"] for each in groups(desk)} == {owned: "requires fix", other: None}
    assert [each["id"] for each in groups(desk, "--owner", "ann")] == [owned]
    assert [each["id"] for each in groups(desk, "--verdict", "Requires fix")] == [owned]
    assert desk.redrive("groups", "--owner", "bob").code == 3
    table = desk.redrive("groups").out.splitlines()
    assert "ann    requires fix  ValueError: a" in next(line for line in table if owned[:12] in line)


def test_an_empty_text_takes_away_and_what_is_not_given_stays(desk: Desk) -> None:
    group = group_of(desk, ValueError("a"))
    desk.redrive("groups", "set", group, "--owner", "ann", "--verdict", "investigate", "--runbook", "wiki/17")

    desk.redrive("groups", "set", group, "--owner", "", "--verdict", "", "--reason", "it was the disk")

    [told] = groups(desk)
    assert (told["owner"], told["verdict"], told["runbook"]) == (None, None, "wiki/17")
    whole = json.loads(desk.redrive("groups", "show", group, "--output", "json").out)
    assert [line["what"] for line in whole["history"]] == ["owner", "verdict", "runbook", "owner", "verdict"]
    assert whole["history"][-1]["reason"] == "it was the disk"


def test_nothing_to_set_and_a_verdict_that_is_none_are_usage_errors(desk: Desk) -> None:
    group = group_of(desk, ValueError("a"))

    nothing = desk.redrive("groups", "set", group)
    wrong = desk.redrive("groups", "set", group, "--verdict", "maybe")

    assert (nothing.code, wrong.code) == (2, 2)
    assert "--owner, --verdict, --note or --runbook" in nothing.err
    assert "replayable, requires-fix, do-not-replay, investigate" in wrong.err


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(desk: Desk) -> None:
    one, other = group_of(desk, ValueError("a")), group_of(desk, TimeoutError("b"), 2)
    before = groups(desk)

    said = desk.redrive("groups", "set", one, "--owner", "ann", "--dry-run")
    merged = desk.redrive("groups", "merge", one, other, "--dry-run")
    split = desk.redrive("groups", "split", one, other, "--dry-run")

    assert said.out == f"Would set owner of group {one}. Nothing was changed.\n"
    assert merged.out == f"Would merge 1 group with 2 letters into {one}. Nothing was changed.\n"
    assert (said.code, merged.code, split.code) == (0, 0, 5)
    assert groups(desk) == before


def test_groups_are_merged_and_split_with_a_reason_that_the_history_keeps(desk: Desk) -> None:
    one, other = group_of(desk, ValueError("a")), group_of(desk, TimeoutError("b"), 2)

    merged = desk.redrive("groups", "merge", one[:10], other[:10], "--reason", "same cause", "--yes")
    assert (merged.code, merged.out) == (0, f"Merged: group {one} has 3 letters.\n")
    assert [(each["id"], each["total"], each["merged"]) for each in groups(desk)] == [(one, 3, [other])]
    page = desk.redrive("groups", "show", other).out
    assert f"merged        {other}" in page
    assert f"took in  {other}" in page
    assert "same cause" in page

    split = desk.redrive("groups", "split", one, other[:10], "--reason", "not so", "--yes")
    assert (split.code, split.out) == (0, f"Split: group {other} has 2 letters.\n")
    assert {each["id"]: each["total"] for each in groups(desk)} == {one: 1, other: 2}


def test_a_merge_needs_a_reason_and_somebody_who_agrees(desk: Desk) -> None:
    one, other = group_of(desk, ValueError("a")), group_of(desk, TimeoutError("b"))

    silent = desk.redrive("groups", "merge", one, other, "--yes")
    unasked = desk.redrive("groups", "merge", one, other, "--reason", "same cause")
    itself = desk.redrive("groups", "merge", one, one, "--reason", "same cause", "--yes")
    unknown = desk.redrive("groups", "merge", one, "abcdef", "--reason", "same cause", "--yes")

    assert [each.code for each in (silent, unasked, itself, unknown)] == [2, 5, 5, 3]
    assert "Merge 1 group with 1 letter" in unasked.err
    assert len(groups(desk)) == 2


def test_a_group_is_shown_with_numbers_trend_example_and_what_was_said(desk: Desk) -> None:
    group = group_of(desk, ValueError("order 17 has no customer"), 3)
    [old] = desk.record(dead(error=ValueError("order 18 has no customer"), age=timedelta(hours=3)))
    desk.redrive("resolve", old, "--reason", "done", "--yes")
    desk.redrive("groups", "set", group, "--owner", "ann", "--note", "line 1\nline 2", "--runbook", "wiki/17")

    page = desk.redrive("groups", "show", group[:8]).out

    assert page.startswith(f"Group {group}  ValueError: order <n> has no customer\n")
    for line in (
        "  letters       4: 3 PENDING, 1 RESOLVED",
        "  owner         ann",
        "  verdict       none",
        "  runbook       wiki/17",
        "  line 2",
        ": ValueError: order 17 has no customer",
        "█ (the last 24 hours)",
        "Per hour (UTC)",
    ):
        assert line in page


@pytest.mark.parametrize("output", ["json", "jsonl", "csv", "table"])
def test_a_group_is_written_in_every_form_and_hostile_text_does_no_harm(desk: Desk, output: str) -> None:
    group = group_of(desk, ValueError(HOSTILE), queue=HOSTILE, handler=HOSTILE)
    desk.redrive("groups", "set", group, "--owner", "=1+1" + HOSTILE, "--note", HOSTILE, "--runbook", HOSTILE)

    for command in (("groups", "show", group), ("groups",), ("stats", "errors"), ("stats", "pending")):
        ended = desk.redrive(*command, "--output", output)
        assert ended.code == 0
        if output != "csv":
            assert not {"\x1b", "\x07", "\r", "\u202e", "\x9b"} & set(ended.out)
    if output == "csv":
        [row] = csv.DictReader(
            desk.redrive("groups", "show", group, "--output", "csv").out.splitlines(keepends=True)
        )
        assert row["owner"].startswith("'=1+1")


def test_an_unknown_group_is_not_found(desk: Desk) -> None:
    desk.record(dead())

    for command in (["show", "abcdef"], ["set", "abcdef", "--owner", "ann"]):
        ended = desk.redrive("groups", *command)
        assert (ended.code, "no group abcdef" in ended.err) == (3, True)


def test_on_a_narrow_terminal_a_group_is_still_one_line(desk: Desk) -> None:
    group_of(desk, ValueError("x" * 300))

    seen = on_terminal(desk.folder, "groups", columns=100, NO_COLOR="1")

    assert len(seen.text.splitlines()) == 2


# S1's analyses


def test_s1_the_five_analyses(desk: Desk) -> None:
    event = b'{"event_type": "HIRED"}'
    hired = [dead(foreign(event), error=ValueError("CPF 1 is invalid")) for _ in range(3)]
    ids = desk.record(*hired, dead(error=TimeoutError("no answer"), age=timedelta(hours=2)))
    desk.redrive("resolve", ids[0], ids[3], "--reason", "done", "--yes")

    def told(*command: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(desk.redrive("stats", *command, "--output", "json").out)
        return found

    assert [each["id"] for each in told("pending")] == [ids[2], ids[1]]
    assert told("errors") == [{"title": "ValueError: CPF <n> is invalid", "pending": 2}]
    assert told("types") == [
        {"event_type": "HIRED", "total": 3, "pending": 2, "resolved": 1},
        {"event_type": "orders", "total": 1, "pending": 0, "resolved": 1},
    ]
    assert sum(each["letters"] for each in told("rate", "--since", "3h")) == 4
    assert sum(each["letters"] for each in told("rate")) == 4
    [resolution] = told("resolution")
    assert resolution["resolved"] == 2
    assert 0.9 < resolution["mean_hours"] < 1.1


@pytest.mark.parametrize("command", ["pending", "errors", "rate", "types", "resolution"])
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
def test_every_analysis_has_every_form(desk: Desk, command: str, output: str) -> None:
    desk.record(dead())

    ended = desk.redrive("stats", command, "--output", output)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_a_rate_over_centuries_is_a_usage_error(desk: Desk) -> None:
    assert desk.redrive("stats", "rate", "--since", "9000w").code == 2
    assert desk.redrive("stats", "rate", "--since", "99999999w").code == 2
    assert desk.redrive("stats", "rate", "--since", "soon").code == 2
