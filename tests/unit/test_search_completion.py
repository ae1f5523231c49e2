"""What is offered next while a filter is being written."""

from __future__ import annotations

import pytest

from redrive.search_completion import MAX_SUGGESTIONS, complete
from redrive.search_fields import FIELDS

KNOWN = {"queue": ["payments", "orders", "late orders"], "type": ["shop.NoCustomer", "TimeoutError"]}


def texts(text: str, cursor: int | None = None) -> list[str]:
    return [each.text for each in complete(text, len(text) if cursor is None else cursor, KNOWN)]


def applied(text: str, cursor: int | None = None) -> str:
    """The text with the first suggestion put in."""
    first = complete(text, len(text) if cursor is None else cursor, KNOWN)[0]
    start, end = first.replaces
    return text[:start] + first.text + text[end:]


def test_an_empty_filter_is_offered_every_field_with_what_it_means() -> None:
    offered = complete("", 0)

    assert [each.text for each in offered] == [*(f"{name}:" for name in FIELDS), "header.", "data."]
    assert all(each.what for each in offered)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("st", ["status:"]),
        ("queue:a -QU", ["queue:"]),
        ("a", ["attempts:", "age:", "after:"]),
        ("nosuch", []),
        ("queue:", ["late orders", "orders", "payments"]),
        ("queue:o", ["orders", "late orders"]),
        ("queue:payments,o", ["orders", "late orders"]),
        ("type:nocus", ["shop.NoCustomer"]),
        ("handler:", []),
        ("status:q", ["QUARANTINED"]),
        ("status:PENDING,res", ["RESOLVED"]),
        ("KIND:", ["transient", "permanent", "critical"]),
        ("age:>", [">1h", ">1d", ">7d"]),
        ("age:>2", []),
        ("attempts:>", [">", ">="]),
        ("attempts:1,", []),
        ("after:", ["1h", "1d", "7d"]),
        ('"queue:', []),
        ('"connection st', []),
        ('queue:"late o', ["late orders"]),
        ('"done" st', ["status:"]),
        (r"type:App\ st", ["status:"]),
    ],
)
def test_what_begins_like_it_is_offered(text: str, offered: list[str]) -> None:
    assert [each.strip('"') for each in texts(text)] == offered


@pytest.mark.parametrize(
    ("text", "cursor", "after"),
    [
        ("que", None, "queue:"),
        ("-que", None, "-queue:"),
        ("que:orders", 3, "queue:orders"),
        ("a st b", 4, "a status: b"),
        ("status:PEN", None, "status:PENDING"),
        ("status:PENDING,RE b", 16, "status:PENDING,REDRIVING b"),
        ("queue:late", None, 'queue:"late orders"'),
        ('queue:"la', None, 'queue:"late orders"'),
        ("queue:or,payments", 8, "queue:orders,payments"),
    ],
)
def test_a_suggestion_replaces_what_was_begun(text: str, cursor: int | None, after: str) -> None:
    assert applied(text, cursor) == after


def test_suggestions_are_few_enough_to_show() -> None:
    many = {"queue": [f"queue-{number}" for number in range(1000)]}

    assert len(complete("queue:", 6, many)) == MAX_SUGGESTIONS


def test_a_cursor_outside_the_text_is_at_its_nearest_end() -> None:
    assert complete("st", 99) == complete("st", 2)
    assert complete("st", -1) == complete("st", 0)
