"""What commands write is harmless for terminals and spreadsheets, and exact for programs (TH2)."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.cli.changing import confirm, progress
from redrive.cli.escaping import defuse, escape, escape_block, escape_json
from redrive.cli.outcome import report
from redrive.cli.output import Column, Format, json_text, note, write_rows
from redrive.errors import (
    ConfigurationError,
    CorruptFile,
    MissingExtra,
    NotFound,
    PublishRefused,
    RedriveError,
    Refused,
    TransitionRefused,
    Unreachable,
    UsageError,
)

HOSTILE = "\x1b]0;owned\x07\x9b31m\u202etxt.exe\u2066\r\n\x00\x7f\u2028\ud800"
COLUMNS = (Column("id", "ID"), Column("text", "TEXT", shrinks=True))
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def has_control(text: str) -> bool:
    return any(
        ord(c) < 32 or 0x7F <= ord(c) <= 0x9F or c in "\u061c\u200e\u200f\u2028\u2029" for c in text
    ) or any("\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" or "\ud800" <= c <= "\udfff" for c in text)


def test_control_characters_are_written_out() -> None:
    assert escape("a\tb\n\x1b[31m\x9b\u202e\ud800é") == r"a\tb\n\x1b[31m\x9b\u202e\ud800é"
    assert escape_block("a\tb\r\nc\rd\x1b") == "a    b\nc\\rd\\x1b"


@given(ANY_TEXT)
def test_no_text_reaches_a_terminal_with_a_control_character(text: str) -> None:
    assert not has_control(escape(text))
    assert not has_control(escape_block(text).replace("\n", ""))
    escape(text).encode()


@given(ANY_TEXT)
def test_escaped_json_means_the_same(text: str) -> None:
    written = json_text({"text": text})
    assert not has_control(written)
    assert json.loads(written) == {"text": text}
    assert json.loads(escape_json(json.dumps([text], indent=1))) == [text]


@given(ANY_TEXT)
def test_no_cell_begins_a_formula(text: str) -> None:
    assert not defuse(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert defuse(text).removeprefix("'") == text.removeprefix("'")


def written(capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], output: Format) -> str:
    write_rows(rows, COLUMNS, output)
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_table_holds_one_line_per_row_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [{"id": "[red]1[/red]", "text": HOSTILE}, {"id": ":smile:", "text": None}]
    header, first, second = written(capsys, rows, Format.TABLE).splitlines()
    assert header.split() == ["ID", "TEXT"]
    assert first.startswith(r"[red]1[/red]  \x1b]0;owned\x07\x9b31m\u202etxt.exe\u2066\r\n\x00\x7f\u2028\ud800")
    assert second.strip() == ":smile:"


def test_a_pipe_gets_whole_values_however_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert "x" * 5000 in written(capsys, [{"id": 1, "text": "x" * 5000}], Format.TABLE)


def test_json_and_json_lines_keep_whole_rows_with_their_types(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2025, 1, 2, 3, 4, 5, 678000, UTC)
    rows: list[dict[str, Any]] = [
        {"id": 2**70, "text": HOSTILE, "at": moment, "more": [None, True, {"a": 1.5}]},
        {"id": 1},
    ]
    told = [{**rows[0], "at": "2025-01-02T03:04:05.678+00:00"}, {"id": 1}]
    assert json.loads(written(capsys, rows, Format.JSON)) == told
    lines = written(capsys, rows, Format.JSONL).split("\n")
    assert [json.loads(line) for line in lines[:-1]] == told
    assert written(capsys, [], Format.JSON) == "[]\n"
    assert written(capsys, [], Format.JSONL) == ""


def test_a_value_that_is_not_plain_is_refused_and_not_guessed() -> None:
    with pytest.raises(TypeError, match="bytes has no place in a row"):
        json_text({"body": b"x"})


def test_csv_can_be_read_back_and_calculates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"id": -5, "text": '=cmd|"/C calc"!A0'},
        {"id": "@x", "text": 'two\nlines, and "quotes"'},
        {"id": None, "text": {"a": [1]}},
    ]
    assert list(csv.reader(io.StringIO(written(capsys, rows, Format.CSV)))) == [
        ["id", "text"],
        ["-5", '\'=cmd|"/C calc"!A0'],
        ["'@x", 'two\nlines, and "quotes"'],
        ["", '{"a": [1]}'],
    ]


def test_a_note_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    note("seen\x1b[2J\nforged")
    assert capsys.readouterr() == ("", "seen\\x1b[2J\\nforged\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RedriveError("x"), 1),
        (PublishRefused("x", permanent=True), 1),
        (UsageError("x"), 2),
        (ConfigurationError("x"), 2),
        (MissingExtra("kafka", "kafka"), 2),
        (NotFound("x"), 3),
        (Refused("x"), 5),
        (TransitionRefused("id", "edit", "RESOLVED"), 5),
        (Unreachable("x"), 6),
        (CorruptFile("x"), 6),
        (KeyError("x"), 1),
    ],
)
def test_every_error_has_its_exit_code_and_one_line(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert len([line for line in err.splitlines() if not line.startswith("  hint: ")]) == 1


def test_an_error_with_a_remedy_tells_it_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    report(NotFound("no letter\x1b", remedy="`redrive list` shows the ids"))
    assert capsys.readouterr().err == "error: no letter\\x1b\n  hint: `redrive list` shows the ids\n"


def test_an_unexpected_error_says_how_to_see_its_stack_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDRIVE_TRACEBACK", raising=False)
    report(RuntimeError("one\ntwo"))
    assert capsys.readouterr().err == (
        "error: unexpected RuntimeError: one\n  hint: set REDRIVE_TRACEBACK=1 to see where it comes from\n"
    )
    monkeypatch.setenv("REDRIVE_TRACEBACK", "1")
    report(RuntimeError("one"))
    assert "RuntimeError: one" in capsys.readouterr().err


def test_nothing_is_changed_without_yes_where_nobody_can_be_asked() -> None:
    with pytest.raises(Refused, match="Delete 3 letters\\?") as refused:
        confirm("Delete 3 letters?", yes=False)
    assert "--yes" in refused.value.remedy
    confirm("Delete 3 letters?", yes=True)


def test_a_pipe_gets_no_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Sending", 10) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")
