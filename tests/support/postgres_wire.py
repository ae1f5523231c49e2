"""What stands between a store and its PostgreSQL, so that a test can do to the line what networks do."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class Wire(ABC):
    """Whoever opens `url` reaches the server by it."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self._writers: list[asyncio.StreamWriter] = []

    @abstractmethod
    async def _pass(
        self,
        ours: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        servers: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Passes on what comes from either side of one connection, as far as it does."""

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._join, "127.0.0.1", 0)
        port = self._listening.sockets[0].getsockname()[1]
        self.url = self._server._replace(netloc=f"redrive@127.0.0.1:{port}").geturl()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        for writer in self._writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._server.hostname, self._server.port)
        self._writers += [writer, back]
        await self._pass((reader, writer), (there, back))
