"""What is told of a queue of Service Bus, and at which level: nothing is asked of a broker here."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.finding import FindingLevel
from redrive.transports.inspection import ExpectedQueue
from redrive.transports.servicebus.entity_facts import EntityFacts, Kind
from redrive.transports.servicebus.examination import Looked, examine

DAY = 86_400.0


def facts(path: str = "orders", **changed: Any) -> EntityFacts:
    safe: dict[str, Any] = {"most_deliveries": 100, "keeps_expired": True}
    return EntityFacts(path=path, **{**safe, **changed})


def told(own: EntityFacts | None, *, handled: bool = True, **looked: Any) -> set[tuple[str, str]]:
    """What is not fine, with everything else as it should be."""
    found = examine(Looked(expected=ExpectedQueue(name="orders", handled=handled), own=own, **looked))
    assert all(each.remedy for each in found if each.level is not FindingLevel.OK)
    return {(each.level, each.check) for each in found if each.level is not FindingLevel.OK}


def test_a_queue_as_it_should_be_has_nothing_to_tell() -> None:
    assert told(facts(), dead=facts("orders_dlq")) == set()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"kind": Kind.TOPIC}, {("problem", "queue")}),
        ({"enabled": False}, {("problem", "state")}),
        ({"forwards_to": "elsewhere"}, {("problem", "forwarding")}),
        ({"deleted_when_idle": 300.0}, {("problem", "expires")}),
        ({"keeps_expired": False}, {("warn", "ttl")}),
        ({"keeps_expired": False, "lives": 14 * DAY}, {("problem", "ttl")}),
        ({"lives": DAY}, set()),
        ({"lives": DAY - 1}, {("warn", "ttl")}),
        ({"kind": Kind.SUBSCRIPTION, "keeps_unfiltered": False}, {("problem", "dead-letter-route")}),
        ({"most_deliveries": 20}, set()),
        ({"most_deliveries": 10}, {("warn", "delivery-limit")}),
        ({"dead": 1}, {("warn", "uncollected")}),
        ({"transfer_dead": 2}, {("warn", "uncollected")}),
        ({"forwards_dead_to": "graveyard"}, {("warn", "dead-letter-route")}),
        ({"drops_duplicates": 600.0}, {("warn", "duplicates")}),
        ({"lock": 15.0}, set()),
        ({"lock": 5.0}, {("warn", "lock")}),
        ({"sessions": True}, {("problem", "sessions")}),
    ],
)
def test_what_may_lose_a_message_is_a_problem_and_the_rest_a_warning(
    changed: dict[str, Any], found: set[tuple[str, str]]
) -> None:
    assert told(facts(**changed)) == found


def test_a_queue_that_is_not_there() -> None:
    assert told(None) == {("problem", "queue")}


def test_a_queue_is_read_by_sessions_if_it_has_them() -> None:
    assert told(facts(sessions=True), in_sessions=True) == set()
    assert told(facts(), in_sessions=True) == {("problem", "sessions")}


def test_how_it_is_read_matters_only_to_who_reads_it() -> None:
    assert told(facts(lock=5.0, sessions=True), handled=False) == set()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"lives": 30 * DAY, "keeps_expired": False}, {("problem", "ttl")}),
        ({"lives": 30 * DAY}, set()),
        ({"sessions": True}, {("problem", "sessions")}),
    ],
)
def test_dead_letters_do_not_vanish_and_are_not_refused(
    changed: dict[str, Any], found: set[tuple[str, str]]
) -> None:
    assert told(facts(), dead=facts("orders_dlq", **changed)) == found


def test_the_remedy_for_a_subscription_names_its_topic() -> None:
    own = facts("events/Subscriptions/mail", kind=Kind.SUBSCRIPTION, most_deliveries=10)
    [found] = examine(Looked(expected=ExpectedQueue(name=own.path), own=own))
    assert "--topic-name events --name mail" in found.remedy
