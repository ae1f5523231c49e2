"""Queues as `redrive queues` shows them, by what the broker tells."""

from __future__ import annotations

from typing import Any

from redrive.transports import Names
from redrive.transports.inspection import QueueFigures
from redrive.transports.rabbitmq.broker_facts import QueueFacts
from redrive.transports.rabbitmq.queue_figures import figures_of


def waiting(milliseconds: int, **facts: Any) -> QueueFacts:
    arguments = {"x-message-ttl": milliseconds, "x-dead-letter-exchange": ""}
    return QueueFacts(name=f"orders_retry.{milliseconds}", type="quorum", arguments=arguments, **facts)


ORDERS = QueueFacts(name="orders", type="quorum", ready=3, unacked=2, consumers=1, incoming=0.5, outgoing=0.25)


def test_a_queue_is_one_line_with_what_was_told() -> None:
    (shown,) = figures_of([ORDERS], (), Names())
    assert shown == QueueFigures(
        name="orders", type="quorum", ready=3, delayed=0, unacked=2, consumers=1, incoming=0.5, outgoing=0.25
    )


def test_queues_of_different_delays_are_one_line_and_their_messages_are_delayed() -> None:
    queues = [waiting(5000, ready=2, incoming=1.5), waiting(10000, ready=1, consumers=0), waiting(20000)]
    (shown,) = figures_of(queues, (), Names())
    assert (shown.name, shown.ready, shown.delayed, shown.incoming) == ("orders_retry", 0, 3, 1.5)
    assert shown.outgoing is None


def test_a_queue_with_a_ttl_that_somebody_consumes_is_no_wait() -> None:
    (shown,) = figures_of([waiting(5000, ready=2, consumers=1)], (), Names())
    assert (shown.name, shown.ready, shown.delayed) == ("orders_retry.5000", 2, 0)


def test_a_number_at_the_end_of_a_name_that_is_no_ttl_is_kept() -> None:
    queues = [QueueFacts(name="orders.5000"), QueueFacts(name="x.7", arguments={"x-message-ttl": 7})]
    assert [each.name for each in figures_of(queues, (), Names())] == ["orders.5000", "x.7"]


def test_only_what_is_wanted_and_belongs_to_it_by_name() -> None:
    queues = [waiting(5000), ORDERS, QueueFacts(name="orders_dlq"), QueueFacts(name="mails")]
    assert [each.name for each in figures_of(queues, ["orders"], Names())] == [
        "orders",
        "orders_dlq",
        "orders_retry",
    ]
    names = [each.name for each in figures_of([*queues, QueueFacts(name="amq.gen", exclusive=True)], (), Names())]
    assert names == ["mails", "orders", "orders_dlq", "orders_retry"]
