"""S2's development set-up on a real broker: its settings by name, its exchange, its dead-letter queues, its
operations. The settings are those of examples/rabbitmq_users.toml, with shorter delays.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App
from redrive.settings import Settings
from support.at_work import settings_on, working
from support.desk import Desk
from support.patience import until
from support.plain_client import PlainClient
from support.rabbitmq_server import vhost_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.rabbitmq_server import RabbitServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "rabbitmq_users.toml"
QUEUE, DEAD = "users-events", "dlq.users-events"
RABBITMQ = {
    "DeadLetterExchange": "dlx.meajudaai",
    "DeadLetterRoutingKey": "deadletter",
    "EnableAutomaticDlx": True,
    "EnablePersistence": True,
}
DEVELOPMENT = {
    "MaxRetryAttempts": 3,
    "InitialRetryDelaySeconds": 2,
    "BackoffMultiplier": 2.0,
    "MaxRetryDelaySeconds": 60,
    "DeadLetterTtlHours": 24,
    "EnableDetailedLogging": True,
    "EnableAdminNotifications": False,
}
"""As S2 prints them."""


class BusinessRuleError(Exception):
    """S2's BusinessRuleException."""


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


def s2_settings(url: str, folder: Path, **rabbit: Any) -> Settings:
    written = tomllib.loads(EXAMPLE.read_text())
    told = written.pop("broker")["rabbitmq"] | rabbit
    written["retry"] |= {"initial_delay": "100ms"}
    return settings_on(url, folder, rabbitmq=told, **written)


def users(error: Exception | None = None) -> tuple[App, list[Any]]:
    app, calls = App("meajudaai"), []

    @app.handler(QUEUE)
    async def user_created(event: dict[str, Any]) -> None:
        calls.append(event)
        if error is not None:
            raise error

    return app, calls


def test_s2_every_value_of_its_development_settings_has_its_place() -> None:
    settings = Settings.model_validate(tomllib.loads(EXAMPLE.read_text()))
    rabbit, retry = settings.broker.rabbitmq, settings.retry
    assert {
        "DeadLetterExchange": rabbit.dead_letter_exchange,
        "DeadLetterRoutingKey": rabbit.dead_letter_routing_key,
        "EnableAutomaticDlx": rabbit.automatic_dlx,
        "EnablePersistence": rabbit.persistent,
    } == RABBITMQ
    assert {
        "MaxRetryAttempts": retry.attempts,
        "InitialRetryDelaySeconds": retry.initial_delay,
        "BackoffMultiplier": retry.factor,
        "MaxRetryDelaySeconds": retry.max_delay,
        "DeadLetterTtlHours": (rabbit.dead_letter_ttl or 0) / 3600,
        "EnableDetailedLogging": settings.log.level == "debug",
        "EnableAdminNotifications": settings.dead_letters.notify_critical,
    } == DEVELOPMENT


async def test_s2_its_infrastructure_is_there_before_the_first_message(
    tmp_path: Path, rabbitmq: RabbitServer, rabbitmq_url: str
) -> None:
    async with working(users()[0], s2_settings(rabbitmq_url, tmp_path)):
        queues = {each["name"]: each["arguments"] for each in rabbitmq.queues(vhost_of(rabbitmq_url))}

    assert queues[QUEUE]["x-dead-letter-exchange"] == "dlx.meajudaai"
    assert queues[QUEUE]["x-dead-letter-routing-key"] == "deadletter.users-events"
    assert queues[DEAD]["x-message-ttl"] == 24 * 3600 * 1000
    assert queues[DEAD]["x-dead-letter-routing-key"] == f"{DEAD}.expired"  # never away (SD8)
    assert f"{DEAD}.expired" in queues


