"""The topologies of RabbitMQ as data: what stands beside a queue, with which arguments, on which broker."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.errors import ConfigurationError
from redrive.transports.delays import LADDER, rung, rungs
from redrive.transports.rabbitmq.topology import BindingSpec, ExchangeSpec, QueueSpec, Route, Topology
from redrive.transports.rabbitmq.topology_choice import TOPOLOGIES, Choice, choose
from redrive.transports.rabbitmq.topology_loop import Loop

SAFELY = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
QUORUM = {"x-queue-type": "quorum"}


def chosen(topology: str = "delay-queues", **said: Any) -> Topology:
    return choose(Choice(topology=topology, app="shop", **said))


def queues(topology: Topology, queue: str = "orders", *delays: float) -> dict[str, dict[str, Any]]:
    things = [step.thing for step in topology.layout(queue, delays).steps]
    return {thing.name: thing.arguments for thing in things if isinstance(thing, QueueSpec)}


def others(topology: Topology, queue: str = "orders") -> list[ExchangeSpec | BindingSpec]:
    things = [step.thing for step in topology.layout(queue).steps]
    return [thing for thing in things if not isinstance(thing, QueueSpec)]


def roles(topology: Topology, queue: str, *delays: float) -> list[str]:
    return [step.role for step in topology.layout(queue, delays).steps]


# Delays


def test_the_ladder_rises_from_a_tenth_of_a_second_to_a_day() -> None:
    assert sorted(set(LADDER)) == list(LADDER)
    assert (LADDER[0], LADDER[-1]) == (100, 24 * 3600 * 1000)


@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [(0, 100), (0.1, 100), (0.1001, 250), (5, 5000), (5.0000001, 5000), (5.001, 6000), (3601, 5_400_000)],
)
def test_a_delay_is_rounded_up(delay: float, milliseconds: int) -> None:
    assert rung(delay) == milliseconds


def test_a_delay_beyond_the_ladder_waits_for_its_longest() -> None:
    assert rung(30 * 86400) == 86_400_000


def test_a_range_of_delays_has_every_rung_that_it_could_be_rounded_to() -> None:
    assert rungs(0.2, 2.5) == (250, 500, 1000, 2000, 3000)
    assert rungs(5, 5) == (5000,)


# The default


def test_delay_queues_return_into_the_queue_and_lose_nothing_on_the_way() -> None:
    back = {"x-message-ttl": 5000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}
    assert chosen().waiting("orders", 4.2) == QueueSpec("orders_retry.5000", QUORUM | back | SAFELY)


def test_the_default_has_messages_dead_letters_and_the_waits_that_are_asked_for() -> None:
    assert list(queues(chosen(), "orders", 5, 4.5, 60)) == [
        "orders_dlq",
        "orders",
        "orders_retry.5000",
        "orders_retry.60000",
    ]
    assert roles(chosen(), "orders", 90) == ["dead letters", "messages", "wait 1m30s, then back"]
    assert others(chosen()) == []


def test_classic_queues_have_no_type_and_what_waits_is_dead_lettered_at_least_once_all_the_same() -> None:
    classic = queues(chosen(queue_type="classic"), "orders", 5)
    assert classic["orders"] == classic["orders_dlq"] == {}
    assert classic["orders_retry.5000"] == {
        "x-queue-type": "quorum",
        "x-message-ttl": 5000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "orders",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_from_version_4_on_quorum_queues_have_no_delivery_limit_and_before_they_may_not_say_so(
    topology: str,
) -> None:
    before = chosen(topology, queue_type="quorum")
    after = before.for_version((4, 0, 5))
    assert all("x-delivery-limit" not in arguments for arguments in queues(before, "orders", 5).values())
    assert all(arguments["x-delivery-limit"] == -1 for arguments in queues(after, "orders", 5).values())
    assert before.for_version((4, 0, 5)).for_version((3, 13)) == before.for_version((3, 13))


def test_a_broker_whose_quorum_queues_know_no_ttl_gets_classic_ones_for_waiting() -> None:
    old = queues(chosen().for_version((3, 9, 20)), "orders", 5)
    assert old["orders"] == QUORUM
    assert "x-queue-type" not in old["orders_retry.5000"]
    assert "x-dead-letter-strategy" not in old["orders_retry.5000"]


def test_priorities_are_for_classic_queues_that_are_consumed() -> None:
    found = queues(chosen("plain-queues", queue_type="classic", max_priority=9), "orders", 5)
    assert {name for name, arguments in found.items() if "x-max-priority" in arguments} == {
        "orders",
        "orders_retry",
    }
    for queue_type in ("quorum", None):
        with pytest.raises(ConfigurationError, match="quorum queues take no x-max-priority") as refused:
            chosen(queue_type=queue_type, max_priority=9)
        assert 'queue_type = "classic"' in refused.value.remedy


# What a name is for


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_queue_of_a_layout_is_found_again_by_its_name(topology: str) -> None:
    found = chosen(topology, dead_letter_ttl=60.0)
    for name, arguments in queues(found, "orders", 1, 5, 600).items():
        assert found.spec(name) == QueueSpec(name, arguments)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("queue", ["orders", "a.b", "a_retry.7", "ä", "orders.deadletter.x"])
def test_a_queue_for_waiting_says_whose_it_is(topology: str, queue: str) -> None:
    found = chosen(topology)
    for delay in (0.1, 5, 600, 1e9):
        waiting = found.waiting(queue, delay)
        assert found.home_of_waiting(waiting.name) == queue
        assert waiting.name in found.all_waiting(queue)
        assert found.spec(waiting.name) == waiting
    assert found.home_of_waiting(queue) is None
    assert found.home_of_waiting(found.names.dead_of(queue)) is None


@pytest.mark.parametrize(
    "name", ["orders_retry.5001", "orders_retry.05000", "orders_retry.", "orders.5000", "_retry.5000"]
)
def test_a_name_that_only_looks_like_waiting_is_a_queue_like_any_other(name: str) -> None:
    assert chosen().home_of_waiting(name) is None
    assert chosen().spec(name) == QueueSpec(name, QUORUM)


def test_names_that_are_set_win_over_the_topologys() -> None:
    assert chosen("ttl-loop").names.dead == "{queue}.limbu"
    found = chosen("ttl-loop", dead="{queue}.limbo")
    assert (found.names.retry, found.names.dead) == ("{queue}.deadletter", "{queue}.limbo")
    with pytest.raises(ConfigurationError, match="would both be in"):
        chosen("ttl-loop", retry="{queue}.limbu")


# S3


def test_s3_plain_queues_are_as_any_service_declares_them() -> None:
    found = chosen("plain-queues")
    assert queues(found) == {"orders_dlq": {}, "orders_retry": {}, "orders": {}}
    assert found.consumed("orders") == ("orders", "orders_retry")
    assert found.writes_envelope
    assert not chosen().writes_envelope


def test_s3_a_retry_waits_and_comes_into_the_retry_queue() -> None:
    waiting = chosen("plain-queues").waiting("orders", 1)
    assert waiting.name == "orders_retry.1000"
    assert waiting.arguments["x-dead-letter-routing-key"] == "orders_retry"
    assert waiting.arguments.items() >= {**QUORUM, **SAFELY}.items()


# S4

S4 = "sgp.fechamento.reabertura.notificacao.dre"


def s4(**said: Any) -> Topology:
    loops = {"sgp.frequencia": Loop(180.0, 10)}
    return chosen("ttl-loop", exchange="sme.sgp.workers", queue_type="classic", loops=loops, **said)


def test_s4_the_loop_as_its_page_draws_it() -> None:
    assert queues(s4(), S4) == {
        f"{S4}.limbu": {},
        f"{S4}.deadletter": {"x-message-ttl": 600_000, "x-dead-letter-exchange": "sme.sgp.workers"},
        S4: {"x-dead-letter-exchange": "sme.sgp.workers.deadletter"},
    }
    assert others(s4(), S4) == [
        ExchangeSpec("sme.sgp.workers"),
        ExchangeSpec("sme.sgp.workers.deadletter"),
        BindingSpec("sme.sgp.workers.deadletter", f"{S4}.deadletter", S4),
        BindingSpec("sme.sgp.workers", S4, S4),
    ]
    assert roles(s4(), S4)[2:] == ["limbo", "wait 10m, then back", "binding", "messages", "binding"]
    assert s4().rejects


def test_s4_the_frequency_queue_waits_three_minutes() -> None:
    assert queues(s4(), "sgp.frequencia")["sgp.frequencia.deadletter"]["x-message-ttl"] == 180_000


def test_s4_quorum_queues_lose_nothing_on_any_hop() -> None:
    found = queues(chosen("ttl-loop"))
    assert found["orders"].items() >= {**QUORUM, **SAFELY}.items()
    assert found["orders.deadletter"].items() >= {**QUORUM, **SAFELY}.items()
    assert found["orders.limbu"] == QUORUM


def test_s4_quorum_queues_name_the_one_key_by_which_a_message_goes_round_and_classic_ones_are_as_s4s() -> None:
    key = "x-dead-letter-routing-key"
    found = queues(chosen("ttl-loop"))
    assert (found["orders"][key], found["orders.deadletter"][key]) == ("orders", "orders")
    assert not any(key in arguments for arguments in queues(s4(), S4).values())


def test_s4_the_loops_own_delay_waits_in_the_loop_and_another_one_in_a_delay_queue() -> None:
    assert s4().waiting(S4, 600).name == f"{S4}.deadletter"
    other = s4().waiting(S4, 5)
    assert other.name == f"{S4}.deadletter.5000"
    assert (other.arguments["x-dead-letter-exchange"], other.arguments["x-dead-letter-routing-key"]) == ("", S4)


def test_s4_the_way_into_the_loop_is_by_its_exchange_or_nothing_would_come_back() -> None:
    assert s4().route(f"{S4}.deadletter") == Route("sme.sgp.workers.deadletter", S4)
    for name in (S4, f"{S4}.limbu", f"{S4}.deadletter.5000"):
        assert s4().route(name) == Route("", name)


def test_exchanges_are_named_after_the_app_unless_they_are_named() -> None:
    assert others(chosen("ttl-loop"))[:2] == [
        ExchangeSpec("shop.workers"),
        ExchangeSpec("shop.workers.deadletter"),
    ]
    for topology, setting in (("ttl-loop", "exchange"), ("dead-letter-exchange", "dead_letter_exchange")):
        with pytest.raises(ConfigurationError, match="named after the app, and it has no name here") as refused:
            choose(Choice(topology=topology))
        assert "set app.name" in refused.value.remedy
        assert f"broker.rabbitmq.{setting}" in refused.value.remedy
    assert choose(Choice(topology="dead-letter-exchange", dead_letter_exchange="dlx.x")).extras("q").exchanges


# S2


def s2(**said: Any) -> Topology:
    return chosen("dead-letter-exchange", dead_letter_exchange="dlx.meajudaai", **said)


def test_s2_every_queue_dead_letters_to_its_own_queue_through_the_exchange() -> None:
    letters = {"x-dead-letter-exchange": "dlx.meajudaai", "x-dead-letter-routing-key": "deadletter.orders"}
    assert queues(s2()) == {"dlq.orders": QUORUM, "orders": QUORUM | letters | SAFELY}
    assert others(s2()) == [
        ExchangeSpec("dlx.meajudaai"),
        BindingSpec("dlx.meajudaai", "dlq.orders", "deadletter.orders"),
    ]
    assert chosen("dead-letter-exchange").extras("orders").exchanges == (ExchangeSpec("dlx.shop"),)


def test_s2_retries_wait_in_delay_queues() -> None:
    waiting = s2().waiting("orders", 2)
    assert waiting.name == "orders_retry.2000"
    assert waiting.arguments["x-dead-letter-exchange"] == ""
    assert s2().extras(waiting.name).exchanges == ()


def test_s2_without_the_automatic_dlx_the_queue_names_no_exchange() -> None:
    found = s2(automatic_dlx=False)
    assert queues(found)["orders"] == QUORUM
    assert ExchangeSpec("dlx.meajudaai") in others(found)


def test_s2_what_expires_in_a_dead_letter_queue_goes_to_another_one() -> None:
    found = queues(s2(dead_letter_ttl=24 * 3600.0))
    assert list(found) == ["dlq.orders.expired", "dlq.orders", "orders"]
    assert found["dlq.orders.expired"] == QUORUM
    assert others(s2(dead_letter_ttl=60.0)) == others(s2())
    assert s2(dead_letter_ttl=60.0).names.home_of_dead("dlq.orders.expired") == "orders"
    assert s2().names.home_of_dead("dlq.orders.expired") == "orders.expired"
    assert s2(dead_letter_ttl=60.0).extras("dlq.orders").queues == (QueueSpec("dlq.orders.expired", QUORUM),)
    assert found["dlq.orders"] == {
        **QUORUM,
        "x-message-ttl": 86_400_000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dlq.orders.expired",
        **SAFELY,
    }
