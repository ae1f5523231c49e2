"""Those who are told, in the test process: a receiver of HTTP, one of mail, and a way to them for programs that
insist on the real names of services.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, NamedTuple, cast

from aiosmtpd.smtp import SMTP, Envelope, Session

from support.listener import Listener, http, listening


class Request(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(self.body))


class Receiver(Listener):
    """Answers with these, one after the other, and with the last one from then on."""

    def __init__(self, *answers: str) -> None:
        super().__init__(b"")
        self.answers = list(answers or ("200 OK",))
        self.told: list[Request] = []

    def reply(self, request: bytes) -> bytes:
        self.told.append(_parsed(request))
        return http(b"ok", self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def _parsed(request: bytes) -> Request:
    head, _, body = request.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    return Request(line, headers, body)


@contextmanager
def receiving(*answers: str) -> Iterator[Receiver]:
    """A receiver beside the commands, which have the test's own thread."""
    receiver, loop = Receiver(*answers), asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with listening(receiver):
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


class Mailbox:
    """An SMTP server's, for aiosmtpd."""

    def __init__(self) -> None:
        self.port = 0
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802  aiosmtpd's name
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content, policy=policy.default))
        self.recipients.append(envelope.rcpt_tos)
        return "250 OK"


@asynccontextmanager
async def receiving_mail() -> AsyncIterator[Mailbox]:
    mailbox = Mailbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mailbox, loop=loop), "127.0.0.1", 0)
    mailbox.port = server.sockets[0].getsockname()[1]
    try:
        yield mailbox
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[tuple[int, list[str]]]:
    """The port of a proxy that connects everybody to that port of ours, and whom they wanted to reach."""
    wanted: list[str] = []

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        wanted.append(head.split()[1].decode())
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pipe(reader, inner_writer), _pipe(inner_reader, writer))

    async with _serving(connect) as found:
        yield found, wanted


@asynccontextmanager
async def black_hole() -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """A port where everybody may connect and nobody is answered, and those who are connected."""
    connected: list[asyncio.StreamWriter] = []

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        await reader.read()  # until the client has gone
        connected.remove(writer)

    async with _serving(say_nothing) as port:
        yield port, connected


@asynccontextmanager
async def endless() -> AsyncIterator[int]:
    """A port where every answer goes on and on."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n")
        while True:
            writer.write(bytes(1024 * 1024))
            await writer.drain()

    async with _serving(talk) as port:
        yield port


@asynccontextmanager
async def _serving(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(cast("asyncio.Task[None]", asyncio.current_task()))
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await answer(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()
