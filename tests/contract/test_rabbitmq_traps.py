"""Traps that others fell into when they put messages back on RabbitMQ. Each first shows the trap where it can be
shown, with a plain client, and then that we step over it.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from redrive.transports.rabbitmq import properties as props
from redrive.transports.rabbitmq import table as tables
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.topology_choice import Choice, choose
from support.amqp_proxy import GET, NACK, RECOVER, REJECT, proxied
from support.desk import Desk
from support.opened_rabbitmq import message, opened, taken
from support.patience import until
from support.plain_client import PlainClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.rabbitmq_server import RabbitServer

PATIENCE = 30.0
CLASSIC = Topology(queue_type="classic")


@pytest.fixture
def other(rabbitmq_url: str) -> Iterator[PlainClient]:
    with PlainClient(rabbitmq_url) as client:
        yield client


async def expired(other: PlainClient) -> None:
    """A message that died in `orders` of its own TTL, and lies in `orders_dlq`."""
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="", dead_letter_routing_key="orders_dlq")
    other.publish("orders", b"{}", message_id="m-1", expiration="1")
    await until(lambda: other.count("orders_dlq"))


async def test_trap_1_with_x_death_kept_the_broker_takes_it_for_a_circle_and_drops_it(
    rabbitmq_url: str, other: PlainClient
) -> None:
    await expired(other)
    async with opened(rabbitmq_url, topology=CLASSIC) as transport:
        await transport.send(message(), delay=0.1)  # so that the delay queue is there
        await transport.ack(await taken(transport))
    dead = await other.next("orders_dlq")
    assert "x-death" in dead.headers
    other.publish("orders_retry.100", dead.body, message_id="m-1", headers=dead.headers)
    await until(lambda: not other.count("orders_retry.100"))
    other.publish("orders_retry.100", b"behind it")
    assert (await other.next("orders")).body == b"behind it"  # and nothing before it
    assert (other.count("orders"), other.count("orders_dlq")) == (0, 0)


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
async def test_trap_1_we_strip_x_death_so_it_arrives_through_the_same_queues(
    rabbitmq_url: str, other: PlainClient, queue_type: Any
) -> None:
    await expired(other)
    async with opened(rabbitmq_url, topology=Topology(queue_type=queue_type)) as transport:
        dead = await taken(transport, "orders_dlq")
        assert "x-death" in dict(dead.message.headers)
        await transport.send(dead.message, queue="orders", delay=0.1)
        await transport.ack(dead)
        again = await taken(transport)
        assert (again.message.id, again.message.body) == ("m-1", b"{}")
        await transport.retry(again, again.message, delay=0.1, trail=b"")
        third = await taken(transport)
        assert (third.message.id, third.attempt) == ("m-1", 2)
        assert third.message.properties == dead.message.properties  # what it came with is still known (G2)
        await transport.ack(third)


async def test_trap_1_a_redrive_reaches_other_consumers_without_any_of_the_family(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="", dead_letter_routing_key="orders_dlq")
    other.publish("orders", b"{}", message_id="m-1", headers={"own": 1, "CC": ["mails"], "BCC": ["mails"]})
    await other.reject("orders")
    async with opened(rabbitmq_url) as transport:
        dead = await taken(transport, "orders_dlq")
        assert {"x-death", "x-first-death-queue"} <= dict(dead.message.headers).keys()
        await transport.send(dead.message, queue="orders")
        await transport.ack(dead)
    got = await other.next("orders")
    assert (got.headers, got.properties.message_id) == ({"own": 1}, "m-1")


async def test_trap_2_our_note_counts_the_attempts_and_x_death_never_grows(
    rabbitmq_url: str, other: PlainClient
) -> None:
    """RabbitMQ 4 begins to count anew when a message is published: "after three" would never come."""
    async with opened(rabbitmq_url) as transport:
        await transport.send(message())
        for attempt in (1, 2, 3):
            delivery = await taken(transport)
            assert delivery.attempt == attempt
            await transport.retry(delivery, delivery.message, delay=0.1, trail=b"")
    got = await other.next("orders")
    assert [(death["queue"], death["count"]) for death in got.headers["x-death"]] == [("orders_retry.100", 1)]


async def test_trap_3_given_back_by_reject_and_never_by_nack(rabbitmq_url: str) -> None:
    """Since RabbitMQ 4.3 a nack is no failed delivery: a message that kills its worker would come for ever."""
    async with proxied(rabbitmq_url) as proxy:
        async with opened(proxy.url) as transport:
            for _ in range(5):
                await transport.send(message())
            await transport.release(await taken(transport))
            async with aclosing(transport.receive("orders", prefetch=5)) as deliveries:
                await anext(deliveries)  # fetched and not handed out, and handed out and never settled
        rejects = proxy.methods(REJECT)
        assert len(rejects) >= 6
        assert all(frame.payload[-1] == 1 for frame in rejects)  # requeue
        assert not proxy.methods(NACK) + proxy.methods(GET) + proxy.methods(RECOVER)


LOOP = choose(Choice(topology="ttl-loop", app="shop"))
EXCHANGE = choose(Choice(topology="dead-letter-exchange", app="shop"))


@pytest.mark.parametrize(
    ("topology", "dies_into"), [(LOOP, "orders.deadletter"), (EXCHANGE, "dlq.orders")], ids=["loop", "exchange"]
)
async def test_trap_4_a_second_rejection_behind_a_redrive_still_reaches_the_dead_letters(
    rabbitmq_url: str, other: PlainClient, topology: Topology, dies_into: str
) -> None:
    async with opened(rabbitmq_url, topology=topology) as transport:
        await transport.send(message(b"first"))
        first = await taken(transport)
        await transport.send(first.message)  # a redrive: by the default exchange into the failed queue
        await transport.ack(first)
    for _ in range(2):
        await other.reject("orders")
        got = await other.next(dies_into)
        assert got.body == b"first"
        other.publish("orders", got.body, headers=got.headers)


async def test_trap_4_behind_an_exchange_of_others_the_origin_keeps_the_key_that_leads_to_their_dead_letters(
    rabbitmq_url: str, other: PlainClient
) -> None:
    other.declare_exchange("events")
    other.declare_exchange("dead")
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="dead")  # keeps the key it came with
    other.bind("events", "orders", "order.created")
    other.bind("dead", "orders_dlq", "order.created")
    other.publish("order.created", b"{}", exchange="events", message_id="m-1")
    await other.reject("orders")
    for _ in range(2):
        async with opened(rabbitmq_url) as transport:
            dead = await taken(transport, "orders_dlq")
            await transport.send_to_origin(dead.message)
            await transport.ack(dead)
        again = await other.reject("orders")
        assert (again.routing_key, again.properties.message_id) == ("order.created", "m-1")
    assert (await other.next("orders_dlq")).properties.message_id == "m-1"


async def test_trap_5_depths_read_nothing_out(rabbitmq_url: str, other: PlainClient) -> None:
    async with proxied(rabbitmq_url) as proxy, opened(proxy.url) as transport:
        await transport.send(message(), queue="orders_dlq")
        for _ in range(3):
            depths = await transport.depths(("orders", "orders_dlq"))
        assert depths["orders_dlq"].ready == 1
        assert not proxy.methods(GET) + proxy.methods(REJECT)
    got = other.get("orders_dlq")
    assert got is not None
    assert (got.redelivered, got.headers.get("x-delivery-count", 0)) == (False, 0)


def test_trap_5_no_command_that_looks_takes_a_message_out(
    tmp_path: Path, rabbitmq_url: str, other: PlainClient, rabbitmq: RabbitServer
) -> None:
    other.declare("orders", queue_type="quorum")
    other.declare("orders_dlq", queue_type="quorum")
    for queue in ("orders", "orders_dlq"):
        other.publish(queue, b"{}", message_id=queue)
    management = f'[broker.rabbitmq]\nmanagement_url = "{_signed(rabbitmq, rabbitmq_url)}"\n'
    (tmp_path / "redrive.toml").write_text(f'[broker]\nurl = "{rabbitmq_url}"\n{management}')
    desk = Desk(tmp_path)
    shown = json.loads(desk.redrive("queues", "--output", "json").out)
    assert {"orders", "orders_dlq"} <= {each["name"] for each in shown}
    for command in (
        ("queues", "-q", "orders"),
        ("doctor",),
        ("setup", "-q", "orders", "--dry-run"),
        ("reprocess", "--queue", "orders_dlq", "--dry-run", "--no-store"),
    ):
        assert desk.redrive(*command).code in {0, 1, 4, 6}, command  # 6: there is no store
    for queue in ("orders", "orders_dlq"):
        got = other.get(queue)
        assert got is not None
        assert (got.properties.message_id, got.redelivered) == (queue, False)
        assert got.headers.get("x-delivery-count", 0) == 0


def _signed(rabbitmq: RabbitServer, url: str) -> str:
    """The management plugin with the broker's user."""
    user, where = urlsplit(url).netloc.rpartition("@")[0], urlsplit(rabbitmq.management_url).netloc
    return urlsplit(rabbitmq.management_url)._replace(netloc=f"{user}@{where}").geturl()


def test_the_family_is_known_by_every_name() -> None:
    """What a dead-lettered message brings, and what must not be sent along again."""
    from redrive.transports.rabbitmq.content import Sending, pack  # noqa: PLC0415  only here
    from redrive.transports.rabbitmq.note import Note  # noqa: PLC0415  only here

    family = [f"x-{which}-death-{what}" for which in ("first", "last") for what in ("queue", "reason", "exchange")]
    names = ["x-death", *family, "x-delivery-count", "x-acquired-count", "CC", "BCC", "own"]
    table = tables.joined(tables.Entry(name.encode(), tables.write("v")) for name in names)
    raw = props.join({props.HEADERS: table, props.EXPIRATION: b"\x011", props.USER_ID: b"\x03bob"})
    given = message(properties=b"amqp\x00\x00\x00" + raw, headers=tuple((name, "v") for name in names))
    packed = props.fields(pack(given, Note(), Sending(user="guest", envelope=False)).properties)
    assert set(packed) == {props.HEADERS, props.DELIVERY_MODE}
    assert [entry.name for entry in tables.entries(packed[props.HEADERS])] == [b"own"]
