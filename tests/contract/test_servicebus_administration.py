"""The administration of the emulator of Service Bus, driven by the real SDK over HTTPS, and what Redrive asks it.
What a real namespace answers beyond that, no test here can show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import web
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.servicebus.aio.management import ServiceBusAdministrationClient
from azure.servicebus.management import CorrelationRuleFilter, SqlRuleFilter, TrueRuleFilter

from redrive.errors import PublishRefused, Unreachable
from redrive.message import Message
from redrive.testing.letters import NOON
from redrive.transports.servicebus.counts import Count
from redrive.transports.servicebus.entity_facts import QueueSpec, SubscriptionSpec, TopicSpec
from redrive.transports.servicebus.topics import Rule
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.patience import until
from support.servicebus.emulator import ServiceBusEmulator, emulated
from support.servicebus.requests import TOKEN
from support.servicebus.sections import Content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.certificates import Certificates


@pytest_asyncio.fixture
async def emulator(loopback_certificates: Certificates) -> AsyncIterator[ServiceBusEmulator]:
    async with emulated(loopback_certificates) as made:
        yield made


def options(emulator: ServiceBusEmulator, certificates: Certificates) -> dict[str, Any]:
    return {"administration": f"127.0.0.1:{emulator.administration.port}", "ca": str(certificates.authority)}


@pytest_asyncio.fixture
async def transport(
    emulator: ServiceBusEmulator, loopback_certificates: Certificates
) -> AsyncIterator[ServiceBusTransport]:
    made = ServiceBusTransport(emulator.url, **options(emulator, loopback_certificates))
    yield made
    await made.close()


async def test_the_sdk_makes_changes_tells_and_lists(
    emulator: ServiceBusEmulator, loopback_certificates: Certificates
) -> None:
    string = emulator.connection_string.partition(";")[2]
    endpoint = f"Endpoint=sb://127.0.0.1:{emulator.administration.port};{string}"
    trusted = {"connection_verify": str(loopback_certificates.authority)}
    async with ServiceBusAdministrationClient.from_connection_string(endpoint, **trusted) as client:
        for number in range(3):
            await client.create_queue(f"queue-{number}")
        with pytest.raises(ResourceExistsError):
            await client.create_queue("QUEUE-1")
        assert [each.name async for each in client.list_queues(max_page_size=2)] == [
            "queue-0",
            "queue-1",
            "queue-2",
        ]
        changed = await client.get_queue("queue-1")
        changed.max_delivery_count = 44
        await client.update_queue(changed)
        assert (await client.get_queue("queue-1")).max_delivery_count == 44
        with pytest.raises(ResourceNotFoundError):
            await client.get_queue("nowhere")
        await client.create_topic("events")
        await client.create_subscription("events", "mail")
        await client.create_rule("events", "mail", "large", filter=SqlRuleFilter("amount > 100"))
        rules = {each.name: each.filter async for each in client.list_rules("events", "mail")}
        assert isinstance(rules["$Default"], TrueRuleFilter)
        assert isinstance(rules["large"], SqlRuleFilter)
        assert [each.name async for each in client.list_subscriptions("events")] == ["mail"]
        assert [each.name async for each in client.list_topics()] == ["events"]
        with pytest.raises(ResourceNotFoundError):
            await client.get_subscription("events", "nobody")


async def test_what_lies_in_an_entity_and_in_its_subqueues_is_counted(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    orders = emulator.namespace.queue("orders")
    emulator.namespace.topic("events")
    mail = emulator.namespace.subscription("events", "mail")
    for entity, copies in ((orders, 2), (orders.dead_letters, 3), (orders.transfer_dead_letters, 4), (mail, 5)):
        for _ in range(copies):
            entity.enqueue(Content())
    orders.enqueue(Content(), due_at=emulator.now() + 60)

    counts = transport.entities
    assert await counts.of("orders") == Count(2, 1, 3)
    assert await counts.of("orders/$deadletterqueue") == Count(3, 0, 0)
    assert await counts.of("orders/$Transfer/$DeadLetterQueue") == Count(4, 0, 0)
    assert await counts.of("events/Subscriptions/mail") == Count(5, 0, 0)
    assert await counts.of("nowhere") is None
    assert await counts.of("orders/$DeadLetterQueue_dlq") is None
    depths = await transport.depths(["orders", "orders/$DeadLetterQueue"])
    assert (depths["orders"].ready, depths["orders_retry"].delayed) == (2, 1)
    assert depths["orders/$DeadLetterQueue"].ready == 3


async def test_rules_tell_who_would_get_what_is_marked(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport, loopback_certificates: Certificates
) -> None:
    entities = transport.entities
    assert await entities.rules("events") == {}
    await entities.create(TopicSpec(name="events"))
    for name in ("mail", "audit"):
        path = f"events/Subscriptions/{name}"
        await entities.create(SubscriptionSpec(name=path, max_delivery_count=9, lock_duration=30))
    wanted = CorrelationRuleFilter(label="placed", properties={"tenant": "acme"})
    async with transport._access.entities() as client:
        await client.create_rule("events", "mail", "acme", filter=wanted)
    assert await entities.rules("events") == {
        "mail": [Rule(sql="1=1"), Rule(properties={"tenant": "acme"}, more=True)],
        "audit": [Rule(sql="1=1")],
    }
    assert await transport.readers_of_origin(["events/Subscriptions/mail"]) == ("audit", "mail")
    key = emulator.url.rpartition("@")[0].rpartition(":")[2]
    denied = ServiceBusTransport(emulator.url.replace(key, "another"), **options(emulator, loopback_certificates))
    assert await denied.readers_of_origin(["events/Subscriptions/mail"]) is None
    await denied.close()


async def test_what_exists_is_left_as_it_is_and_what_is_refused_is_told(
    emulator: ServiceBusEmulator, transport: ServiceBusTransport
) -> None:
    first = QueueSpec(name="orders", max_delivery_count=5, lock_duration=30)
    await transport.entities.create(first)
    await transport.entities.create(QueueSpec(name="orders", max_delivery_count=9, lock_duration=30))
    orders = await transport.entities.facts("orders")
    assert orders is not None
    assert (orders.most_deliveries, orders.lock, orders.keeps_expired, orders.lives) == (5, 30, True, None)
    emulator.administration.refuses = "MaxSizeInMegabytes is out of range"
    with pytest.raises(PublishRefused, match="out of range"):
        await transport.entities.create(TopicSpec(name="events"))
    with pytest.raises(PublishRefused):
        await transport.entities.create(
            SubscriptionSpec(name="events/Subscriptions/mail", max_delivery_count=5, lock_duration=30)
        )


async def test_an_administration_that_nobody_vouches_for_is_not_asked(emulator: ServiceBusEmulator) -> None:
    stranger = ServiceBusTransport(emulator.url, administration=f"127.0.0.1:{emulator.administration.port}")
    with pytest.raises(Unreachable) as refused:
        await stranger.entities.facts("orders")
    await stranger.close()
    assert "broker.servicebus.administration" in refused.value.remedy
    assert not emulator.administration.asked


async def test_without_a_key_entra_id_says_who_asks(
    emulator: ServiceBusEmulator, loopback_certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an App Service of Azure: its managed identity is asked for over HTTP, here of the test's own."""

    async def token(_request: web.Request) -> web.Response:
        told = {"access_token": TOKEN, "expires_on": "4102444800", "resource": "https://servicebus.azure.net"}
        return web.json_response({**told, "token_type": "Bearer"})

    served = web.Application()
    served.router.add_get("/token", token)
    runner = web.AppRunner(served)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{runner.addresses[0][1]}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "known to this machine alone")
    queue = emulator.namespace.queue("orders")
    keyless = f"servicebus-emulator://{emulator.url.rpartition('@')[2]}"
    transport = ServiceBusTransport(keyless, **options(emulator, loopback_certificates))
    try:
        assert await transport.entities.facts("orders") is not None
        await transport.send(_message())
        await until(lambda: len(queue.messages) == 1)
    finally:
        await transport.close()
        await runner.cleanup()


async def test_without_a_key_and_an_identity_it_says_what_to_do(
    emulator: ServiceBusEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    emulator.namespace.queue("orders")
    transport = ServiceBusTransport(f"servicebus-emulator://{emulator.url.rpartition('@')[2]}")
    for asking in (transport.send(_message()), transport.entities.facts("orders")):
        with pytest.raises(Unreachable) as refused:
            await asking
        assert "az login" in refused.value.remedy
    await transport.close()


def _message() -> Message:
    return Message(id="m-1", queue="orders", body=b"{}", sent_at=NOON)
