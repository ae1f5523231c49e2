"""The doctor's look at settings: each that lets go of messages, and the one next to it that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redrive.examined_retention import examine_copies
from redrive.examined_settings import Handled, examine_settings
from redrive.finding import FindingLevel
from redrive.settings import Settings

RABBIT = {"broker": {"url": "amqp://host/"}}
KAFKA = {"broker": {"url": "kafka://host"}}
SAFE = {
    "masking": {"search_key": "k" * 40},
    "encryption": {"enabled": True, "key": "ab" * 31 + "cd"},
    "audit": {"key": "l" * 40},
}


def looked_at(given: dict[str, Any], **handled: Any) -> set[tuple[str, FindingLevel]]:
    settings = Settings.model_validate(given)
    values = {"timeout": 300.0, "waits": (5.0, 10.0), "budget": None, **handled}
    queue = Handled(name="orders", **values)
    return {(each.check, each.level) for each in examine_settings(settings, [queue])}


def production(**changed: Any) -> dict[str, Any]:
    return {"app": {"environment": "Production"}, **SAFE, **changed}


WELL = {("settings", FindingLevel.OK)}
CASES: dict[str, tuple[dict[str, Any], str, FindingLevel]] = {
    "a broker in memory": ({"broker": {"url": "embedded:///:memory:"}}, "memory-only", FindingLevel.PROBLEM),
    "a store in memory": ({"store": {"url": "sqlite:///:memory:"}}, "memory-only", FindingLevel.PROBLEM),
    "nothing kept": ({"retention": {"keep": 0}}, "retention-keep", FindingLevel.WARN),
    "discarded ones kept for a minute": (
        {"retention": {"keep_discarded": "1m"}},
        "retention-keep",
        FindingLevel.WARN,
    ),
    "a queue of which nothing is kept": (
        {"queues": {"orders": {"retention": {"keep": "0s"}}}},
        "retention-keep",
        FindingLevel.WARN,
    ),
    "a queue that keeps less than it waits": (
        {"queues": {"orders": {"dead_letters": {"assume_after": "3d"}, "retention": {"keep": "2d"}}}},
        "retention-keep",
        FindingLevel.WARN,
    ),
    "kept for an hour": ({"retention": {"keep": "1h"}}, "retention-keep", FindingLevel.WARN),
    "kept for less than silence lasts": (
        {"retention": {"keep": "2d"}, "queues": {"orders": {"dead_letters": {"assume_after": "3d"}}}},
        "retention-keep",
        FindingLevel.WARN,
    ),
    "no archive": ({"retention": {"archive": "none"}}, "retention-archive", FindingLevel.WARN),
    "no masking": ({"masking": {"enabled": False}}, "masking", FindingLevel.WARN),
    "no masking in production": (
        production(masking={"enabled": False}),
        "masking",
        FindingLevel.PROBLEM,
    ),
    "no masking of a queue": (
        {"queues": {"orders": {"masking": {"enabled": False}}}},
        "masking",
        FindingLevel.WARN,
    ),
    "no search key in production": (production(masking={}), "search-key", FindingLevel.WARN),
    "no encryption in production": (production(encryption={}), "encryption-off", FindingLevel.WARN),
    "no ledger key in production": (production(audit={}), "ledger-key", FindingLevel.WARN),
    "a server without environment": ({"store": {"url": "postgresql://host/db"}}, "environment", FindingLevel.WARN),
    "not persistent": (
        {"broker": {"url": "amqp://host/", "rabbitmq": {"persistent": False}}},
        "persistent",
        FindingLevel.PROBLEM,
    ),
    "a grace longer than the broker's": (
        {**RABBIT, "worker": {"grace": "2h"}},
        "grace",
        FindingLevel.WARN,
    ),
    "a short lease": ({"broker": {"lease": "2s"}}, "lease", FindingLevel.WARN),
    "begins at the end": (
        {"broker": {"url": "kafka://host", "kafka": {"start": "latest"}}},
        "kafka-start",
        FindingLevel.WARN,
    ),
    "expires": (
        {"queues": {"orders": {"dead_letters": {"expire_after": "30d"}}}},
        "expire-after",
        FindingLevel.WARN,
    ),
    "expires soon": (
        {"queues": {"orders": {"dead_letters": {"expire_after": "1h"}}}},
        "expire-after",
        FindingLevel.PROBLEM,
    ),
    "a breaker that dead-letters": ({"worker": {"breaker_mode": "dead_letter"}}, "breaker", FindingLevel.WARN),
    "a breaker that dead-letters what expires": (
        {
            "worker": {"breaker_mode": "dead_letter"},
            "queues": {"orders": {"dead_letters": {"expire_after": "30d"}}},
        },
        "breaker",
        FindingLevel.PROBLEM,
    ),
    "letters into a queue": ({"dead_letters": {"sink": "queue"}}, "sink", FindingLevel.WARN),
    "assumed too soon": (
        {"queues": {"orders": {"dead_letters": {"assume_after": "10s"}}}},
        "assume-after",
        FindingLevel.WARN,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_lets_go_of_messages_is_found(case: str) -> None:
    given, check, level = CASES[case]
    assert (check, level) in looked_at(given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        RABBIT,
        KAFKA,
        production(),
        production(store={"url": "postgresql://host/db"}),
        {"dead_letters": {"sink": "queue"}, "collector": {"queues": ["orders_dlq"]}},
        {"dead_letters": {"sink": "both"}},
        {"worker": {"breaker_mode": "dead_letter", "breaker_failures": 0}},
        {"queues": {"orders": {"dead_letters": {"assume_after": "1d"}}}},
        {"broker": {"lease": "10s"}},
    ],
    ids=str,
)
def test_what_keeps_messages_is_well(given: dict[str, Any]) -> None:
    assert looked_at(given) == WELL


def test_handlers_without_timeout_are_told_here_where_the_broker_has_no_limit_of_its_own() -> None:
    assert looked_at({}, timeout=None) == {("handler-timeout", FindingLevel.WARN)}
    assert looked_at(RABBIT, timeout=None) == WELL


def test_retries_that_come_too_late_or_not_at_all() -> None:
    assert looked_at(RABBIT, waits=(86400.0,)) == WELL
    assert looked_at(RABBIT, waits=(5.0, 86401.0)) == {("retry-delay", FindingLevel.WARN)}
    assert looked_at(KAFKA, waits=(5.0, 86401.0)) == WELL
    assert looked_at({}, budget=4.0) == {("retry-budget", FindingLevel.WARN)}
    assert looked_at({}, budget=6.0) == WELL


def test_no_secret_is_in_what_is_told() -> None:
    urls = {"broker": "amqp://user:hunter2@host/", "store": "postgresql://user:hunter2@host/db"}
    settings = Settings.model_validate({name: {"url": url} for name, url in urls.items()})
    assert "hunter2" not in str(examine_settings(settings, []))


def test_what_a_queue_keeps_names_the_queue_and_its_setting() -> None:
    given = {"retention": {"keep_discarded": "1m"}, "queues": {"orders": {"retention": {"keep": "0s"}}}}
    found = [
        each for each in examine_settings(Settings.model_validate(given), []) if each.check == "retention-keep"
    ]
    assert [(each.queue, each.remedy.split()[1].rstrip(",")) for each in found] == [
        (None, "retention.keep_discarded"),
        ("orders", "queues.orders.retention.keep"),
    ]


def test_a_place_for_copies_that_is_away_is_a_problem(tmp_path: Path) -> None:
    settings = Settings.model_validate({"retention": {"copy_to": f"file://{tmp_path}/copies"}})
    [found] = examine_copies(settings)
    assert (found.check, found.level) == ("retention-copies", FindingLevel.PROBLEM)
    (tmp_path / "copies").mkdir()
    assert examine_copies(settings) == []
