"""A small HTTP door of processes without a server: `/metrics`, `/livez` and `/readyz`, and nothing else.

Several processes of one machine may have the same settings: each takes the first port of the range that is free.
Whoever asks gets one answer and is let go; one who is slow, or sends much, is let go without.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import socket
from typing import TYPE_CHECKING

import structlog

from redrive.errors import ConfigurationError
from redrive.telemetry.address import Address
from redrive.telemetry.exposition import CONTENT_TYPE_LATEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.telemetry.exposition import Exposition

log = structlog.get_logger("redrive.metrics")

_WITHIN = 5.0
_MOST_BYTES = 8192
_CONNECTIONS = 32
_TEXT = "text/plain; charset=utf-8"
_MORE_PORTS = "give metrics.listen more ports, such as 127.0.0.1:9464-9479"


class Listener:
    """`ready` is asked for `/readyz`. With a `token`, only who has it is told metrics."""

    def __init__(self, exposition: Exposition, ready: Callable[[], bool], *, token: str | None = None) -> None:
        self._exposition = exposition
        self._ready = ready
        self._token = token
        self._server: asyncio.Server | None = None
        self._busy = 0

    async def open(self, address: Address) -> int | None:
        """The port; None, with a warning, if others have all of them: what a process is for is not to tell how it
        goes. ConfigurationError: the address is not this machine's, or may not be listened at.
        """
        listening = _bound(address)
        if listening is None:
            log.warning("metrics are not told: other processes have the port", at=str(address), remedy=_MORE_PORTS)
            return None
        self._server = await asyncio.start_server(self._answer, sock=listening, limit=_MOST_BYTES)
        port: int = listening.getsockname()[1]
        log.info("metrics are told", at=f"http://{Address(address.host, port, port)}/metrics")
        return port

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._busy += 1
        try:
            # Whatever a stranger sends, or does not: it concerns nobody but them.
            with contextlib.suppress(
                OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
            ):
                async with asyncio.timeout(_WITHIN):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer_to(head))
                    await writer.drain()
        finally:
            self._busy -= 1
            writer.close()

    def _answer_to(self, head: bytes) -> bytes:
        if self._busy > _CONNECTIONS:
            return _response("503 Service Unavailable", b"too many ask at once\n")
        line, _, fields = head.partition(b"\r\n")
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path not in {b"/metrics", b"/livez", b"/readyz"}:
            return _response("404 Not Found", b"there are /metrics, /livez and /readyz\n")
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", b"GET alone\n", more="Allow: GET, HEAD\r\n")
        answer = self._told(path, fields)
        return answer if method == b"GET" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def _told(self, path: bytes, fields: bytes) -> bytes:
        if path == b"/livez":
            return _response("200 OK", b"ok\n")
        if path == b"/readyz":
            return (
                _response("200 OK", b"ok\n")
                if self._ready()
                else _response("503 Service Unavailable", b"not ready\n")
            )
        if self._token is not None and not _carries(fields, self._token):
            return _response("401 Unauthorized", b"a token is needed\n", more="WWW-Authenticate: Bearer\r\n")
        return _response("200 OK", self._exposition.text(), kind=CONTENT_TYPE_LATEST)


def _bound(address: Address) -> socket.socket | None:
    """At the first port that is free; None if none is."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    for port in range(address.first, address.last + 1):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((address.host, port))
            found.listen(_CONNECTIONS)
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                why = error.strerror or str(error)
                raise ConfigurationError(
                    f"metrics cannot be told at {address}: {why}", remedy="give metrics.listen another address"
                ) from None
        else:
            return found
    return None


def _carries(fields: bytes, token: str) -> bool:
    given = b""
    for field in fields.split(b"\r\n"):
        name, _, value = field.partition(b":")
        if name.strip().lower() == b"authorization":
            scheme, _, credentials = value.strip().partition(b" ")
            given = credentials.strip() if scheme.lower() == b"bearer" else b""
    return hmac.compare_digest(given, token.encode())


def _response(status: str, body: bytes, *, kind: str = _TEXT, more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
