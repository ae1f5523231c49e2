"""Clients that nobody here wrote read what we write, and we read and send again what they write, byte for byte:
pika, the C tools amqp-publish, amqp-get and amqp-consume of rabbitmq-c, and the broker's own management.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pika
import pytest

from redrive.clock import new_id
from redrive.message import Message
from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq.content import MAGIC
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.topology_choice import Choice, choose
from support.amqp_proxy import HEADER, proxied
from support.opened_rabbitmq import opened, taken
from support.plain_client import PlainClient
from support.rabbitmq_server import vhost_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.transports import Delivery
    from support.rabbitmq_server import RabbitServer

PATIENCE = 30.0
BINARY = bytes(range(256)) + b"\x00\r\n\xff"
NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
HEADERS: dict[str, Any] = {
    "text": "é 日本語",
    "empty": "",
    "bytes": b"\x00\xff",
    "byte": 1,
    "negative": -70_000,
    "long": 2**40,
    "decimal": Decimal("12.34"),
    "true": True,
    "none": None,
    "when": NOW,
    "list": [1, "a", None, [b"x"]],
    "table": {"deep": {"deeper": [15, {"deepest": False}]}, "": 0},
}
EVERY: dict[str, Any] = {
    "content_type": "application/octet-stream",
    "content_encoding": "gzip",
    "headers": HEADERS,
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c-1",
    "reply_to": "answers",
    "message_id": "m-1",
    "timestamp": 1_772_366_405,
    "type": "order.created",
    "user_id": "guest",
    "app_id": "checkout é",
}
"""All but expiration and cluster id, which we take off."""


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        for queue in ("orders", "copies"):
            client.declare(queue, queue_type="quorum")
        yield client


def encoded(**given: Any) -> bytes:
    """The properties as pika writes them."""
    return b"".join(pika.BasicProperties(**given).encode())


def raw_of(delivery: Delivery) -> bytes:
    kept = delivery.message.properties or b""
    return kept.removeprefix(MAGIC + b"\x00\x06orders")


# pika


@pytest.mark.parametrize("body", [b"", BINARY, b"x" * 300_000], ids=["empty", "binary", "several frames"])
async def test_what_pika_writes_we_read_keep_and_send_again_byte_for_byte(
    rabbitmq_url: str, other: PlainClient, body: bytes
) -> None:
    other.publish("orders", body, **EVERY)
    async with proxied(rabbitmq_url) as proxy, opened(proxy.url) as transport:
        delivery = await taken(transport)
        assert (raw_of(delivery), delivery.message.body) == (encoded(**EVERY), body)
        await transport.send(delivery.message, queue="copies")
        await transport.ack(delivery)
        [header] = [frame for frame in proxy.asked if frame.kind == HEADER]
        assert header.payload[12:] == encoded(**EVERY)
    got = await other.next("copies")
    assert got.body == body
    assert {name: getattr(got.properties, name) for name in EVERY if name != "headers"} == {
        name: value for name, value in EVERY.items() if name != "headers"
    }
    assert told_by_pika(got.headers) == told_by_pika(read_by_pika(HEADERS))


def told_by_pika(headers: dict[str, Any]) -> dict[str, str]:
    """With their types, without what the broker and we have added: then the broker has sorted them by name."""
    added = {"x-redrive", "x-delivery-count"}
    return {name: repr(value) for name, value in headers.items() if name not in added}


def read_by_pika(headers: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pika.BasicProperties().decode(encoded(headers=headers)).headers
    return found


async def test_what_pika_writes_comes_back_from_retry_and_dead_letter_queue_byte_for_byte(
    rabbitmq_url: str, other: PlainClient
) -> None:
    given = EVERY | {"expiration": "60000", "headers": HEADERS | {"x-death": "mine", "x-first-death-queue": "q"}}
    other.publish("orders", BINARY, **given)
    async with opened(rabbitmq_url) as transport:
        first = await taken(transport)
        assert raw_of(first) == encoded(**given)
        await transport.retry(first, first.message, delay=0.1, trail=b"story")
        again = await taken(transport)
        assert (raw_of(again), again.message.body, again.attempt) == (encoded(**given), BINARY, 2)
        assert again.identity == first.identity
        await transport.send(again.message, queue="orders_dlq", trail=b"story")
        await transport.ack(again)
        dead = await taken(transport, "orders_dlq")
        assert (raw_of(dead), dead.message.body) == (encoded(**given), BINARY)
        await transport.ack(dead)


async def test_our_copy_in_a_dead_letter_queue_reads_for_pika_as_the_original(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.publish("orders", BINARY, **EVERY)
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        await transport.send(delivery.message, queue="orders_dlq", trail=b"story")
        await transport.ack(delivery)
    got = await other.next("orders_dlq")
    assert (got.body, got.properties.message_id, got.properties.type) == (BINARY, "m-1", "order.created")
    assert told_by_pika(got.headers) == told_by_pika(read_by_pika(HEADERS))


async def test_what_we_write_pika_reads_with_its_types(rabbitmq_url: str, other: PlainClient) -> None:
    headers = (
        ("text", "é"), ("bytes", b"\x00\xff"), ("int", 7), ("long", 2**40), ("true", True),
        ("none", None), ("when", NOW), ("list", [1, "a"]), ("table", {"a": {"b": None}}),
    )  # fmt: skip
    message = Message(
        id="m-1", queue="orders", body=BINARY, sent_at=NOW, headers=headers, source="checkout é", key=b"k"
    )
    async with opened(rabbitmq_url) as transport:
        await transport.send(message)
    got = await other.next("orders")
    assert got.body == BINARY
    assert (got.properties.message_id, got.properties.app_id) == ("m-1", "checkout é")
    assert (got.properties.timestamp, got.properties.delivery_mode) == (int(NOW.timestamp()), 2)
    found = {name: value for name, value in got.headers.items() if name in dict(headers)}
    assert found == dict(headers)
    assert type(found["bytes"]) is bytes


async def test_the_broker_itself_reads_our_numbers(rabbitmq: RabbitServer, rabbitmq_url: str) -> None:
    """Doubles too, which pika reads as integers."""
    headers = (("tenth", 1.1), ("small", 5e-324), ("long", 2**53 - 1), ("true", True), ("deep", {"list": [0.1]}))
    async with opened(rabbitmq_url) as transport:
        await transport.send(Message(id="m-1", queue="orders", body=b"{}", sent_at=NOW, headers=headers))
    told = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    [got] = rabbitmq.api("POST", f"/queues/{quote(vhost_of(rabbitmq_url), safe='')}/orders/get", told)
    found = got["properties"]["headers"]
    assert {name: found[name] for name in dict(headers)} == dict(headers)


@pytest.mark.parametrize("given", [{}, {"headers": {}}, {"headers": {"a": ""}}, {"content_type": ""}], ids=repr)
async def test_absent_is_not_empty(rabbitmq_url: str, other: PlainClient, given: dict[str, Any]) -> None:
    """pika leaves out what is empty, so an empty table is made by hand here."""
    other.publish("orders", b"", **given)
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        assert raw_of(delivery) == encoded(delivery_mode=2, **given)
        await transport.send(delivery.message, queue="copies")
        await transport.ack(delivery)
        copy = await taken(transport, "copies")
        assert (copy.message.properties or b"").endswith(encoded(delivery_mode=2, **given))


async def test_a_transient_message_of_others_becomes_persistent_when_we_put_it_anywhere(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.publish("orders", b"{}", delivery_mode=1)
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        assert props.fields(raw_of(delivery))[props.DELIVERY_MODE] == b"\x01"
        await transport.retry(delivery, delivery.message, delay=0.1, trail=b"")
    got = await other.next("orders")
    assert got.properties.delivery_mode == 2


@pytest.mark.parametrize("given", [{}, {"message_id": "m-1"}], ids=["unnamed", "named"])
@pytest.mark.parametrize("topology", ["delay-queues", "plain-queues"])
async def test_g3_a_retried_message_of_others_keeps_its_identity(
    rabbitmq_url: str, other: PlainClient, given: dict[str, Any], topology: str
) -> None:
    other.publish("orders", b"{}", **given)
    async with opened(rabbitmq_url, topology=choose(Choice(topology=topology))) as transport:
        first = await taken(transport)
        await transport.retry(first, first.message, delay=0.1, trail=b"")
        second = await taken(transport)
        await transport.retry(second, second.message, delay=0, trail=b"")
        third = await taken(transport)
        assert {first.identity, second.identity, third.identity} == {first.identity}
        assert (third.attempt, third.message.id) == (3, first.message.id)
        await transport.ack(third)


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
async def test_g3_a_message_without_an_id_is_the_same_when_it_is_delivered_again(
    rabbitmq_url: str, other: PlainClient, queue_type: str
) -> None:
    """A quorum queue counts the deliveries in its headers, and sorts them by name."""
    other.declare("anonymous", queue_type=queue_type)
    other.publish("anonymous", b"{}", headers={"b": 1, "a": 2, "c": {"z": 1, "y": 2}})
    async with opened(rabbitmq_url) as transport:
        first = await taken(transport, "anonymous")
        await transport.release(first)
        again = await taken(transport, "anonymous")
        assert (again.redelivered, again.message.id) == (True, first.message.id)
        assert dict(again.message.headers) == dict(first.message.headers)


# rabbitmq-c


def tool(name: str, url: str, *arguments: str, stdin: bytes = b"") -> bytes:
    if shutil.which(name) is None:
        pytest.skip("amqp-tools are not installed")
    done = subprocess.run([name, "-u", url, *arguments], input=stdin, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def in_thread(name: str, url: str, *arguments: str, stdin: bytes = b"") -> bytes:
    return await asyncio.to_thread(tool, name, url, *arguments, stdin=stdin)


async def test_what_amqp_publish_writes_we_read_and_amqp_get_reads_again(
    rabbitmq_url: str, other: PlainClient
) -> None:
    told = ("-C", "text/plain", "-E", "gzip", "-t", "answers", "-H", "tenant: é", "-H", "empty: ", "-p")
    await in_thread("amqp-publish", rabbitmq_url, "-r", "orders", *told, stdin=BINARY)
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        found = props.fields(raw_of(delivery))
        assert found[props.CONTENT_TYPE] == b"\x0atext/plain"
        assert (found[props.CONTENT_ENCODING], found[props.REPLY_TO]) == (b"\x04gzip", b"\x07answers")
        assert (dict(delivery.message.headers)["tenant"], delivery.message.body) == ("é", BINARY)
        await transport.send(delivery.message, queue="copies")
        await transport.send(delivery.message, queue="copies")
        await transport.ack(delivery)
        copy = await taken(transport, "copies")
        assert props.fields(raw_of_copy(copy)) == found
        await transport.release(copy)
    assert await in_thread("amqp-get", rabbitmq_url, "-q", "copies") == BINARY
    assert await in_thread("amqp-consume", rabbitmq_url, "-q", "copies", "-c", "1", "cat") == BINARY
    assert other.count("copies") == 0


def raw_of_copy(delivery: Delivery) -> bytes:
    return (delivery.message.properties or b"").removeprefix(MAGIC + b"\x00\x06copies")


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
async def test_what_we_write_amqp_get_reads(rabbitmq_url: str, queue_type: Any) -> None:
    message = Message(id=new_id(), queue="own", body=BINARY, sent_at=NOW, headers=(("a", 2**70), ("a", 1)))
    enveloped = Message.create(id="m-2", sent_at=NOW, queue="own", data={"total": 299.90})
    async with opened(rabbitmq_url, topology=Topology(queue_type=queue_type)) as transport:
        await transport.send(message)
        await transport.send(enveloped)
    assert await in_thread("amqp-get", rabbitmq_url, "-q", "own") == BINARY
    assert await in_thread("amqp-get", rabbitmq_url, "-q", "own") == enveloped.body


async def test_a_retry_of_ours_is_read_by_amqp_get_with_the_body_it_had(
    rabbitmq_url: str, other: PlainClient
) -> None:
    await in_thread("amqp-publish", rabbitmq_url, "-r", "orders", "-p", stdin=BINARY)
    async with opened(rabbitmq_url) as transport:
        delivery = await taken(transport)
        await transport.retry(delivery, delivery.message.with_incremented_retry(), delay=0.0, trail=b"story")
    assert other.count("orders") == 1
    assert await in_thread("amqp-get", rabbitmq_url, "-q", "orders") == BINARY