@pytest.mark.parametrize(("error", "attempts"), [(BusinessRuleError("no name"), 1), (TimeoutError("CRM"), 3)])
async def test_s2_permanent_failures_go_to_the_dlq_at_once_and_transient_ones_after_three_attempts(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, error: Exception, attempts: int
) -> None:
    app, calls = users(error)
    async with working(app, s2_settings(rabbitmq_url, tmp_path)):
        other.publish(QUEUE, b'{"user_id": 1}', message_id="m-1", content_type="application/json")
        await until(lambda: other.count(DEAD))

    got = await other.next(DEAD)
    assert (len(calls), got.body, got.properties.message_id) == (attempts, b'{"user_id": 1}', "m-1")
    assert (got.properties.content_type, got.properties.delivery_mode) == ("application/json", 2)
    assert other.count(QUEUE) == 0


async def test_s2_what_the_broker_itself_dead_letters_comes_to_the_same_dlq(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    async with working(users()[0], s2_settings(rabbitmq_url, tmp_path)):
        pass
    other.publish(QUEUE, b"{}", message_id="m-1")
    await other.reject(QUEUE)

    got = await other.next(DEAD)
    assert (got.properties.message_id, got.headers["x-death"][0]["reason"]) == ("m-1", "rejected")


async def test_s2_without_the_automatic_dlx_queues_name_no_exchange_and_ours_still_reach_the_dlq(
    tmp_path: Path, rabbitmq: RabbitServer, rabbitmq_url: str, other: PlainClient
) -> None:
    app, _ = users(BusinessRuleError("no name"))
    async with working(app, s2_settings(rabbitmq_url, tmp_path, automatic_dlx=False)):
        queues = {each["name"]: each["arguments"] for each in rabbitmq.queues(vhost_of(rabbitmq_url))}
        other.publish(QUEUE, b"{}")
        await until(lambda: other.count(DEAD))

    assert "x-dead-letter-exchange" not in queues[QUEUE]


@pytest.mark.parametrize("persistent", [True, False])
async def test_s2_enable_persistence_is_about_what_the_app_sends(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, *, persistent: bool
) -> None:
    app = App("meajudaai")
    async with working(app, s2_settings(rabbitmq_url, tmp_path, persistent=persistent)):
        await app.send(QUEUE, {"user_id": 1})
    assert (await other.next(QUEUE)).properties.delivery_mode == (2 if persistent else 1)


async def test_s2_a_dead_letter_that_lay_too_long_is_in_the_queue_of_the_expired(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient
) -> None:
    app, _ = users(BusinessRuleError("no name"))
    async with working(app, s2_settings(rabbitmq_url, tmp_path, dead_letter_ttl="200ms")):
        other.publish(QUEUE, b'{"user_id": 1}', message_id="m-1")
        await until(lambda: other.count(f"{DEAD}.expired"))
    got = await other.next(f"{DEAD}.expired")
    assert (got.body, got.properties.message_id) == (b'{"user_id": 1}', "m-1")


# Operações de DLQ, by the command line


@pytest.fixture
def desk(tmp_path: Path, rabbitmq_url: str) -> Desk:
    text = EXAMPLE.read_text().replace("amqp://guest:guest@localhost:5672/%2F", rabbitmq_url)
    assert rabbitmq_url in text
    (tmp_path / "redrive.toml").write_text(text)
    return Desk(tmp_path)


def test_s2_list_and_reprocess_dead_letter_messages(desk: Desk, other: PlainClient) -> None:
    assert desk.redrive("setup", "--queue", QUEUE, "--yes").code == 0
    for number in range(3):
        other.publish(QUEUE, b'{"user_id": %d}' % number, message_id=f"m-{number}")
        asyncio.run(other.reject(QUEUE))
    asyncio.run(until(lambda: other.count(DEAD) == 3))
    assert desk.redrive("collect", DEAD, "--once").code == 0
    listed = json.loads(desk.redrive("list", "--queue", QUEUE, "--output", "json").out)
    assert {letter["message_id"] for letter in listed} == {"m-0", "m-1", "m-2"}

    ended = desk.redrive("retry", listed[0]["id"], "--yes")

    assert ended.code == 0, ended.err
    assert other.count(QUEUE) == 1
    ended = desk.redrive("reprocess", "--queue", DEAD, "--yes")
    assert "Reprocessed 2 messages: 0 from the queue dlq.users-events, 2 from the store" in ended.out
    assert other.count(QUEUE) == 3
