"""A message takes the ways that the topologies draw: set up by us, sent and received by the broker's own tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from redrive.transports.rabbitmq.administration import Administration
from redrive.transports.rabbitmq.setting_up import complete, examine
from redrive.transports.rabbitmq.topology import Route, Topology
from redrive.transports.rabbitmq.topology_choice import TOPOLOGIES, Choice, choose
from redrive.transports.rabbitmq.topology_loop import Loop
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until
from support.rabbitmq_server import RabbitServer, vhost_of

TYPES = pytest.mark.parametrize("queue_type", ["quorum", "classic"])
REJECT, TAKE = "reject_requeue_false", "ack_requeue_false"


class Post:
    """Sends and receives by the management plugin."""

    def __init__(self, server: RabbitServer, url: str, administration: Administration) -> None:
        self._server = server
        self._vhost = quote(vhost_of(url), safe="")
        self._administration = administration

    async def set_up(self, topology: Topology, *queues: str, delays: tuple[float, ...] = ()) -> None:
        suited = topology.for_version(self._administration.version)
        found = await examine(self._administration, [suited.layout(queue, delays) for queue in queues])
        await complete(self._administration, found)

    def send(self, route: Route, text: str) -> None:
        exchange = quote(route.exchange or "amq.default", safe="")
        told = {"routing_key": route.routing_key, "payload": text, "payload_encoding": "string"}
        answer = self._server.api(
            "POST",
            f"/exchanges/{self._vhost}/{exchange}/publish",
            {**told, "properties": {"delivery_mode": 2}},
        )
        assert answer == {"routed": True}

    async def receive(self, queue: str, how: str = TAKE) -> dict[str, Any]:
        """The next message of the queue, as soon as there is one."""
        wanted = {"count": 1, "ackmode": how, "encoding": "auto"}
        path = f"/queues/{self._vhost}/{quote(queue, safe='')}/get"
        [found] = await until(lambda: self._server.api("POST", path, wanted))
        return dict(found)

    async def left_in(self, queue: str) -> int:
        look = await self._administration.look(queue)
        assert look is not None
        return look.messages


@pytest.fixture
async def post(rabbitmq: RabbitServer, rabbitmq_url: str) -> AsyncIterator[Post]:
    transport = RabbitTransport(rabbitmq_url)
    yield Post(rabbitmq, rabbitmq_url, await transport.administration())
    await transport.close()


def chosen(topology: str, queue_type: Any = None, **said: Any) -> Topology:
    return choose(Choice(topology=topology, app="shop", queue_type=queue_type, **said))


def rejections(message: dict[str, Any], queue: str) -> int:
    deaths = message["properties"]["headers"]["x-death"]
    return sum(each["count"] for each in deaths if (each["queue"], each["reason"]) == (queue, "rejected"))


@TYPES
@pytest.mark.parametrize("topology", TOPOLOGIES)
async def test_what_waits_comes_to_where_it_is_consumed(post: Post, topology: str, queue_type: str) -> None:
    drawn = chosen(topology, queue_type)
    await post.set_up(drawn, "orders", delays=(0.1,))
    post.send(drawn.route(drawn.waiting("orders", 0.1).name), "waited")
    assert (await post.receive(drawn.consumed("orders")[-1]))["payload"] == "waited"


@TYPES
async def test_s4_a_rejected_message_goes_round_and_its_cycles_are_counted(post: Post, queue_type: str) -> None:
    drawn = chosen("ttl-loop", queue_type, loops={"orders": Loop(ttl=0.1)})
    await post.set_up(drawn, "orders", "mails")
    post.send(drawn.route("orders"), "round")
    for _ in range(3):
        await post.receive("orders", REJECT)
    last = await post.receive("orders")
    assert (last["payload"], rejections(last, "orders"), last["routing_key"]) == ("round", 3, "orders")
    assert await post.left_in("mails") == await post.left_in("mails.deadletter") == 0


@TYPES
async def test_s4_what_is_sent_through_its_exchange_goes_round_too(post: Post, queue_type: str) -> None:
    drawn = chosen("ttl-loop", queue_type, loops={"orders": Loop(ttl=0.1)})
    await post.set_up(drawn, "orders")
    post.send(Route("shop.workers", "orders"), "by exchange")
    await post.receive("orders", REJECT)
    assert (await post.receive("orders"))["payload"] == "by exchange"


@TYPES
async def test_s4_what_is_put_into_the_loop_by_us_comes_back(post: Post, queue_type: str) -> None:
    drawn = chosen("ttl-loop", queue_type, loops={"orders": Loop(ttl=0.1)})
    await post.set_up(drawn, "orders")
    waiting = drawn.waiting("orders", 0.1)
    assert waiting.name == "orders.deadletter"
    post.send(drawn.route(waiting.name), "put in")
    assert (await post.receive("orders"))["payload"] == "put in"


@TYPES
async def test_s2_what_is_rejected_lies_in_the_dead_letter_queue_of_its_queue_alone(
    post: Post, queue_type: str
) -> None:
    drawn = chosen("dead-letter-exchange", queue_type)
    await post.set_up(drawn, "orders", "mails")
    post.send(drawn.route("orders"), "dead")
    await post.receive("orders", REJECT)
    assert (await post.receive("dlq.orders"))["payload"] == "dead"
    assert await post.left_in("dlq.mails") == 0


@TYPES
async def test_s2_a_dead_letter_that_expires_is_kept(post: Post, queue_type: str) -> None:
    drawn = chosen("dead-letter-exchange", queue_type, dead_letter_ttl=0.1)
    await post.set_up(drawn, "orders")
    post.send(drawn.route("dlq.orders"), "old")
    assert (await post.receive("dlq.orders.expired"))["payload"] == "old"
