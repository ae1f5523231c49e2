"""`redrive queues` on queues that the management API has not counted lately: AMQP tells what is in them now."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from redrive.transports.inspection import QueueFigures
from redrive.transports.rabbitmq import inspector as module
from redrive.transports.rabbitmq.broker_facts import QueueFacts
from redrive.transports.rabbitmq.inspector import RabbitInspector
from redrive.transports.rabbitmq.management import Management
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.plain_client import PlainClient
from support.rabbitmq_server import RabbitServer

NEVER: dict[str, int | None] = {"messages": None, "ready": None, "consumers": None}
EARLIER: dict[str, int | None] = {"messages": 7, "ready": 7, "consumers": 0}


class Counting:
    """What a broker tells of its queues depends on the moment; here it is what a test says."""

    told = NEVER


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    asked = Management.queues

    async def queues(self: Management) -> list[QueueFacts]:
        unknown = {"unacked": None, "incoming": None, "outgoing": None}
        return [replace(each, **unknown, **counting.told) for each in await asked(self)]

    monkeypatch.setattr(Management, "queues", queues)
    return counting


@pytest.fixture
async def inspector(rabbitmq: RabbitServer, rabbitmq_url: str) -> AsyncIterator[RabbitInspector]:
    transport = RabbitTransport(rabbitmq_url)
    looking = RabbitInspector(rabbitmq_url, transport, management_url=rabbitmq.management_url)
    yield looking
    await looking.close()
    await transport.close()


@pytest.mark.parametrize("told", [NEVER, EARLIER])
async def test_messages_and_consumers_are_those_of_now(
    inspector: RabbitInspector, rabbitmq_url: str, counting: Counting, told: dict[str, int | None]
) -> None:
    counting.told = told
    with PlainClient(rabbitmq_url) as other:
        other.declare("orders", queue_type="quorum")
        other.declare("mails")
        for delay in (3_600_000, 7_200_000):
            back = {"dead_letter_exchange": "", "dead_letter_routing_key": "orders"}
            other.declare(f"orders_retry.{delay}", message_ttl=delay, **back)
            other.publish(f"orders_retry.{delay}", b"{}")
        other.publish("orders", b"{}")
        other.channel.basic_consume("mails", lambda *_: None)

        found = await inspector.figures()

    assert found.queues == (
        QueueFigures(name="mails", type="classic", ready=0, delayed=0, consumers=1),
        QueueFigures(name="orders", type="quorum", ready=1, delayed=0, consumers=0),
        QueueFigures(name="orders_retry", type="classic", ready=0, delayed=2, consumers=0),
    )


async def test_a_queue_that_nobody_may_look_at_keeps_its_blanks(
    inspector: RabbitInspector, rabbitmq_url: str
) -> None:
    with PlainClient(rabbitmq_url) as other:
        other.declare("orders")
        other.channel.queue_declare("theirs", exclusive=True)
        found = await inspector.figures()
    assert [(each.name, each.ready) for each in found.queues] == [("orders", 0)]


async def test_of_many_queues_only_those_are_looked_at_that_were_never_counted(
    inspector: RabbitInspector, rabbitmq_url: str, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FEW_QUEUES", 0)
    with PlainClient(rabbitmq_url) as other:
        other.declare("orders")
    assert [each.ready for each in (await inspector.figures()).queues] == [0]
    counting.told = EARLIER
    assert [each.ready for each in (await inspector.figures()).queues] == [7]


async def test_where_amqp_is_away_the_rest_is_told(
    rabbitmq: RabbitServer, rabbitmq_url: str, unused_tcp_port: int
) -> None:
    away = RabbitTransport(f"amqp://guest:guest@127.0.0.1:{unused_tcp_port}/")
    looking = RabbitInspector(rabbitmq_url, away, management_url=rabbitmq.management_url)
    with PlainClient(rabbitmq_url) as other:
        other.declare("orders")
    found = await looking.figures()
    assert found.queues == (QueueFigures(name="orders", type="classic", delayed=0),)
    assert found.incomplete.startswith("cannot reach RabbitMQ")
    await looking.close()
    await away.close()
