"""TH25: whoever sends nothing, or a byte now and then, is not there for ever."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import uvicorn

from redrive.access import Role
from redrive.api.slow_clients import Patience, PatientProtocol
from support.patience import until
from support.serving import Served, served

SETTINGS = '[server]\nheader_timeout = "200ms"\nrequest_timeout = "300ms"\n'
REQUEST = b"GET /livez HTTP/1.1\r\nHost: redrive.test\r\n"
WHOLE = REQUEST + b"\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("slow")
    (folder / "redrive.toml").write_text(SETTINGS)
    with served(folder) as started:
        yield started


@pytest.fixture
def client(server: Served) -> Iterator[socket.socket]:
    at = urlsplit(server.url)
    with closing(socket.create_connection((at.hostname, at.port))) as connected:
        yield connected


def until_ended(client: socket.socket, trickle: bytes = b"") -> bytes:
    """What was answered before the server ended the connection, while we send the bytes again and again."""
    client.settimeout(0.02 if trickle else 60.0)
    answered = b""
    while True:
        try:
            if trickle:
                client.sendall(trickle)
            received = client.recv(65536)
        except TimeoutError:
            if not trickle:
                raise
            continue
        except ConnectionError:
            return answered
        if not received:
            return answered
        answered += received


def answer(client: socket.socket) -> bytes:
    """That of /livez."""
    client.settimeout(60.0)
    received = b""
    while not received.endswith(b"\r\n\r\nok\n"):
        more = client.recv(65536)
        assert more, received
        received += more
    return received


def test_a_connection_that_sends_nothing_is_ended(client: socket.socket) -> None:
    assert until_ended(client) == b""


@pytest.mark.parametrize("beginning", [b"", b"G", REQUEST], ids=["nothing", "a letter", "some headers"])
def test_headers_that_never_end_are_ended(client: socket.socket, beginning: bytes) -> None:
    client.sendall(beginning)

    assert until_ended(client, b"x" if beginning == b"G" else b"X-More: 1\r\n") == b""


def test_a_second_request_gets_no_more_time_than_the_first(client: socket.socket) -> None:
    client.sendall(WHOLE)
    assert answer(client).startswith(b"HTTP/1.1 200")
    client.sendall(WHOLE + REQUEST)
    assert answer(client).startswith(b"HTTP/1.1 200")

    assert until_ended(client, b"X-More: 1\r\n") == b""


def posted(path: str, token: str) -> bytes:
    lines = (
        f"POST /api/v1{path} HTTP/1.1",
        "Host: redrive.test",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Content-Length: 100000",
    )
    return "\r\n".join((*lines, "", "{")).encode()


def test_a_body_that_never_ends_is_answered_and_ended(server: Served, client: socket.socket) -> None:
    client.sendall(posted("/dlq-changes", server.token))

    assert until_ended(client, b" ").startswith(b"HTTP/1.1 503")


def test_a_body_that_nobody_waits_for_any_more_is_ended_too(client: socket.socket) -> None:
    client.sendall(posted("/dlq-changes", "rdv_nobodys"))

    assert until_ended(client, b" ").startswith(b"HTTP/1.1 401")


def test_a_body_for_an_answer_without_an_end_is_ended(server: Served, client: socket.socket) -> None:
    client.sendall(posted("/export/unmasked", server.tokens[Role.ADMIN]))

    assert until_ended(client, b" ") == b""


def test_whoever_gets_on_with_it_is_answered_meanwhile(server: Served) -> None:
    at = urlsplit(server.url)
    slow = [socket.create_connection((at.hostname, at.port)) for _ in range(200)]
    try:
        for each in slow:
            with suppress(ConnectionError):
                each.sendall(REQUEST)
        with closing(socket.create_connection((at.hostname, at.port))) as quick:
            quick.sendall(WHOLE)
            assert answer(quick).startswith(b"HTTP/1.1 200")
    finally:
        for each in slow:
            each.close()


@asynccontextmanager
async def in_this_process(patience: Patience, body: bytes) -> AsyncIterator[tuple[uvicorn.Server, Any]]:
    """A server that answers everything with that, and its address."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        for start in range(0, len(body), 1 << 20):
            part = body[start : start + (1 << 20)]
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    protocol = cast("type[asyncio.Protocol]", partial(PatientProtocol, patience=patience))
    config = uvicorn.Config(
        app, http=protocol, ws="none", log_config=None, lifespan="off", timeout_keep_alive=0, loop="asyncio"
    )
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # so that little is on the way unread
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve(sockets=[listening]))
    try:
        yield running, listening.getsockname()
    finally:
        running.should_exit = True
        await task


@pytest.mark.parametrize("size", [8 << 20, 48 << 10], ids=["while it is answered", "its last bytes"])
async def test_whoever_does_not_read_the_answer_is_ended(size: int) -> None:
    patience = Patience(headers=600.0, body=0.2, connections=3)
    async with in_this_process(patience, b"x" * size) as (running, address):
        with closing(socket.socket()) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(address)
            client.sendall(WHOLE)

            await until(lambda: running.server_state.tasks or running.server_state.total_requests)
            await until(lambda: not running.server_state.connections)


async def test_there_are_no_more_connections_than_there_may_be() -> None:
    patience = Patience(headers=600.0, body=600.0, connections=3)
    async with in_this_process(patience, b"") as (_, address):
        held = [await asyncio.open_connection(*address) for _ in range(3)]
        for _, writer in held:  # so that the server has all of them
            writer.write(REQUEST)
            writer.write(b"Connection: keep-alive\r\n")
            await writer.drain()
        over, over_writer = await asyncio.open_connection(*address)

        with suppress(ConnectionError):
            over_writer.write(WHOLE)
            assert await over.read() == b""
        for reader, writer in held:
            writer.write(b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for each in (over_writer, *(writer for _, writer in held)):
            each.close()
