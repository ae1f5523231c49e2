"""The line to the server: one question, one answer. Nothing is asked twice by itself."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from redrive import __version__
from redrive.any_text_json import decoded
from redrive.errors import RedriveError, Unreachable
from redrive.remote.told import error_of, not_redrive

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

    from redrive.remote.address import Server

T = TypeVar("T")

_PREFIX = "/api/v1"
_PATIENCE = httpx2.Timeout(30.0, connect=10.0)
_JSON = "application/json"


class Line:
    def __init__(self, server: Server, client: httpx2.AsyncClient) -> None:
        self._server = server
        self._client = client

    async def ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """The answer, as that type. The server's error is raised as it was raised there."""
        request = self._request(method, path, params, body, headers)
        with self._told():
            response = await self._client.send(request)
        if not response.is_success:
            raise error_of(response, self._server.url)
        if not response.headers.get("content-type", "").startswith(_JSON):
            raise not_redrive(response, self._server.url)
        return self._read(response.content, kind)

    async def lines(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None
    ) -> AsyncGenerator[Any]:
        """The values of an answer of JSON lines, each when it has come. Unreachable if the answer breaks off."""
        request = self._request(method, path, params, body, None)
        with self._told():
            response = await self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response, self._server.url)
                async for line in _split(response.aiter_bytes()):
                    yield self._read(line, dict)
            finally:
                await response.aclose()

    def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> httpx2.Request:
        content = None if body is None else msgspec.json.encode(body)
        return self._client.build_request(
            method,
            f"{self._server.url}{_PREFIX}{path}",
            params=None
            if params is None
            else {name: value for name, value in params.items() if value is not None},
            content=content,
            headers={**(headers or {}), **({} if content is None else {"content-type": _JSON})},
        )

    def _read(self, raw: bytes, kind: type[T]) -> T:
        try:
            return decoded(raw, kind)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RedriveError(
                f"the answer of {self._server.url} is not understood: {error}",
                remedy="is the server of another version than this command?",
            ) from None

    @contextmanager
    def _told(self) -> Iterator[None]:
        url = self._server.url
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            reason = str(error).strip() or "no answer"
            remedy = "is `redrive serve` running there? --server and REDRIVE_SERVER say where"
            raise Unreachable(f"cannot reach {url}: {reason}", remedy=remedy) from None
        except httpx2.TimeoutException:
            raise Unreachable(f"{url} does not answer in time", remedy=_UNKNOWN) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise Unreachable(f"the connection to {url} broke off: {error}", remedy=_UNKNOWN) from None


_UNKNOWN = "whether it was done is not known: look before you do it again"


def segment(text: str) -> str:
    """As a part of a path, whatever stands in it."""
    return quote(text.strip(), safe="") or "-"


async def _split(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Lines, by line feeds alone. An end without one is an answer that was cut."""
    begun: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for each in others:
            yield b"".join(begun)
            begun = [each]
    if any(begun):
        raise Unreachable("the answer broke off in the middle of a letter", remedy="ask again")


@asynccontextmanager
async def opened_line(server: Server) -> AsyncIterator[Line]:
    """A token is sent to that server and to no other one: redirects are not followed."""
    headers = {
        "authorization": f"Bearer {server.token.reveal()}",
        "accept": f"{_JSON}, application/problem+json, application/x-ndjson",
        "user-agent": f"redrive/{__version__}",
    }
    # To this machine itself no proxy leads, whatever the environment says.
    async with httpx2.AsyncClient(
        headers=headers,
        timeout=_PATIENCE,
        follow_redirects=False,
        trust_env=not server.is_local,
        verify=_security(server),
    ) as client:
        yield Line(server, client)


def _security(server: Server) -> ssl.SSLContext:
    """As the system has it, or SSL_CERT_FILE. Without TLS, one that trusts nobody: it costs nothing to make."""
    encrypted = server.url.startswith("https:")
    return httpx2.create_ssl_context() if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
