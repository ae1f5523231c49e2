"""A server on loopback that counts who connects, and answers with what it was given."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast


class Listener:
    """On one port of 127.0.0.1 and, where there is one, of ::1."""

    def __init__(self, answer: bytes, port: int = 0) -> None:
        self.answer = answer
        self.port = port
        self.seen = 0
        self.serving: set[asyncio.Task[None]] = set()
        self.requests: list[bytes] = []
        self.names: list[str | None] = []
        """Whom clients asked for in TLS."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        self.serving.add(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head + await reader.readexactly(_length(head)))
            writer.write(self.reply(self.requests[-1]))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    def reply(self, _request: bytes) -> bytes:
        return self.answer


def _length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


NOTHING = http(b"{}")


@asynccontextmanager
async def listening(
    answer: bytes | Listener = NOTHING, *, security: ssl.SSLContext | None = None
) -> AsyncIterator[Listener]:
    listener = answer if isinstance(answer, Listener) else Listener(answer)
    if security is not None:
        security.sni_callback = lambda _socket, name, _context: listener.names.append(name)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, ssl=security)
    listener.port = server.sockets[0].getsockname()[1]
    servers = [server]
    with suppress(OSError):  # no IPv6 here
        servers.append(await asyncio.start_server(listener.serve, "::1", listener.port, ssl=security))
    try:
        yield listener
    finally:
        for each in servers:
            each.close()
            await each.wait_closed()
        for task in listener.serving:
            task.cancel()
        await asyncio.gather(*listener.serving, return_exceptions=True)
