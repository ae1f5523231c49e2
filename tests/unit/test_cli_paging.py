"""What is said below a page of letters."""

from __future__ import annotations

import pytest

from redrive.cli.paging import Page, tell_page
from redrive.letter_query import Count
from support.letter_facts import a_letter


def told(capsys: pytest.CaptureFixture[str], page: Page, limit: int) -> list[str]:
    tell_page(page, limit)
    return capsys.readouterr().err.splitlines()


def test_a_number_that_was_not_counted_to_its_end_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page(
        letters=[a_letter()] * 2, count=Count(10_000, exact=False), first=True, backwards=False, unsearched=0
    )

    assert told(capsys, page, 50) == ["1-2 of more than 10,000"]


def test_only_the_first_page_knows_its_places(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page(
        letters=[a_letter()] * 2, count=Count(1234, exact=True), first=False, backwards=False, unsearched=0
    )

    assert told(capsys, page, 50) == ["2 of 1,234"]


def test_a_full_page_tells_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    newest, oldest = a_letter(id="1" * 36), a_letter(id="0" * 36)
    onward = Page(letters=[newest, oldest], count=None, first=True, backwards=False, unsearched=0)
    back = Page(letters=[newest, oldest], count=None, first=False, backwards=True, unsearched=0)

    assert told(capsys, onward, 2) == [f"There may be more: add --after {oldest.id}"]
    assert told(capsys, back, 2) == [f"There may be more: add --before {newest.id}"]


def test_letters_that_could_not_be_found_yet_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page(letters=[a_letter()], count=None, first=True, backwards=False, unsearched=12_000)

    assert any("12,000" in line for line in told(capsys, page, 50))


def test_nothing_is_said_below_an_empty_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, Page(letters=[], count=None, first=True, backwards=False, unsearched=0), 50) == []
