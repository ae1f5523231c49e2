"""Fills queues quickly, every message confirmed, and counts what is in them: pamqp's frames on a plain socket."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from pamqp import base, body, commands, exceptions, frame, header

from bench.peers.messages import SOME_ID, Written

F = TypeVar("F", bound=base.Frame)

_TOGETHER = 1000
_PATIENCE = 60.0
_CHANNEL = 1


class Loader:
    """One connection with one channel, which confirms."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection((where.hostname, where.port), timeout=_PATIENCE)
        self._unread = b""
        self._sent = 0
        self._confirmed = 0
        self._open(where.username or "guest", where.password or "guest", unquote(where.path.removeprefix("/")))

    def declare(self, queue: str, arguments: Mapping[str, Any] | None = None) -> None:
        """A durable classic queue."""
        self._ask(commands.Queue.Declare(queue=queue, durable=True, arguments=dict(arguments or {})))

    def depth(self, queue: str) -> int:
        """How many messages wait in it."""
        return self._look(queue).message_count or 0

    def consumers(self, queue: str) -> int:
        return self._look(queue).consumer_count or 0

    def load(self, queue: str, message: Written, count: int) -> None:
        """Persistent messages, each with an id of its own; all of them are on disk when this returns."""
        content = _frames(queue, message)
        for start in range(0, count, _TOGETHER):
            several = min(_TOGETHER, count - start)
            self._socket.sendall(b"".join(_with_own_id(content) for _ in range(several)))
            self._sent += several
            self._wait_for_confirms(self._sent - _TOGETHER)
        self._wait_for_confirms(self._sent)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, user: str, password: str, vhost: str) -> None:
        self._socket.sendall(frame.marshal(header.ProtocolHeader(), 0))
        self._next(commands.Connection.Start)
        self._send(commands.Connection.StartOk({}, "PLAIN", f"\0{user}\0{password}", "en_US"), 0)
        tune = self._next(commands.Connection.Tune)
        self._send(commands.Connection.TuneOk(tune.channel_max, tune.frame_max, 0), 0)
        self._send(commands.Connection.Open(virtual_host=vhost), 0)
        self._next(commands.Connection.OpenOk)
        self._ask(commands.Channel.Open())
        self._ask(commands.Confirm.Select())

    def _look(self, queue: str) -> commands.Queue.DeclareOk:
        self._send(commands.Queue.Declare(queue=queue, passive=True), _CHANNEL)
        return self._next(commands.Queue.DeclareOk)

    def _ask(self, method: base.Frame) -> None:
        self._send(method, _CHANNEL)
        self._next(base.Frame)

    def _send(self, method: base.Frame, channel: int) -> None:
        self._socket.sendall(frame.marshal(method, channel))

    def _wait_for_confirms(self, wanted: int) -> None:
        while self._confirmed < wanted:
            confirm = self._next(commands.Basic.Ack)
            self._confirmed = confirm.delivery_tag if confirm.multiple else self._confirmed + 1

    def _next(self, expected: type[F]) -> F:
        found = next(self._read())
        assert isinstance(found, expected), f"the broker says {found} instead of {expected.__name__}"
        return found

    def _read(self) -> Iterator[object]:
        while True:
            with contextlib.suppress(exceptions.UnmarshalingException):
                used, _channel, found = frame.unmarshal(self._unread)
                self._unread = self._unread[used:]
                yield found
                continue
            arrived = self._socket.recv(2**16)
            assert arrived, "the broker closed the connection"
            self._unread += arrived


def _frames(queue: str, message: Written) -> bytes:
    properties = commands.Basic.Properties(delivery_mode=2, **message.properties)
    content = (
        commands.Basic.Publish(exchange="", routing_key=queue, mandatory=True),
        header.ContentHeader(0, len(message.body), properties),
        body.ContentBody(message.body),
    )
    return b"".join(frame.marshal(part, _CHANNEL) for part in content)


def _with_own_id(content: bytes) -> bytes:
    return content.replace(SOME_ID.encode(), str(uuid4()).encode())
