"""A process that dies while it makes its queues leaves some of them. The next one makes what is missing, and the
broker is set up as if nothing had happened: a queue without its binding would lose what is sent to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from redrive import faults
from redrive.clock import SystemClock, new_id
from redrive.message import Message
from redrive.transports.rabbitmq.topology_choice import Choice, choose
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.rabbitmq_server import RabbitServer, vhost_of

POINT = "rabbitmq.before_declare"
TOPOLOGIES = ("delay-queues", "plain-queues", "ttl-loop", "dead-letter-exchange")


class Killed(BaseException):
    """Not an error that anybody handles."""


class Deadly:
    """Lets so many declarations through, and no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lets_through = 1_000
        self._point = faults.point
        monkeypatch.setattr(faults, "point", self.point)

    def point(self, name: str) -> int | None:
        if name == POINT:
            if not self.lets_through:
                raise Killed
            self.lets_through -= 1
        return self._point(name)


async def use(url: str, topology: str) -> None:
    """For a process that has to do with the queue alone: nothing makes it look at what stands beside."""
    transport = RabbitTransport(url, topology=choose(Choice(topology=topology, app="shop")))
    try:
        message = Message(id=new_id(), queue="orders", body=b"{}", sent_at=SystemClock().now())
        await transport.send(message)
    finally:
        await transport.close()


def made(server: RabbitServer, url: str) -> dict[str, list[Any]]:
    vhost = quote(vhost_of(url), safe="")
    queues = [(each["name"], sorted(each["arguments"].items())) for each in server.queues(vhost_of(url))]
    exchanges = [(each["name"], each["type"]) for each in server.api("GET", f"/exchanges/{vhost}")]
    bindings = [
        (each["source"], each["destination"], each["routing_key"])
        for each in server.api("GET", f"/bindings/{vhost}")
    ]
    return {"queues": sorted(queues), "exchanges": sorted(exchanges), "bindings": sorted(bindings)}


@pytest.fixture
def vhosts(rabbitmq: RabbitServer) -> Iterator[Any]:
    urls: list[str] = []

    def new() -> str:
        urls.append(rabbitmq.new_vhost())
        return urls[-1]

    yield new
    for url in urls:
        rabbitmq.drop_vhost(url)


@pytest.mark.parametrize("topology", TOPOLOGIES)
async def test_wherever_it_is_interrupted_the_next_process_makes_the_rest(
    topology: str, rabbitmq: RabbitServer, vhosts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly, whole = Deadly(monkeypatch), vhosts()
    await use(whole, topology)
    steps = 1_000 - deadly.lets_through
    assert steps >= 2
    for number in range(steps):
        deadly.lets_through = number
        url = vhosts()
        with pytest.raises(Killed):
            await use(url, topology)
        deadly.lets_through = 1_000
        await use(url, topology)

        assert made(rabbitmq, url) == made(rabbitmq, whole), f"killed before step {number + 1} of {steps}"
