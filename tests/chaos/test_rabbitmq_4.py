"""RabbitMQ 4, where it differs from 3: what is published again is counted anew, and quorum queues drop what was
delivered 20 times. `make chaos` brings one (`support.debian_13`) and sets REDRIVE_TEST_RABBITMQ_4.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from redrive import App, Message, Retry
from redrive.clock import new_id
from redrive.errors import Unreachable
from redrive.testing.transport_contract import TransportContract
from redrive.transports import Transport
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.transport import RabbitTransport
from support import debian_13
from support.at_work import settings_on, working
from support.opened_rabbitmq import opened, taken
from support.patience import until
from support.plain_client import PlainClient
from support.rabbitmq_server import PrivateRabbit, vhost_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redrive.transports import Delivery

if not os.environ.get("REDRIVE_TEST_RABBITMQ_4"):
    pytest.skip("RabbitMQ 4 is for `make chaos`", allow_module_level=True)
if not debian_13.is_made():
    pytest.skip("no RabbitMQ 4 here: python -m support.debian_13 says why", allow_module_level=True)

PATIENCE = 30.0
DEFAULT_LIMIT = 20
OFTEN = 25


@pytest.fixture(scope="module")
def rabbitmq_4() -> Iterator[PrivateRabbit]:
    without_proc = "vm_memory_calculation_strategy = allocated"
    server = PrivateRabbit(root=debian_13.folder(), configuration=[without_proc])
    yield server
    server.clean_up()


@pytest.fixture
def url(rabbitmq_4: PrivateRabbit) -> Iterator[str]:
    made = rabbitmq_4.new_vhost()
    yield made
    rabbitmq_4.drop_vhost(made)


@pytest.fixture
def other(url: str) -> Iterator[PlainClient]:
    with PlainClient(url) as client:
        yield client


def message(body: bytes = b"{}") -> Message:
    return Message(id=new_id(), queue="orders", body=body, sent_at=datetime(2026, 3, 1, tzinfo=UTC))


class Contract4(TransportContract):
    delay = 0.5
    exact_time = False

    @pytest.fixture(autouse=True)
    def _broker(self, url: str) -> None:
        self.url = url

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # the broker's own clock cannot be moved


class TestQuorum(Contract4):
    async def make_transport(self) -> Transport:
        return RabbitTransport(self.url)


class TestClassic(Contract4):
    async def make_transport(self) -> Transport:
        return RabbitTransport(self.url, topology=Topology(queue_type="classic"))


def test_it_is_version_4(rabbitmq_4: PrivateRabbit) -> None:
    assert rabbitmq_4.api("GET", "/overview")["rabbitmq_version"].startswith("4.")
    assert rabbitmq_4.ctl("version").startswith("4.")


# What is published again is counted anew


async def test_trap_2_with_x_death_sent_along_the_broker_still_begins_to_count_anew(other: PlainClient) -> None:
    other.declare("orders_dlq")
    other.declare("orders", dead_letter_exchange="", dead_letter_routing_key="orders_dlq")
    other.publish("orders", b"{}", message_id="m-1")
    counts = []
    for _ in range(3):
        await other.reject("orders")
        dead = await other.next("orders_dlq")
        counts.append(dead.headers["x-death"][0]["count"])
        other.publish("orders", dead.body, message_id="m-1", headers=dead.headers)
    assert counts == [1, 1, 1]  # "after three" never comes


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
async def test_trap_2_our_note_counts_the_attempts(url: str, other: PlainClient, queue_type: Any) -> None:
    other.declare("orders")
    other.publish("orders", b"{}", message_id="m-1")
    async with opened(url, topology=Topology(queue_type=queue_type)) as transport:
        for attempt in (1, 2, 3, 4):
            delivery = await taken(transport)
            assert (delivery.message.id, delivery.attempt) == ("m-1", attempt)
            assert "x-death" not in dict(delivery.message.headers)  # it came with none (G2)
            await transport.retry(delivery, delivery.message, delay=0.1, trail=b"")
    assert (await other.next("orders")).properties.message_id == "m-1"


@pytest.mark.parametrize("delays", [["100ms"], ["250ms"], ["100ms", "250ms"]], ids=["loop", "ours", "both"])
async def test_trap_2_the_loop_of_s4_ends_whoever_turns_it(
    tmp_path: Path, url: str, other: PlainClient, delays: list[str]
) -> None:
    app, seen = App("sgp"), []

    @app.handler("orders", retry=Retry(attempts=4, delays=delays))
    async def process(given: Message) -> None:
        seen.append(given.id)
        raise TimeoutError("the school does not answer")

    loop = {"orders": {"loop": {"ttl": 0.1, "cycles": 3}}}
    told = {"topology": "ttl-loop"}
    settings = settings_on(url, tmp_path, rabbitmq=told, queues=loop, dead_letters={"sink": "queue"})
    async with working(app, settings):
        other.publish("orders", b"{}", message_id="m-1")
        await until(lambda: other.count("orders.limbu"))
    assert seen == ["m-1"] * 4
    assert other.count("orders") == other.count("orders.deadletter") == 0


# The delivery limit


async def test_what_is_given_back_often_is_dropped_from_a_quorum_queue_that_says_nothing(
    other: PlainClient,
) -> None:
    other.declare("theirs", queue_type="quorum")
    other.publish("theirs", b"{}")
    given_back = 0
    while (found := await _soon(other, "theirs")) is not None:
        other.channel.basic_reject(found, requeue=True)
        given_back += 1
        assert given_back <= OFTEN
    assert given_back == DEFAULT_LIMIT + 1
    assert other.count("theirs") == 0


async def _soon(other: PlainClient, queue: str) -> int | None:
    """The tag of the next message, which stays unacknowledged; None if there is none, now nor in a moment."""
    for _ in range(20):
        method, _, _ = other.channel.basic_get(queue)
        if method is not None:
            return int(method.delivery_tag)
        await asyncio.sleep(0.02)
    return None


@pytest.mark.parametrize("queue", ["orders", "orders_dlq"])
async def test_what_is_given_back_often_is_still_there_in_queues_of_ours(
    url: str, other: PlainClient, queue: str
) -> None:
    async with opened(url) as transport:
        given = message()
        await transport.send(given, queue=queue)
        for _ in range(OFTEN):
            delivery = await taken(transport, queue)
            assert (delivery.message, delivery.attempt) == (given, 1)
            await transport.release(delivery)
    assert (await other.next(queue)).properties.message_id == given.id


async def test_every_quorum_queue_we_make_says_that_it_has_no_limit(url: str, rabbitmq_4: PrivateRabbit) -> None:
    async with opened(url) as transport:
        await transport.send(message())
        await transport.send(message(), delay=0.1)
        await transport.send(message(), queue="orders_dlq")
    made = {each["name"]: each["arguments"] for each in rabbitmq_4.queues(vhost_of(url))}
    assert made.keys() == {"orders", "orders_dlq", "orders_retry.100"}
    assert {arguments["x-delivery-limit"] for arguments in made.values()} == {-1}


# Given back by reject


async def test_a_message_that_was_given_back_is_what_it_was_and_marked(url: str, other: PlainClient) -> None:
    other.declare("orders", queue_type="quorum")
    other.publish("orders", b"{}", message_id="m-1", headers={"own": 1})
    async with opened(url) as transport:
        first = await taken(transport)
        await transport.release(first)
        again = await taken(transport)
        assert (again.message.properties, again.identity) == (first.message.properties, first.identity)
        assert (first.redelivered, again.redelivered) == (False, True)
        await transport.release(again)
    got = await other.next("orders")
    assert got.headers["x-delivery-count"] == 2  # the broker counts a reject as a delivery that failed


async def test_what_was_sent_survives_the_death_of_the_broker(url: str, rabbitmq_4: PrivateRabbit) -> None:
    given = [message(b"%d" % number) for number in range(50)]
    async with opened(url) as transport:
        await transport.ack(await _sent_and_taken(transport))
    rabbitmq_4.restart()  # a quorum queue that is younger than a second dies with its broker, on 3 as on 4
    async with opened(url) as transport:
        await asyncio.gather(*map(transport.send, given))
    rabbitmq_4.kill()
    rabbitmq_4.start()
    async with opened(url) as transport:
        found = await until(partial(_all_of_them, transport, len(given)), within=90)
    assert found == {each.id for each in given}


async def _sent_and_taken(transport: RabbitTransport) -> Delivery:
    await transport.send(message())
    return await taken(transport)


async def _all_of_them(transport: RabbitTransport, count: int) -> set[str] | None:
    """None while the broker still recovers its queues."""
    async with aclosing(transport.receive("orders", prefetch=count)) as deliveries:
        try:
            return {(await anext(deliveries)).message.id for _ in range(count)}
        except Unreachable:
            return None
