"""Another service on the same broker, with pika: none of our code is in it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pika
from pika.exceptions import AMQPError, ChannelClosedByBroker

from support.patience import until

if TYPE_CHECKING:
    from types import TracebackType

    from pika.adapters.blocking_connection import BlockingChannel


class Got(NamedTuple):
    """A message as the other service sees it."""

    body: bytes
    properties: pika.BasicProperties
    redelivered: bool
    routing_key: str

    @property
    def headers(self) -> dict[str, Any]:
        return self.properties.headers or {}


class PlainClient:
    """`with PlainClient(url) as other: ...`. Its queues are durable, its publications confirmed and mandatory."""

    def __init__(self, url: str) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(f"{url}?heartbeat=0"))
        self.channel: BlockingChannel = self._connection.channel()
        self.channel.confirm_delivery()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(AMQPError):
            self._connection.close()

    def declare(self, queue: str, **arguments: Any) -> None:
        """`message_ttl=5` is `x-message-ttl: 5`."""
        told = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self.channel.queue_declare(queue, durable=True, arguments=told)

    def declare_exchange(self, name: str, kind: str = "direct") -> None:
        self.channel.exchange_declare(name, kind, durable=True)

    def bind(self, exchange: str, queue: str, key: str | None = None) -> None:
        self.channel.queue_bind(queue, exchange, queue if key is None else key)

    def publish(self, routing_key: str, body: bytes, *, exchange: str = "", **properties: Any) -> None:
        told = pika.BasicProperties(**({"delivery_mode": 2} | properties))
        self.channel.basic_publish(exchange, routing_key, body, told, mandatory=True)

    def get(self, queue: str) -> Got | None:
        """Acknowledged."""
        method, properties, body = self.channel.basic_get(queue, auto_ack=True)
        if method is None or properties is None or body is None:
            return None
        return Got(body, properties, method.redelivered, method.routing_key)

    async def next(self, queue: str) -> Got:
        """As soon as there is one."""
        found: Got = await until(lambda: self.get(queue))
        return found

    async def reject(self, queue: str) -> Got:
        """The next message, rejected and not requeued."""

        def rejected() -> Got | None:
            method, properties, body = self.channel.basic_get(queue)
            if method is None or properties is None or body is None:
                return None
            self.channel.basic_reject(method.delivery_tag, requeue=False)
            return Got(body, properties, method.redelivered, method.routing_key)

        found: Got = await until(rejected)
        return found

    def count(self, queue: str) -> int:
        """Messages ready; 0 if there is no such queue."""
        return self._look(queue)[0]

    def consumers(self, queue: str) -> int:
        """0 if there is no such queue."""
        return self._look(queue)[1]

    def _look(self, queue: str) -> tuple[int, int]:
        try:
            answer = self.channel.queue_declare(queue, passive=True)
        except ChannelClosedByBroker:
            self.channel = self._connection.channel()
            self.channel.confirm_delivery()
            return 0, 0
        return answer.method.message_count, answer.method.consumer_count
