from __future__ import annotations

import io

import pytest

from redrive.cli.letter_ids import given_ids, short_ids
from redrive.errors import NotFound, UsageError

A = "01a1e159-cf20-722c-a384-905c90383150"
B = "01a1e159-cf20-722c-a384-905d53ba1f13"
C = "01a1e15a-0000-722c-a384-905d53ba1f13"


def test_short_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    assert short_ids([A, C]) == {A: "01a1e159-cf20-722c", C: "01a1e15a-0000-722c"}
    assert short_ids([A, B, C]) == {each: each[:28] for each in (A, B, C)}


def test_a_page_of_one_and_a_page_of_none_have_short_ids_too() -> None:
    assert short_ids([A]) == {A: "01a1e159-cf20-722c"}
    assert short_ids([]) == {}


@pytest.mark.parametrize("line", [A, f'"{A}"', f'{{"id": "{A}", "status": "PENDING"}}'])
def test_stdin_may_hold_bare_ids_what_jq_writes_or_whole_lines_of_list(
    monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n\n{B}\n"))

    assert given_ids([C, "-"]) == [C, A, B]


def test_an_empty_stdin_is_nothing_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    with pytest.raises(NotFound):
        given_ids(["-"])


@pytest.mark.parametrize("line", ['{"status": "PENDING"}', '{"id": 5}', '{"id', '""'])
def test_a_line_without_an_id_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{A}\n{line}\n"))

    with pytest.raises(UsageError, match="line 2"):
        given_ids(["-"])
