"""A network between a client and a server that a test breaks as it likes: slow, silent, cut, refused.

It has a thread and an event loop of its own, so that it works beside tests that block, and whatever else hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_HOST = "127.0.0.1"
_CHUNK = 64 * 1024
_PATIENCE = 30.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"
"""How a PostgreSQL says that it has committed."""
ACKED = b"\x00\x00\x00\x0d\x00\x3c\x00\x50"
"""How AMQP acknowledges: to a client a message that it published, to the broker one that it delivered."""
_TAIL = max(len(COMMITTED), len(ACKED)) - 1


class Proxy:
    """Used as a context. What is set holds for connections that are open and for new ones."""

    def __init__(self, url: str) -> None:
        """`url` names the server."""
        parts = urlsplit(url)
        self._target = (parts.hostname or _HOST, parts.port)
        self._parts = parts
        self._links: set[_Link] = set()
        self._bytes_left: int | None = None
        self._answers_cut = _Watch()
        self._questions_cut = _Watch()
        self.slices = 0
        """Bytes that are handed on at a time; 0: as they come."""
        self.delay = 0.0
        """Seconds that every answer of the server takes longer."""
        self.refusing = False
        """Connections are reset as soon as they are opened."""
        self.attempts = 0
        """Connections that anybody has tried to open so far."""
        self.cuts = 0
        """Connections that were cut on purpose."""
        self.heard = 0
        """Bytes that came from clients."""

    def __enter__(self) -> Self:
        self._started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), name="proxy", daemon=True)
        self._thread.start()
        assert self._started.wait(_PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_PATIENCE)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        """The server's, by way of here."""
        credentials, at, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{credentials}{at}{_HOST}:{self._port}").geturl()

    def fall_silent(self) -> None:
        """A black hole: nothing arrives any more, in either direction, neither do new connections or goodbyes."""
        self._call(self._passing.clear)

    def speak_again(self) -> None:
        """What was held back arrives after all."""
        self._call(self._passing.set)

    def cut_after(self, number: int) -> None:
        """The connection on which the clients' next `number` bytes are through is cut."""
        self._bytes_left = number

    def cut_commits(self, number: int = 1) -> None:
        """The next so many answers to COMMIT are cut off with their connections: committed, and nobody is told."""
        self.cut_answers(COMMITTED, number)

    def cut_answers(self, words: bytes, number: int = 1) -> None:
        """The next so many answers with these words in them never arrive; their connections are cut."""
        self._answers_cut = _Watch(words, number)

    def cut_questions(self, words: bytes, number: int = 1) -> None:
        """The same for what clients say."""
        self._questions_cut = _Watch(words, number)

    def cut_all(self) -> None:
        """Every connection that is open."""
        self._call(self._cut_all)

    def _cut_all(self) -> None:
        for link in list(self._links):
            self.cut(link)

    def cut(self, link: _Link) -> None:
        self.cuts += 1
        link.reset()

    def _call(self, what: Callable[[], object]) -> None:
        async def call() -> None:
            what()

        asyncio.run_coroutine_threadsafe(call(), self._loop).result(_PATIENCE)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended, self._passing = asyncio.Event(), asyncio.Event()
        self._passing.set()
        server = await asyncio.start_server(self._accept, _HOST, 0)
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._ended.wait()
        server.close()
        self._passing.set()
        for link in list(self._links):
            link.reset()
        while self._links:
            await asyncio.sleep(0)
        await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts += 1
        await self._passing.wait()
        if self.refusing or self._ended.is_set():
            _reset(writer)
            return
        try:
            upstream = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(writer)
            return
        link = _Link(self, (reader, writer), upstream)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    async def sent(self, link: _Link, data: bytes) -> None:
        """From a client to the server."""
        self.heard += len(data)
        await self._passing.wait()
        if self._questions_cut.meets(data):
            self.cut(link)
            return
        if self._bytes_left is not None:
            self._bytes_left -= len(data)
            if self._bytes_left <= 0:
                data, self._bytes_left = data[: len(data) + self._bytes_left], None
                await link.to_server(data)
                self.cut(link)
                return
        await link.to_server(data)

    async def answered(self, link: _Link, data: bytes, *, with_tail: bytes) -> None:
        """From the server to a client."""
        if self.delay:
            await asyncio.sleep(self.delay)
        await self._passing.wait()
        if self._answers_cut.meets(with_tail):
            self.cut(link)
            return
        await link.to_client(data)

    async def ended(self) -> None:
        """A goodbye is held back like anything else."""
        await self._passing.wait()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One connection of a client and its continuation to the server."""

    def __init__(self, proxy: Proxy, client: Streams, server: Streams) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._tail = b""

    async def run(self) -> None:
        tasks = [asyncio.create_task(self._upwards()), asyncio.create_task(self._downwards())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _closed(self._client[1], self._server[1])

    async def to_server(self, data: bytes) -> None:
        await self._write(self._server[1], data)

    async def to_client(self, data: bytes) -> None:
        await self._write(self._client[1], data)

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        size = self._proxy.slices or len(data)
        for at in range(0, len(data), size):
            writer.write(data[at : at + size])
            if self._proxy.slices:
                await asyncio.sleep(0)  # so that each goes on its own

    def reset(self) -> None:
        """Both sides hear of it at once."""
        _reset(self._client[1])
        self._server[1].close()  # the server gets all that was sent

    async def _upwards(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self._client[0].read(_CHUNK):
                await self._proxy.sent(self, data)
        await self._proxy.ended()

    async def _downwards(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self._server[0].read(_CHUNK):
                await self._proxy.answered(self, data, with_tail=self._with_tail(data))
        await self._proxy.ended()

    def _with_tail(self, data: bytes) -> bytes:
        """Words may come in two parts."""
        seen = self._tail + data
        self._tail = seen[-_TAIL:]
        return seen


class _Watch:
    """For words in a stream, so many times."""

    def __init__(self, words: bytes = b"", number: int = 0) -> None:
        self._words = words
        self._left = number

    def meets(self, data: bytes) -> bool:
        met = self._left > 0 and self._words in data
        self._left -= met
        return met


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()


async def _closed(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
