"""Stands between a client and RabbitMQ: reads every frame along, and can hold frames back or cut the line."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_HEAD = Struct(">BHI")
_GREETING = b"AMQP"
METHOD, HEADER = 1, 2
CONNECTION_CLOSE, CONNECTION_CLOSE_OK = (10, 50), (10, 51)
CHANNEL_CLOSE, CHANNEL_CLOSE_OK = (20, 40), (20, 41)
PUBLISH, GET, ACK, REJECT, NACK, RECOVER = (60, 40), (60, 70), (60, 80), (60, 90), (60, 120), (60, 110)


class Frame(NamedTuple):
    kind: int
    channel: int
    payload: bytes

    @property
    def method(self) -> tuple[int, int] | None:
        if self.kind != METHOD:
            return None
        return int.from_bytes(self.payload[:2]), int.from_bytes(self.payload[2:4])


class _Reader:
    """Frames out of bytes, however they are cut."""

    def __init__(self, found: list[Frame]) -> None:
        self._found = found
        self._rest = b""

    def feed(self, data: bytes) -> None:
        self._rest += data
        if self._rest.startswith(_GREETING):
            self._rest = self._rest[8:]
        while len(self._rest) >= _HEAD.size:
            kind, channel, size = _HEAD.unpack_from(self._rest)
            if len(self._rest) < _HEAD.size + size + 1:
                return
            self._found.append(Frame(kind, channel, self._rest[7 : 7 + size]))
            self._rest = self._rest[8 + size :]


class AmqpProxy:
    """`asked` are the client's frames, `answered` the broker's, in their order and as far as they were let through
    (`hold_requests`, `hold_answers`).
    """

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self.asked: list[Frame] = []
        self.answered: list[Frame] = []
        self.connections = 0
        self._requests, self._answers = asyncio.Event(), asyncio.Event()
        self._requests.set()
        self._answers.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._target.username}:{self._target.password}"
        return self._target._replace(netloc=f"{user}@127.0.0.1:{port}").geturl()

    def hold_requests(self) -> None:
        """The broker hears nothing more: as a network that swallows packets."""
        self._requests.clear()

    def hold_answers(self) -> None:
        self._answers.clear()

    def let_through(self) -> None:
        self._requests.set()
        self._answers.set()

    def cut(self) -> None:
        """Every connection, at once. New ones can be made."""
        for writer in self._open:
            writer.transport.abort()

    def methods(self, wanted: tuple[int, int]) -> list[Frame]:
        return [frame for frame in self.asked if frame.method == wanted]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._open |= {writer, back}
        for job in (
            self._pass(reader, back, self._requests, _Reader(self.asked)),
            self._pass(there, writer, self._answers, _Reader(self.answered)),
        ):
            task = asyncio.create_task(job)
            self._tasks.add(task)

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, gate: asyncio.Event, seen: _Reader
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await gate.wait()
                seen.feed(data)
                target.write(data)
                await target.drain()
        target.close()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[AmqpProxy]:
    proxy = AmqpProxy(url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
