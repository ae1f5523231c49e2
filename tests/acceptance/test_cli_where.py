"""`--where`: letters by the filter language, pages in both directions, and how many there are."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.dead_letters import an_order, dead, foreign
from support.desk import Desk
from support.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def listed(desk: Desk, *arguments: str) -> list[str]:
    ended = desk.redrive("list", "--output", "jsonl", *arguments)
    return [json.loads(line)["id"] for line in ended.out.splitlines()]


# Which letters


def test_a_filter_finds_by_field_age_data_header_and_text(desk: Desk) -> None:
    old, mail, timeout = desk.record(
        dead(an_order(7), age=timedelta(days=3)),
        dead(foreign(b'{"to": {"name": "Jo\\u00e3o"}}', headers=(("tenant", "acme"),)), queue="mail"),
        dead(an_order(8), error=TimeoutError("connection refused")),
    )

    def found(text: str) -> list[str]:
        return listed(desk, "--where", text)

    assert found("") == [timeout, mail, old]
    assert found("queue:mail") == [mail]
    assert found("age:>2d") == [old]
    assert found("-queue:mail age:<2d") == [timeout]
    assert found("data.order_id:7") == [old]
    assert found("data.order_id:>=7") == [timeout, old]
    assert found("data.to.name:João") == [mail]
    assert found("header.tenant:acme") == [mail]
    assert found("-header.tenant:*") == [timeout, old]
    assert found('"connection refused"') == [timeout]
    assert found("joao") == [mail]
    assert found("type:TimeoutError,ValueError -refused -queue:mail") == [old]
    assert found("id:" + old[:18]) == [old]


def test_a_filter_and_the_other_options_must_all_match(desk: Desk) -> None:
    orders, _mail = desk.record(dead(), dead(queue="mail"))

    assert listed(desk, "--queue", "orders", "-w", "status:pending") == [orders]
    assert listed(desk, "--queue", "orders", "-w", "queue:mail") == []


def test_a_filter_that_begins_with_a_minus_needs_no_quoting(desk: Desk) -> None:
    orders, _mail = desk.record(dead(), dead(queue="mail"))

    assert listed(desk, "--where", "-queue:mail") == [orders]


def test_nothing_that_matches_a_filter_is_told_by_the_exit_code(desk: Desk) -> None:
    desk.record(dead())

    unmatched = desk.redrive("list", "--where", "queue:nosuch")

    assert (unmatched.code, unmatched.out, unmatched.err) == (3, "", "No dead letters match.\n")


def test_an_export_writes_what_a_filter_finds(desk: Desk) -> None:
    desk.record(dead(queue="mail"))
    wanted = desk.record(*(dead(an_order(number)) for number in range(120)))

    ended = desk.redrive("export", "--where", "queue:orders data.order_id:*")

    assert [json.loads(line)["id"] for line in ended.out.splitlines()] == wanted[::-1]
    assert ended.code == 0


def test_an_export_of_nothing_is_told_by_the_exit_code(desk: Desk) -> None:
    desk.record(dead())

    assert desk.redrive("export", "--where", "nosuchword").code == 3


# What is wrong with a filter


@pytest.mark.parametrize("command", ["list", "export"])
def test_a_wrong_filter_is_told_with_its_column_and_the_nearest_field(desk: Desk, command: str) -> None:
    ended = desk.redrive(command, "--where", "queue:orders statsu:PENDING")

    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.splitlines() == [
        "error: filter, column 14: unknown field 'statsu'",
        "  hint: did you mean status? To look for text with a colon, put it in quotes",
    ]


def test_on_a_terminal_a_caret_shows_the_place(tmp_path: Path) -> None:
    seen = on_terminal(tmp_path, "list", "--where", "日本:\x1bx")
    lines = on_terminal(tmp_path, "list", "--where", "queue:orders age:2d").text.splitlines()

    assert lines[:3] == [
        "queue:orders age:2d",
        "                 ^",
        "error: filter, column 18: age needs to know: older or younger?",
    ]
    assert seen.text.splitlines()[:2] == [r"日本:\x1bx", "^"]
    assert "\x1b" not in seen.text


def test_a_long_filter_is_shown_around_the_place(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(50)) + " nosuch:1 " + "more " * 50

    line, caret, message, *_ = on_terminal(tmp_path, "list", "--where", text, columns=60).text.splitlines()

    assert len(line) < 60
    assert line[caret.index("^") :].startswith("nosuch:1 ")
    assert "unknown field 'nosuch'" in message


# Pages


def test_pages_go_on_and_come_back_over_the_same_letters(desk: Desk) -> None:
    ids = desk.record(*(dead(an_order(number)) for number in range(7)))[::-1]
    some = ("--where", "queue:orders", "--limit", "3")

    first = listed(desk, *some)
    second = listed(desk, *some, "--after", first[-1])
    third = listed(desk, *some, "--after", second[-1])
    back = listed(desk, *some, "--before", third[0])
    at_the_top = listed(desk, *some, "--before", second[0])

    assert first + second + third == ids
    assert (back, at_the_top) == (second, first)
    assert listed(desk, *some, "--before", first[0]) == []


def test_letters_of_another_time_than_their_ids_stand_in_the_order_of_their_failure(desk: Desk) -> None:
    new, old, middle = desk.record(dead(), dead(age=timedelta(days=2)), dead(age=timedelta(days=1)))

    assert listed(desk) == [new, middle, old]
    assert listed(desk, "--after", new) == [middle, old]
    assert listed(desk, "--before", old) == [new, middle]
    assert listed(desk, "--before", old, "--limit", "1") == [middle]


def test_a_page_says_how_to_go_on_in_its_own_direction(desk: Desk) -> None:
    ids = desk.record(*(dead() for _ in range(5)))

    onward = desk.redrive("list", "--limit", "2", "--after", ids[4])
    back = desk.redrive("list", "--limit", "2", "--before", ids[0])

    assert onward.err.splitlines() == ["2 of 5", f"There may be more: add --after {ids[2]}"]
    assert back.err.splitlines() == ["2 of 5", f"There may be more: add --before {ids[2]}"]


def test_a_page_cannot_go_both_ways_or_from_nowhere(desk: Desk) -> None:
    (letter,) = desk.record(dead())
    gone = letter[:-4] + "0000"

    both = desk.redrive("list", "--after", letter, "--before", letter)
    nowhere = desk.redrive("list", "--before", gone)

    assert (both.code, both.err.splitlines()[0]) == (2, "error: --after and --before go opposite ways")
    assert (nowhere.code, nowhere.err.splitlines()[0]) == (3, f"error: no letter {gone}")


# How many


def test_a_table_says_how_many_match(desk: Desk) -> None:
    desk.record(*(dead() for _ in range(5)), dead(queue="mail"))

    some = desk.redrive("list", "--limit", "3", "-w", "queue:orders")
    every = desk.redrive("list")

    assert some.err.splitlines()[0] == "1-3 of 5"
    assert every.err == "1-6 of 6\n"
    assert desk.redrive("list", "--output", "json").err == ""


def test_a_count_is_exact_and_alone_on_stdout(desk: Desk) -> None:
    desk.record(*(dead() for _ in range(5)), dead(queue="mail"))

    plain = desk.redrive("list", "--count", "--limit", "2", "-w", "queue:orders")
    none = desk.redrive("list", "--count", "-w", "queue:nosuch")

    assert (plain.code, plain.out, plain.err) == (0, "5\n", "")
    assert (none.code, none.out) == (3, "0\n")
    assert desk.redrive("list", "--count").out == "6\n"
    assert json.loads(desk.redrive("list", "--count", "-o", "json").out) == {"count": 6}
    assert json.loads(desk.redrive("list", "--count", "-o", "jsonl").out) == {"count": 6}
    assert desk.redrive("list", "--count", "-o", "csv").out == '"count"\n6\n'
