"""What the settings say about Kafka reaches its driver, and what is secret in them is never shown."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from redrive import kafka_wiring, wiring
from redrive.configuration import inspect as inspected
from redrive.configuration import load
from redrive.errors import ConfigurationError
from redrive.settings import BrokerSettings, Settings
from redrive.transports import Names, capabilities_of
from redrive.transports.kafka.topics import TopicPlan
from redrive.transports.kafka.transport import KafkaTransport
from support.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-not-told"  # noqa: S105  a canary


def settings(app: str = "", **kafka: Any) -> Settings:
    broker = {"url": f"kafka://user:{SECRET}@localhost:1", "kafka": kafka}
    return Settings.model_validate({"broker": broker, "app": {"name": app}})


def test_every_option_is_one_of_the_drivers_and_every_setting_reaches_it() -> None:
    said = settings(
        group="billing",
        retry_topics="single",
        declare="never",
        partitions=3,
        replication=2,
        retention="9d",
        max_message_bytes="2MiB",
        start="latest",
        connect_timeout="1s",
        publish_timeout="2s",
        revoke_grace="3s",
        client={"sasl.mechanism": "PLAIN"},
    )
    options = kafka_wiring.transport_options(said)
    inspect.signature(KafkaTransport).bind("kafka://", **options)
    assert options == {
        "names": Names(),
        "group": "billing",
        "retry_topics": "single",
        "declare": "never",
        "plan": TopicPlan(partitions=3, replication=2, retention=9 * 86400, max_message_bytes=2 * 2**20),
        "start": "latest",
        "connect_timeout": 1,
        "publish_timeout": 2,
        "revoke_grace": 3,
        "client": {"sasl.mechanism": "PLAIN"},
    }


def test_the_defaults_of_settings_and_driver_are_the_same() -> None:
    options = kafka_wiring.transport_options(settings())
    parameters = inspect.signature(KafkaTransport).parameters
    told = {name: value for name, value in options.items() if name not in {"names", "plan", "client"}}
    assert told == {name: parameters[name].default for name in told}
    assert (options["plan"], options["client"]) == (TopicPlan(), {})


@pytest.mark.parametrize("scheme", ["kafka", "kafkas"])
async def test_the_transport_of_kafka_has_the_names_that_are_set(scheme: str) -> None:
    broker = {"url": f"{scheme}://h", "retry_queue": "{queue}-retry", "dead_letter_queue": "{queue}-dlt"}
    opened = wiring.transport(Settings.model_validate({"broker": broker}))
    assert isinstance(opened, KafkaTransport)
    assert opened.names == Names(retry="{queue}-retry", dead="{queue}-dlt")
    assert opened.retry_topics("orders")[:2] == ("orders-retry", "orders-retry_100ms")
    assert opened.group_of("orders-dlt") == "redrive-dead-letters"
    await opened.close()


async def test_dead_letters_come_side_by_side_where_retries_block_their_partition() -> None:
    opened = wiring.transport(settings(retry_topics="blocking"))
    assert [capabilities_of(opened, name).side_by_side for name in ("orders", "orders_dlq")] == [False, True]
    await opened.close()


def test_names_are_the_usual_ones_unless_they_are_set() -> None:
    assert BrokerSettings.model_validate({"url": "kafka://h"}).names == Names()


def test_the_group_is_the_same_for_all_who_have_the_settings() -> None:
    """Whoever sends a redrive may not know the name that the app has in code."""
    assert kafka_wiring.group(settings()) == "redrive"
    assert kafka_wiring.group(settings(app="shop")) == "shop"
    assert kafka_wiring.group(settings(app="shop", group="billing")) == "billing"


def test_the_clients_settings_are_written_with_dots_in_a_file_and_without_in_variables(tmp_path: Path) -> None:
    file = tmp_path / "redrive.toml"
    file.write_text(
        '[broker.kafka.client]\nsasl.mechanism = "PLAIN"\n"ssl.ca.location" = "ca.pem"\nfetch.min.bytes = 1\n'
    )
    environ = {"REDRIVE_BROKER__KAFKA__CLIENT__SASL_MECHANISM": "SCRAM-SHA-256"}
    assert load(config=file, environ=environ).settings.broker.kafka.client.reveal() == {
        "sasl.mechanism": "SCRAM-SHA-256",
        "ssl.ca.location": "ca.pem",
        "fetch.min.bytes": 1,
    }


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ({"group.id": SECRET}, "cannot set 'group.id'"),
        ({"enable": {"auto": {"commit": True}}}, "cannot set 'enable.auto.commit'"),
        ({"sasl.password": [SECRET]}, "'sasl.password' should be a text"),
        (SECRET, "should be a table of librdkafka's own settings"),
    ],
)
def test_what_the_driver_stands_on_and_what_is_no_setting_is_refused(client: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told) as refused:
        settings(client=client)
    assert SECRET not in str(refused.value)


def test_a_refused_table_is_told_by_its_line_without_its_values(tmp_path: Path) -> None:
    file = tmp_path / "redrive.toml"
    file.write_text(f'[broker.kafka]\nclient = {{ "group.id" = "{SECRET}" }}\n')
    [problem] = inspected(config=file, environ={}).problems
    assert "line 2: broker.kafka.client: cannot set 'group.id'" in str(problem)
    assert SECRET not in f"{problem!r} {problem.remedy}"


def test_no_value_of_the_client_is_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "redrive.toml").write_text(
        f'[broker]\nurl = "kafka://u:{SECRET}@h"\n[broker.kafka.client]\nsasl.password = "{SECRET}"\n'
    )
    for output in ("table", "json", "csv"):
        shown = desk.redrive("config", "show", "--output", output)
        assert (shown.code, SECRET in shown.out + shown.err) == (0, False)
    rows = {row["key"]: row["value"] for row in json.loads(desk.redrive("config", "show", "--output", "json").out)}
    assert rows["broker.kafka.client"] == "sasl.password=***"
    assert SECRET not in repr(load(config=tmp_path / "redrive.toml", environ={}))


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({"sasl.mechanizm": SECRET}, "'sasl.mechanizm'"),
        ({"security.protocol": SECRET}, "'security.protocol'"),
        ({"security.protocol": "SSL", "ssl.key.pem": SECRET}, "'ssl.key.pem'"),
        ({"sasl.mechanism": SECRET}, "what is in [broker.kafka.client]"),
    ],
)
def test_what_librdkafka_cannot_use_is_told_by_its_name_alone(client: dict[str, Any], named: str) -> None:
    async def used() -> None:
        async with wiring.producer(settings(client=client)) as opened:
            await opened.depths(["orders"])

    with pytest.raises(ConfigurationError) as refused:
        asyncio.run(used())
    assert named in str(refused.value)
    assert SECRET not in f"{refused.value} {refused.value.remedy} {refused.value.__cause__}"
