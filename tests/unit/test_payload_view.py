from __future__ import annotations

from redrive.cli.payload_view import HEX_BUDGET, JSON_BUDGET, MAX_DEPTH, TEXT_BUDGET, payload_view, pretty_json


def test_json_is_shown_in_lines_with_every_number_as_it_was_written() -> None:
    shown = payload_view(b'{"id":12345678901234567890123456789,"total":1.10,"big":1e400}')

    assert shown == '{\n  "id": 12345678901234567890123456789,\n  "total": 1.10,\n  "big": 1e400\n}'


def test_control_characters_inside_json_are_shown_as_escapes_that_mean_the_same() -> None:
    assert payload_view('{"a":"\u202e\x9b31m"}'.encode()) == '{\n  "a": "\\u202e\\u009b31m"\n}'


def test_text_is_shown_as_text_and_cannot_move_the_cursor() -> None:
    assert payload_view(b"hello\x1b[2Jworld\r\nbye") == "hello\\x1b[2Jworld\nbye"


def test_bytes_that_are_no_text_are_shown_in_hexadecimal() -> None:
    assert payload_view(b"\xff\x00AB") == f"00000000  {'ff 00 41 42':<48} |..AB|"
    assert payload_view(b"ab\x00").startswith("00000000  61 62 00")


def test_nothing_and_empty_are_told_apart() -> None:
    assert payload_view(None) == "(no body)"
    assert payload_view(b"") == "(empty)"


def test_what_is_too_long_is_cut_and_says_how_to_get_all() -> None:
    for view in (payload_view(b"\xff" * (HEX_BUDGET + 5)), payload_view(b"x" * (TEXT_BUDGET + 5))):
        assert view.endswith("... 5 more: `redrive show ID --payload` writes all of it")


def test_a_bomb_of_brackets_is_not_indented() -> None:
    bomb = b"[" * 1000 + b"1,2" * 1000 + b"]" * 1000

    assert pretty_json(bomb) is None
    assert payload_view(bomb) == bomb.decode()


def test_brackets_inside_text_do_not_count_as_depth() -> None:
    assert pretty_json(b'{"a":"' + b"[" * 500 + b'\\""}') is not None
    assert pretty_json(b'{"a":"\\"' + b"[" * 500 + b'"}') is not None


def test_a_text_that_never_ends_is_looked_through_once() -> None:
    """TH4: looked at anew from each of its quotes, a payload of this size would keep the command for minutes."""
    endless = b'"' + b'\\"' * (JSON_BUDGET // 2 - 1)

    assert pretty_json(endless) is None
    assert payload_view(endless).startswith('"\\"\\"')


def test_brackets_behind_the_end_of_a_text_count_as_depth() -> None:
    assert pretty_json(b'["\\\\",' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"]") is None
    assert pretty_json(b'["\\\\",' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"]") is not None


def test_broken_json_is_shown_as_the_text_it_is() -> None:
    assert payload_view(b'{"a":') == '{"a":'
