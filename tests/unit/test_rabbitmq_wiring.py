"""What the settings say about RabbitMQ reaches its driver and its topology."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from redrive import rabbitmq_wiring, wiring
from redrive.errors import ConfigurationError
from redrive.policy import Retry
from redrive.retry_waits import waits_of
from redrive.schedule import exponential
from redrive.settings import BrokerSettings, Settings
from redrive.transports import Names
from redrive.transports.rabbitmq.topology import ExchangeSpec
from redrive.transports.rabbitmq.topology_exchange import DeadLetterExchange
from redrive.transports.rabbitmq.topology_loop import Loop, TtlLoop
from redrive.transports.rabbitmq.transport import RabbitTransport

PASSWORD = "hunter2-not-told"  # noqa: S105  a canary


def settings(*, broker: dict[str, Any] | None = None, app: str = "", **rabbitmq: Any) -> Settings:
    told = {"url": f"amqp://guest:{PASSWORD}@localhost/v", "rabbitmq": rabbitmq, **(broker or {})}
    return Settings.model_validate({"broker": told, "app": {"name": app}})


def test_every_option_is_one_of_the_drivers_and_every_setting_reaches_it() -> None:
    said = settings(
        heartbeat="7s",
        connect_timeout="8s",
        publish_timeout="9s",
        consumer_timeout="10m",
        max_message_size="1MiB",
        declare="never",
        persistent=False,
        tls_ca="ca.pem",
        tls_certificate="own.pem",
        tls_key="key.pem",
        management_url="https://u:p@other:15671",
    )
    options = rabbitmq_wiring.transport_options(said)
    inspect.signature(RabbitTransport).bind("amqp://", **options)
    chosen = options.pop("topology")
    assert options == {
        "heartbeat": 7,
        "connect_timeout": 8,
        "publish_timeout": 9,
        "consumer_timeout": 600,
        "max_message_size": 2**20,
        "declare": "never",
        "persistent": False,
        "tls_ca": Path("ca.pem"),
        "tls_certificate": Path("own.pem"),
        "tls_key": Path("key.pem"),
        "management_url": "https://u:p@other:15671",
        "names": chosen.names,
    }


def test_the_defaults_of_settings_and_driver_are_the_same() -> None:
    options = rabbitmq_wiring.transport_options(settings())
    parameters = inspect.signature(RabbitTransport).parameters
    told = {name: value for name, value in options.items() if name not in {"names", "topology"}}
    assert told == {name: parameters[name].default for name in told}


async def test_the_transport_of_amqp_is_rabbitmqs_and_has_the_topologys_names() -> None:
    opened = wiring.transport(settings(topology="dead-letter-exchange"), app="shop")
    assert isinstance(opened, RabbitTransport)
    assert opened.names == Names(retry="{queue}_retry", dead="dlq.{queue}")
    await opened.close()


def test_the_app_in_code_names_the_exchanges_unless_the_settings_do() -> None:
    def exchange(said: Settings, app: str = "") -> tuple[ExchangeSpec, ...]:
        return rabbitmq_wiring.topology(said, app=app).extras("orders").exchanges

    assert exchange(settings(topology="dead-letter-exchange"), "code") == (ExchangeSpec("dlx.code"),)
    assert exchange(settings(app="set", topology="dead-letter-exchange"), "code") == (ExchangeSpec("dlx.set"),)
    named = settings(topology="dead-letter-exchange", dead_letter_exchange="dlx.meajudaai")
    assert exchange(named) == (ExchangeSpec("dlx.meajudaai"),)
    with pytest.raises(ConfigurationError, match="it has no name here") as refused:
        wiring.transport(settings(topology="ttl-loop"))
    assert PASSWORD not in str(refused.value) + refused.value.remedy


def test_s2s_settings_reach_its_topology() -> None:
    said = settings(
        app="shop",
        topology="dead-letter-exchange",
        dead_letter_routing_key="dead",
        automatic_dlx=False,
        dead_letter_ttl="72h",
    )
    chosen = rabbitmq_wiring.topology(said)
    assert isinstance(chosen, DeadLetterExchange)
    assert (chosen.routing_key, chosen.automatic, chosen.dead_letter_ttl) == ("dead", False, 259_200)


def test_s4s_queues_have_each_their_own_loop() -> None:
    queues = {"sgp.frequencia": {"loop": {"ttl": "3m", "cycles": 10}}}
    broker = {"url": "amqp://h", "rabbitmq": {"topology": "ttl-loop", "exchange": "sme.sgp.workers"}}
    chosen = rabbitmq_wiring.topology(Settings.model_validate({"broker": broker, "queues": queues}))
    assert isinstance(chosen, TtlLoop)
    assert (chosen.loop("sgp.frequencia"), chosen.loop("sgp.aula")) == (Loop(180, 10), Loop(600, 3))
    assert chosen.dead_letter_exchange == "sme.sgp.workers.deadletter"


@pytest.mark.parametrize(
    ("broker", "names"),
    [
        ({}, Names("{queue}_retry", "{queue}_dlq")),
        ({"rabbitmq": {"topology": "ttl-loop"}}, Names("{queue}_retry", "{queue}_dlq")),
        ({"url": "amqps://h", "rabbitmq": {"topology": "ttl-loop"}}, Names("{queue}.deadletter", "{queue}.limbu")),
        (
            {"url": "amqp://h", "dead_letter_queue": "x.{queue}", "rabbitmq": {"topology": "ttl-loop"}},
            Names("{queue}.deadletter", "x.{queue}"),
        ),
    ],
)
def test_names_are_those_that_are_set_then_the_topologys_and_on_the_embedded_broker_the_usual_ones(
    broker: dict[str, Any], names: Names
) -> None:
    assert BrokerSettings.model_validate(broker).names == names


def test_setup_makes_a_queue_for_every_delay_that_a_retry_can_wait_for() -> None:
    def delays(retry: Retry) -> list[float]:
        return sorted(waits_of(retry))

    assert delays(Retry(4, ["1s", "10s", "1m"])) == [1, 10, 60]
    assert delays(Retry(1)) == []
    assert delays(Retry(5, ["1s", "10s"], immediate=3)) == [1]
    assert delays(Retry(3, exponential("2s", jitter="equal"))) == [1, 2, 3, 4]
    assert delays(Retry(2, exponential("1s", jitter="full"))) == [0.1, 0.25, 0.5, 1]
    assert delays(Retry(10**9, exponential("1s", at_most=None, jitter="none")))[-1] == 86400
