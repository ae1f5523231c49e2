"""What lies on a RabbitMQ, asked by another client than the product's and by the broker's own management."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pika
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker

from chaos.lab.broker import DEAD, Broker
from redrive.rabbitmq_settings import RabbitSettings
from redrive.secret_url import SecretUrl
from redrive.settings import BrokerSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

QueueType = Literal["quorum", "classic"]
QUEUE_TYPES: tuple[QueueType, ...] = ("quorum", "classic")
_PATIENCE = 60.0
_LOOK_EVERY = 0.01


@dataclass(frozen=True)
class Rabbit(Broker):
    """A virtual host of a broker that runs; `url` may lead through a proxy."""

    url: str
    management: str
    queue_type: QueueType = "quorum"
    direct: str = ""
    """The way there without the proxy, if there is one."""
    heartbeat: float = 30.0
    topology: Literal["delay-queues", "ttl-loop"] = "delay-queues"

    def settings(self) -> BrokerSettings:
        own = RabbitSettings(queue_type=self.queue_type, heartbeat=self.heartbeat, topology=self.topology)
        return BrokerSettings(url=SecretUrl(self.url), rabbitmq=own)

    def looking(self) -> contextlib.closing[Looking]:
        return contextlib.closing(Looking(self.direct or self.url))

    def queues(self) -> list[str]:
        parts = urlsplit(self.direct or self.url)
        where = urlsplit(self.management)
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        connection = HTTPConnection(where.hostname or "127.0.0.1", where.port or 15672, timeout=_PATIENCE)
        with contextlib.closing(connection):
            path = f"/api/queues/{quote(unquote(parts.path[1:]), safe='')}?columns=name"
            connection.request("GET", path, headers={"Authorization": f"Basic {token}"})
            return [each["name"] for each in json.loads(connection.getresponse().read())]

    def under_way(self) -> int:
        """Ready or waiting in any queue but those of dead letters: retries of the dead wait in queues that nobody
        living has asked for yet.
        """
        with self.looking() as looking:
            looks = [looking.look(name) for name in self.queues() if not name.endswith(DEAD)]
        return sum(look.ready for look in looks if look is not None)

    def bury(self, living: Collection[int]) -> None:
        self.wait_for_consumers(len(living))

    def wait_for_consumers(self, at_most: int = 0) -> None:
        """Until the broker has noticed the death of all others: what those held is ready again then."""
        deadline = time.monotonic() + _PATIENCE
        with self.looking() as looking:
            while any(look and look.consumers > at_most for look in map(looking.look, self.queues())):
                assert time.monotonic() < deadline, "a consumer that is dead is still there"
                time.sleep(_LOOK_EVERY)

    def messages(self) -> Counter[str]:
        with self.looking() as looking:
            return Counter(each.properties.message_id for name in self.queues() for each in looking.read(name))


class Look(NamedTuple):
    ready: int
    consumers: int


class Read(NamedTuple):
    method: Any
    properties: Any
    body: bytes


class Looking:
    """A connection of its own."""

    def __init__(self, url: str) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(url))
        self._channel = self._connection.channel()

    def look(self, name: str) -> Look | None:
        try:
            told = self._channel.queue_declare(name, passive=True).method
        except ChannelClosedByBroker:
            self._channel = self._connection.channel()
            return None
        return Look(told.message_count, told.consumer_count)

    def publish(self, queue: str, body: bytes, **properties: Any) -> None:
        self._channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2, **properties))

    def read(self, name: str) -> Iterator[Read]:
        """Every message that is ready; given back when this is closed, as the broker's redeliveries."""
        while True:
            method, properties, body = self._channel.basic_get(name)
            if method is None:
                return
            yield Read(method, properties, body)

    def close(self) -> None:
        with contextlib.suppress(AMQPConnectionError):
            self._connection.close()
