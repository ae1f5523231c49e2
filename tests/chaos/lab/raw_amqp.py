"""AMQP 0-9-1 with properties as the bytes they are. Shares no code with the product."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from pamqp import commands, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pamqp.base import Frame

_PATIENCE = 30.0
_FRAME_MAX = 131072
_METHOD, _HEADER, _BODY = 1, 2, 3


class Raw(NamedTuple):
    properties: bytes
    """As they stand in the content header, behind the size of the body."""
    body: bytes


class RawClient:
    """One connection, one channel, with confirms. Used as a context."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 5672), _PATIENCE)
        self._stream = self._socket.makefile("rb")
        self._socket.sendall(b"AMQP\x00\x00\x09\x01")
        self._expect(commands.Connection.Start)
        self._say(commands.Connection.StartOk({}, "PLAIN", f"\0{parts.username}\0{parts.password}", "en_US"), 0)
        self._expect(commands.Connection.Tune)
        self._say(commands.Connection.TuneOk(10, _FRAME_MAX, 0), 0)
        self._ask(commands.Connection.Open(virtual_host=unquote(parts.path[1:])), commands.Connection.OpenOk, 0)
        self._ask(commands.Channel.Open(), commands.Channel.OpenOk)
        self._ask(commands.Confirm.Select(), commands.Confirm.SelectOk)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def declare(self, queue: str, **arguments: Any) -> None:
        declaration = commands.Queue.Declare(queue=queue, durable=True, arguments=arguments)
        self._ask(declaration, commands.Queue.DeclareOk)

    def publish(self, queue: str, messages: Sequence[Raw]) -> None:
        """All of them confirmed. Once for each client."""
        for raw in messages:
            self._publish(queue, raw)
        missing = set(range(1, len(messages) + 1))
        while missing:
            heard = self._hear()
            assert isinstance(heard, commands.Basic.Ack), f"{heard}: {dict(heard)}"
            missing -= set(range(1, heard.delivery_tag)) if heard.multiple else set()
            missing.discard(heard.delivery_tag)

    def _publish(self, queue: str, raw: Raw) -> None:
        self._say(commands.Basic.Publish(exchange="", routing_key=queue))
        self._frame(_HEADER, struct.pack(">HHQ", 60, 0, len(raw.body)) + raw.properties)
        room = _FRAME_MAX - 8
        for at in range(0, len(raw.body), room):
            self._frame(_BODY, raw.body[at : at + room])

    def take(self, queue: str, number: int) -> list[Raw]:
        """So many messages, which are gone then. By a consumer: what is asked for with basic.get a quorum queue
        changes on the way.
        """
        self._ask(commands.Basic.Qos(prefetch_count=1), commands.Basic.QosOk)
        self._ask(commands.Basic.Consume(queue=queue), commands.Basic.ConsumeOk)
        return [self._delivered() for _ in range(number)]

    def _delivered(self) -> Raw:
        delivered = self._hear()
        _, header = self._read_frame()
        missing, body = struct.unpack_from(">Q", header, 4)[0], b""
        while len(body) < missing:
            body += self._read_frame()[1]
        self._say(commands.Basic.Ack(delivered.delivery_tag))
        return Raw(header[12:], body)

    def _ask(self, method: Frame, answer: type[Any], channel: int = 1) -> None:
        self._say(method, channel)
        self._expect(answer)

    def _say(self, method: Frame, channel: int = 1) -> None:
        self._socket.sendall(frame.marshal(method, channel))

    def _frame(self, kind: int, payload: bytes) -> None:
        self._socket.sendall(struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce")

    def _expect(self, answer: type[Any]) -> None:
        heard = self._hear()
        assert isinstance(heard, answer), f"{heard}: {dict(heard)}"

    def _hear(self) -> Any:
        kind, payload = self._read_frame()
        assert kind == _METHOD, kind
        return frame.unmarshal(struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce")[2]

    def _read_frame(self) -> tuple[int, bytes]:
        kind, _, size = struct.unpack(">BHI", self._stream.read(7))
        payload = self._stream.read(size)
        assert self._stream.read(1) == b"\xce"
        return kind, payload
