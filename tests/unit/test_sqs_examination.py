"""What the doctor says of queues, by what SQS tells of them: the facts are made up."""

from __future__ import annotations

import json
from typing import Any

from redrive.finding import Finding
from redrive.transports.inspection import ExpectedQueue
from redrive.transports.sqs.examination import Looked, examine
from redrive.transports.sqs.queue_facts import QueueFacts

HOUR, DAY = 3600, 86_400


def facts(name: str, *, kept: int = 14 * DAY, fifo: bool = False, to: str = "") -> QueueFacts:
    """`to`: where its RedrivePolicy moves messages."""
    told = {"MessageRetentionPeriod": str(kept)}
    if fifo:
        told["FifoQueue"] = "true"
    if to:
        target = f"arn:aws:sqs:eu-west-1:1:{to}"
        told["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 50})
    return QueueFacts(name, "url", told)


def findings(own: QueueFacts, *, to_broker: bool = False, **looked: Any) -> list[Finding]:
    expected = ExpectedQueue(name=own.name, to_broker=to_broker)
    return examine(Looked(expected=expected, own=own, dead_name="orders_dlq", **looked))


def only(found: list[Finding]) -> tuple[str, str, str | None]:
    [one] = found
    return one.check, str(one.level), one.queue


def test_a_fifo_queue_whose_dead_letters_go_to_a_standard_queue_is_a_problem() -> None:
    found = findings(facts("orders.fifo", fifo=True, to="elsewhere"), target=facts("elsewhere"))
    assert only(found) == ("dead-letter-route", "problem", "orders.fifo")
    assert "which is none" in found[0].what


def test_a_fifo_queue_whose_dead_letters_go_to_a_fifo_queue_is_fine() -> None:
    own = facts("orders.fifo", fifo=True, to="dead.fifo")
    assert only(findings(own, target=facts("dead.fifo", fifo=True)))[1] == "ok"


def test_dead_letters_are_looked_at_where_sqs_moves_them_whatever_that_queue_is_called() -> None:
    own = facts("orders", kept=4 * DAY, to="orders-failed")
    found = findings(own, target=facts("orders-failed", kept=HOUR), dead=facts("orders_dlq"))
    assert only(found) == ("retention", "problem", "orders-failed")
    assert "deleted before anybody sees them" in found[0].what


def test_dead_letters_of_a_fifo_queue_are_as_old_as_their_move() -> None:
    own = facts("orders.fifo", kept=4 * DAY, fifo=True, to="dead.fifo")
    assert only(findings(own, target=facts("dead.fifo", kept=4 * DAY, fifo=True)))[1] == "ok"
    found = findings(own, target=facts("dead.fifo", kept=HOUR, fifo=True))
    assert only(found) == ("retention", "warn", "dead.fifo")
    assert "since they came there" in found[0].what


def test_what_is_only_sent_to_the_dead_letters_is_as_old_as_that() -> None:
    found = findings(facts("orders", kept=4 * DAY), dead=facts("orders_dlq", kept=HOUR))
    assert only(found) == ("retention", "warn", "orders_dlq")
    assert "since they came there" in found[0].what


def test_a_dead_letter_queue_that_letters_should_go_to_and_nobody_makes_is_a_problem() -> None:
    own = facts("orders")
    assert only(findings(own, to_broker=True, declares=False)) == ("queue", "problem", "orders_dlq")
    for fine in ({"to_broker": True}, {"declares": False}, {"dead": facts("orders_dlq"), "to_broker": True}):
        assert only(findings(own, **fine))[1] == "ok"
