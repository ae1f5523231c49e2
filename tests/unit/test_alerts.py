"""What an alert may hold, and how it reads."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from redrive.alerts.alert import Alert, Severity, read, written
from redrive.alerts.texts import Texts
from support.alerts import GROUP, INCIDENT, SINCE, raised, resolved

TEXTS = Texts(public_url="https://redrive.example.org/dlq/", place="production")


def test_an_alert_has_no_place_for_a_payload_or_the_text_of_an_exception() -> None:
    assert set(Alert.__struct_fields__) == {
        *("id", "dedup_key", "rule", "severity", "state", "title", "counts", "queue", "group_id", "since", "at"),
        *("path", "incident_id"),
    }


def test_an_alert_comes_back_as_it_was_written() -> None:
    alert = raised()
    assert read(written(alert)) == alert
    assert read(written(resolved(alert))) != alert


@pytest.mark.parametrize(
    "wrong",
    [
        {"dedup_key": ""},
        {"dedup_key": "k" * 256},
        {"dedup_key": "a\nb"},
        {"id": ""},
        {"rule": ""},
        {"title": "  "},
        {"title": "t" * 1001},
        {"path": "groups"},
        {"path": "//evil.example/"},
        {"path": "/a\r\nb"},
        {"counts": {str(number): number for number in range(21)}},
        {"since": datetime(2026, 3, 1)},  # noqa: DTZ001  that is what is wrong
    ],
)
def test_what_no_channel_could_send_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an alert"):
        raised(**{"key": wrong.pop("dedup_key")} if "dedup_key" in wrong else wrong)


def test_severities_are_ranked_from_the_least_to_the_worst() -> None:
    assert sorted(Severity, key=lambda each: each.rank) == ["info", "warning", "error", "critical"]


def test_the_text_tells_counts_the_masked_title_and_the_page_of_the_console() -> None:
    alert = raised()
    assert TEXTS.subject(alert) == "[critical] TimeoutError: no answer from [masked] (production)"
    assert TEXTS.body(alert).splitlines() == [
        "TimeoutError: no answer from [masked]",
        "",
        "letters: 10,000",
        "per minute: 40",
        "queue: orders",
        "rule: new_group",
        f"alert: {INCIDENT}",
        "environment: production",
        "since: 2026-03-01 12:00:00 UTC",
        "",
        f"To acknowledge or snooze it: https://redrive.example.org/dlq/alerts/{INCIDENT}",
        "",
        f"https://redrive.example.org/dlq/groups/{GROUP}",
    ]


def test_the_end_says_what_it_was_and_how_long() -> None:
    over = resolved(raised())
    assert TEXTS.subject(over) == "[resolved, was critical] TimeoutError: no answer from [masked] (production)"
    assert TEXTS.facts(over)["over after"] == "5m"
    assert "over after" not in TEXTS.facts(raised())


def test_what_is_not_kept_in_the_store_has_no_page_of_its_own() -> None:
    alone = raised(incident_id="")
    assert TEXTS.own_link(alone) is None
    assert "alert:" not in TEXTS.body(alone)
    assert "/alerts/" not in TEXTS.body(alone)


def test_without_a_public_url_there_is_no_link() -> None:
    texts = Texts()
    assert texts.link(raised()) is None
    assert "http" not in texts.body(raised())
    assert texts.subject(raised()) == "[critical] TimeoutError: no answer from [masked]"


def test_a_hostile_title_is_one_line_without_control_characters_and_cut() -> None:
    hostile = "first\r\nBcc: everybody@example.org\x00\x1b[2J \u202eevil\u2028 " + "x" * 900
    subject = TEXTS.subject(raised(title=hostile, queue="a\nb"))
    assert subject.isprintable()
    assert subject.startswith("[critical] first Bcc: everybody@example.org [2J evil x")
    assert len(TEXTS.title(raised(title=hostile))) == 200
    assert len(TEXTS.body(raised(title=hostile, queue="a\nb")).splitlines()) == len(
        TEXTS.body(raised()).splitlines()
    )


def test_moments_are_told_in_utc() -> None:
    there = SINCE.astimezone(timezone(timedelta(hours=-3)))
    assert TEXTS.facts(raised(since=there))["since"] == "2026-03-01 12:00:00 UTC"
