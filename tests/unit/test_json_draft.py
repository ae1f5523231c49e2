from __future__ import annotations

import pytest

from redrive.cli.json_draft import check_json, draft_of, in_the_style_of, is_json
from redrive.errors import UsageError


def test_a_draft_is_shown_in_lines_and_goes_back_as_tersely_as_it_came() -> None:
    before = b'{"id":12345678901234567890123,"total":1.10}'

    draft = draft_of(before)
    edited = draft.replace(b"1.10", b"2.50")

    assert draft == b'{\n  "id": 12345678901234567890123,\n  "total": 1.10\n}\n'
    assert in_the_style_of(before, edited) == b'{"id":12345678901234567890123,"total":2.50}'


def test_one_line_with_spaces_stays_one_line_with_spaces() -> None:
    assert in_the_style_of(b'{"a": 1, "b": 2}', b'{\n "a": 3,\n "b": 2\n}\n') == b'{"a": 3, "b": 2}'


def test_a_layout_of_its_own_is_left_to_the_person() -> None:
    assert in_the_style_of(b'{"a":1,\n"b": 2}', b'{"a":3,\n"b": 2}\n') == b'{"a":3,\n"b": 2}'


@pytest.mark.parametrize("content", [b"", b"{", b"nan", b"NaN", b"[1,]", b"\xff", b"[" * 100_000, b"01", b"1 2"])
def test_what_is_not_json_is_refused_without_showing_it(content: bytes) -> None:
    assert not is_json(content)
    with pytest.raises(UsageError) as refused:
        check_json(content, remedy="correct it")
    assert refused.value.remedy == "correct it"


@pytest.mark.parametrize("content", [b"null", b'"\\ud800"', b"1" * 10_000, b"1e999999", '"é"'.encode()])
def test_everything_json_allows_is_json(content: bytes) -> None:
    assert is_json(content)


def test_no_body_is_not_json() -> None:
    assert not is_json(None)
