"""Messages that die on a real RabbitMQ as others let them die: rejected, expired, pushed out."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from support.rabbitmq_server import vhost_of

if TYPE_CHECKING:
    from support.rabbitmq_server import RabbitServer


class Elsewhere:
    """Somebody else's service on a virtual host, through the management plugin: none of our code is in it."""

    def __init__(self, server: RabbitServer, url: str) -> None:
        self._server = server
        self._vhost = quote(vhost_of(url), safe="")

    def make(self, queue: str, **arguments: Any) -> None:
        """`max_length=1` is `x-max-length: 1`."""
        told = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self._server.api("PUT", self._path(queue), {"durable": True, "arguments": told})

    def make_with_dead_letters(self, queue: str, dead: str, **arguments: Any) -> None:
        """What dies in the queue goes into `dead`, by the default exchange."""
        self.make(dead)
        self.make(queue, dead_letter_exchange="", dead_letter_routing_key=dead, **arguments)

    def publish(self, queue: str, body: bytes, message_id: str = "", **headers: Any) -> None:
        properties: dict[str, Any] = {"delivery_mode": 2, "headers": headers}
        if message_id:
            properties["message_id"] = message_id
        told = {
            "properties": properties,
            "routing_key": queue,
            "payload": base64.b64encode(body).decode(),
            "payload_encoding": "base64",
        }
        assert self._server.api("POST", f"/exchanges/{self._vhost}/amq.default/publish", told)["routed"]

    def reject(self, queue: str, number: int = 1) -> None:
        assert self.reject_what_is_there(queue, number) == number

    def reject_what_is_there(self, queue: str, at_most: int = 1) -> int:
        return len(self._get(queue, at_most, "reject_requeue_false"))

    def take(self, queue: str, number: int = 100) -> list[dict[str, Any]]:
        """Acknowledged; `payload` is base64."""
        return self._get(queue, number, "ack_requeue_false")

    def _get(self, queue: str, number: int, mode: str) -> list[dict[str, Any]]:
        told = {"count": number, "ackmode": mode, "encoding": "base64"}
        found: list[dict[str, Any]] = self._server.api("POST", f"{self._path(queue)}/get", told)
        return found

    def _path(self, queue: str) -> str:
        return f"/queues/{self._vhost}/{quote(queue, safe='')}"
