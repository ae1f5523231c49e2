"""How the driver meets a real broker: TLS, several hosts, wrong words, queues that go away, alarms, and the
properties that decide who comes first and who goes.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from redrive.clock import new_id
from redrive.errors import ConfigurationError, PublishRefused, Unreachable
from redrive.message import Message
from redrive.transports import delays
from redrive.transports.rabbitmq import topology as topologies
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.topology_choice import Choice, choose
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.amqp_proxy import PUBLISH, proxied
from support.certificates import make_certificates
from support.loopback_ports import free_ports
from support.opened_rabbitmq import message, opened
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.transports import Delivery
    from support.rabbitmq_server import PrivateRabbit

PATIENCE = 30.0


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


async def taken(transport: RabbitTransport, count: int = 1) -> list[Delivery]:
    async with asyncio.timeout(PATIENCE), aclosing(transport.receive("orders", prefetch=count)) as deliveries:
        return [await anext(deliveries) for _ in range(count)]


async def there_and_back(transport: RabbitTransport) -> None:
    sent = message()
    await transport.send(sent)
    [delivery] = await taken(transport)
    assert delivery.message == sent
    await transport.ack(delivery)


def as_it_came(delivery: Delivery) -> tuple[Any, ...]:
    """All but when it was sent, which it does not tell."""
    given = delivery.message
    return given.id, given.body, given.headers, given.properties, given.source


def with_netloc(url: str, netloc: str) -> str:
    return urlsplit(url)._replace(netloc=netloc).geturl()


# TLS


async def test_tls_with_the_authority_of_the_broker(own_rabbitmq: PrivateRabbit) -> None:
    assert own_rabbitmq.certificates is not None
    async with opened(own_rabbitmq.tls_url, tls_ca=own_rabbitmq.certificates.authority) as transport:
        await there_and_back(transport)
        large = message(bytes(range(256)) * 8192)
        await transport.send(large)
        assert (await taken(transport))[0].message == large


async def test_a_broker_of_another_authority_is_not_spoken_to(own_rabbitmq: PrivateRabbit, tmp_path: Path) -> None:
    strange = make_certificates(tmp_path / "strange").authority
    async with opened(own_rabbitmq.tls_url, tls_ca=strange) as transport:
        with pytest.raises(Unreachable, match="certificate verify failed") as refused:
            await transport.send(message())
    assert "tls_ca" in (refused.value.remedy or "")


async def test_an_authority_that_cannot_be_read_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        RabbitTransport("amqps://localhost", tls_ca=tmp_path / "missing.pem")
    assert "tls_ca" in (wrong.value.remedy or "")


# Who and where


async def test_of_several_hosts_the_first_that_answers_is_taken(rabbitmq_url: str) -> None:
    url = urlsplit(rabbitmq_url)
    dead, also_dead = free_ports(2)
    user = f"{url.username}:{url.password}"
    hosts = f"{user}@127.0.0.1:{dead},{url.hostname}:{url.port},127.0.0.1:{also_dead}"
    for _ in range(5):  # their order is not always the same
        async with opened(with_netloc(rabbitmq_url, hosts)) as transport:
            await there_and_back(transport)


async def test_if_none_answers_each_is_told(rabbitmq_url: str) -> None:
    ports = free_ports(2)
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    async with opened(with_netloc(rabbitmq_url, f"guest:secret-canary@{hosts}")) as transport:
        with pytest.raises(Unreachable) as refused:
            await transport.send(message())
    assert all(str(port) in str(refused.value) for port in ports)
    assert "secret-canary" not in f"{refused.value} {refused.value.remedy}"


async def test_a_wrong_password_is_told_without_it(rabbitmq_url: str) -> None:
    url = urlsplit(rabbitmq_url)
    wrong = with_netloc(rabbitmq_url, f"guest:secret-canary@{url.hostname}:{url.port}")
    async with opened(wrong) as transport:
        with pytest.raises(Unreachable, match="ACCESS_REFUSED") as refused:
            await transport.send(message())
    assert "password" in (refused.value.remedy or "")
    assert "secret-canary" not in f"{refused.value} {refused.value.remedy}"


async def test_a_vhost_that_is_not_there_is_told(rabbitmq_url: str) -> None:
    async with opened(urlsplit(rabbitmq_url)._replace(path="/no%2Fwhere").geturl()) as transport:
        with pytest.raises(Unreachable, match="no/where") as refused:
            await transport.send(message())
    assert "vhost" in (refused.value.remedy or "")


async def test_what_listens_there_may_be_no_broker_at_all() -> None:
    async def nonsense(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with opened(f"amqp://guest:guest@127.0.0.1:{port}/", connect_timeout=2) as transport:
        with pytest.raises(Unreachable):
            await transport.send(message())
    server.close()


# Queues that go away


async def test_a_queue_that_somebody_deletes_is_made_again_and_consumption_goes_on(
    rabbitmq_url: str, other: PlainClient
) -> None:
    async with opened(rabbitmq_url) as transport:
        await transport.send(message(b"one"))
        async with aclosing(transport.receive("orders", prefetch=1)) as deliveries:
            await transport.ack(await anext(deliveries))
            waiting = asyncio.create_task(anext(deliveries))
            await until(lambda: other.consumers("orders"))
            other.channel.queue_delete("orders")
            with pytest.raises(Unreachable, match="the queue is gone"):
                await waiting
        async with aclosing(transport.receive("orders", prefetch=1)) as deliveries:
            waiting = asyncio.create_task(anext(deliveries))
            await until(lambda: other.consumers("orders"))
            await transport.send(message(b"two"))
            assert (await waiting).message.body == b"two"


async def test_a_queue_deleted_between_two_sends_is_made_again(rabbitmq_url: str, other: PlainClient) -> None:
    async with opened(rabbitmq_url) as transport:
        await transport.send(message(b"one"))
        await transport.send(message(b"one"), delay=0.1)
        other.channel.queue_delete("orders")
        other.channel.queue_delete("orders_retry.100")
        await transport.send(message(b"two"))
        await transport.send(message(b"three"), delay=0.1)
        assert {each.message.body for each in await taken(transport, 2)} == {b"two", b"three"}


async def test_a_queue_deleted_before_something_is_sent_at_once_is_made_again(
    rabbitmq_url: str, other: PlainClient
) -> None:
    word: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    async with opened(rabbitmq_url) as transport:
        await transport.send(message(b"one"))
        other.channel.queue_delete("orders")
        assert transport.send_at_once(message(b"two"), queue="orders", done=word.set_result)
        assert await word is None
        assert [each.message.body for each in await taken(transport)] == [b"two"]


async def test_what_is_on_its_way_when_the_connection_is_lost_is_told_as_unknown(rabbitmq_url: str) -> None:
    word: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    async with proxied(rabbitmq_url) as proxy, opened(proxy.url) as transport:
        await transport.send(message(b"one"))
        proxy.hold_answers()
        assert transport.send_at_once(message(b"two"), queue="orders", done=word.set_result)
        proxy.cut()
        assert isinstance(await word, Unreachable)


async def test_declare_never_makes_nothing_and_says_what_to_do(rabbitmq_url: str, other: PlainClient) -> None:
    async with opened(rabbitmq_url, declare="never") as transport:
        with pytest.raises(PublishRefused, match="there is no queue 'orders'") as refused:
            await transport.send(message())
        assert refused.value.permanent
        assert "redrive setup" in (refused.value.remedy or "")
        with pytest.raises(Unreachable, match="there is no queue 'orders'"):
            await taken(transport)
        other.declare("orders")
        await there_and_back(transport)
        with pytest.raises(PublishRefused, match=r"there is no queue 'orders_retry\.100'"):
            await transport.send(message(), delay=0.1)
        assert (await transport.depths(("orders",))).keys() <= {"orders"}


# Alarms


async def test_while_the_broker_blocks_publishing_acks_get_through_and_sends_wait(
    own_rabbitmq: PrivateRabbit,
) -> None:
    async with opened(own_rabbitmq.url) as transport:
        for _ in range(2):
            await transport.send(message())
        first, second = await taken(transport, 2)
        own_rabbitmq.ctl("set_vm_memory_high_watermark", "absolute", "1")
        sending = asyncio.create_task(transport.send(message()))  # tells the broker that we publish
        await until(lambda: _blocked(transport))
        blocked = asyncio.create_task(transport.send(message()))
        await transport.ack(first)
        await until(lambda: _unacked(own_rabbitmq) == 1)
        assert not blocked.done()
        own_rabbitmq.ctl("set_vm_memory_high_watermark", "absolute", "2GB")
        await asyncio.gather(sending, blocked)
        await transport.ack(second)


async def test_blocked_for_longer_than_the_deadline_a_send_is_certainly_not_sent(
    own_rabbitmq: PrivateRabbit,
) -> None:
    async with proxied(own_rabbitmq.url) as proxy, opened(proxy.url, publish_timeout=0.5) as transport:
        await transport.send(message())
        own_rabbitmq.ctl("set_vm_memory_high_watermark", "absolute", "1")
        with pytest.raises(Unreachable):
            await transport.send(message())
        await until(lambda: _blocked(transport))
        before = len(proxy.methods(PUBLISH))
        with pytest.raises(Unreachable, match="blocks publishing") as refused:
            await transport.send(message())
        assert "free memory" in (refused.value.remedy or "")
        assert len(proxy.methods(PUBLISH)) == before
        own_rabbitmq.ctl("set_vm_memory_high_watermark", "absolute", "2GB")


def _blocked(transport: RabbitTransport) -> str:
    current = transport._publishing._current
    return "" if current is None else current.blocked


def _unacked(server: PrivateRabbit) -> int:
    [queue] = [each for each in server.queues() if each["name"] == "orders"]
    return int(queue.get("messages_unacknowledged", -1))


# Properties that decide


async def test_a_higher_priority_comes_first_through_a_retry_as_well(
    rabbitmq_url: str, other: PlainClient
) -> None:
    classic = choose(Choice(queue_type="classic", max_priority=9))
    async with opened(rabbitmq_url, topology=classic) as transport:
        await transport.send(message(b"none"))
        for priority in (1, 9, 5):
            other.publish("orders", str(priority).encode(), priority=priority)
        first = await taken(transport, 4)
        assert [each.message.body for each in first] == [b"9", b"5", b"1", b"none"]
        for delivery in first:
            await transport.retry(delivery, delivery.message, delay=0.1, trail=b"")
        await until(lambda: other.count("orders") == 4)
        assert [each.message.body for each in await taken(transport, 4)] == [b"9", b"5", b"1", b"none"]


async def test_the_priority_of_our_own_is_the_one_in_its_metadata(rabbitmq_url: str, other: PlainClient) -> None:
    sent_at = datetime(2026, 3, 1, tzinfo=UTC)
    async with opened(rabbitmq_url) as transport:
        for priority in (7, 256, "high", True):
            metadata = {"priority": priority}
            await transport.send(
                Message.create(id=new_id(), sent_at=sent_at, queue="orders", data={}, metadata=metadata)
            )
    assert [(await other.next("orders")).properties.priority for _ in range(4)] == [7, None, None, None]


async def test_a_message_that_would_expire_does_not_when_it_waits_for_its_retry_or_is_put_back(
    rabbitmq_url: str, other: PlainClient
) -> None:
    async with opened(rabbitmq_url) as transport:
        other.declare("orders", queue_type="quorum")
        other.publish("orders", b"{}", expiration="300", message_id="m-1")
        [delivery] = await taken(transport)
        await transport.retry(delivery, delivery.message, delay=0.5, trail=b"")
        await until(lambda: other.count("orders"))
        [again] = await taken(transport)
        assert as_it_came(again) == as_it_came(delivery)
        await transport.send(again.message, queue="copies")
        await transport.ack(again)
    got = await other.next("copies")
    assert (got.properties.expiration, got.properties.message_id) == (None, "m-1")


async def test_no_more_than_prefetch_are_sent_to_us(rabbitmq_url: str, other: PlainClient) -> None:
    async with opened(rabbitmq_url) as transport:
        await asyncio.gather(*(transport.send(message()) for _ in range(20)))
        async with aclosing(transport.receive("orders", prefetch=7)) as deliveries:
            await anext(deliveries)
            await until(lambda: other.count("orders") == 13)
            assert (await transport.depths(("orders",)))["orders"].leased == 7


async def test_in_two_queues_that_are_read_for_one_the_prefetch_is_still_one(rabbitmq_url: str) -> None:
    plain = choose(Choice(topology="plain-queues"))
    async with opened(rabbitmq_url, topology=plain) as transport:
        for _ in range(4):
            await transport.send(message())
            await transport.send(message(), queue="orders_retry")
        async with aclosing(transport.receive("orders", prefetch=3)) as deliveries:
            held = [await anext(deliveries) for _ in range(3)]
            fourth = asyncio.create_task(anext(deliveries))
            for _ in range(3):
                await transport.depths(("orders",))
            assert not fourth.done()
            await transport.ack(held[0])
            await fourth


# Long delays


async def test_a_delay_longer_than_the_longest_queue_is_waited_for_in_several(
    rabbitmq_url: str, other: PlainClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = (100, 250)
    monkeypatch.setattr(delays, "LADDER", short)
    monkeypatch.setattr(topologies, "LADDER", short)
    async with opened(rabbitmq_url, topology=Topology()) as transport:
        other.declare("orders", queue_type="quorum")
        other.publish("orders", b"{}", message_id="m-1", headers={"own": 1})
        [delivery] = await taken(transport)
        began = datetime.now(UTC)
        await transport.retry(delivery, delivery.message, delay=0.9, trail=b"trail")
        [again] = await taken(transport)
        assert (datetime.now(UTC) - began).total_seconds() >= 0.9
        assert (as_it_came(again), again.attempt, again.trail) == (as_it_came(delivery), 2, b"trail")
        assert again.identity == delivery.identity
        await transport.ack(again)
        assert await transport.depths(("orders",)) == {}
