"""The one HTTP client for addresses that settings or people name: identity providers, webhooks.

Whoever may name an address could have this process ask inside its own network. So every request:
- goes to https (http only to hosts that the settings allow), and to few ports;
- has its host resolved once, every address of it must be public, and the connection goes to an address that was
  checked, under the host's own name in TLS: nobody can answer differently the second time;
- is never redirected, never sent through a proxy, has five seconds and 64 KiB of answer in all.

No error quotes what was answered. Hosts that the settings allow may be private.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec
import re2

from redrive.errors import Refused, Unreachable
from redrive.public_address import is_public

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

DEADLINE = 5.0
LARGEST_ANSWER = 64 * 1024
PORTS = frozenset({443, 8443})
_LONGEST_URL = 2048
_LONGEST_HOST = 253
_LONGEST_LATER = 40
"""Characters of a Retry-After: a number, or a date as HTTP has it."""
_NAME = re2.compile(r"([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_PRINTABLE = re2.compile(r"[!-~]+")
_USUAL = {"https": 443, "http": 80}
_REMEDY = "name an https address that is public, or allow its host in the settings (allowed_hosts)"


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    retry_after: str = ""
    """As it stands in the header of that name; empty: there is none, or a strange one."""

    def __repr__(self) -> str:
        return f"Answer(status={self.status}, {len(self.body)} bytes)"


class Target(NamedTuple):
    """Where a URL leads, once it was checked."""

    scheme: str
    host: str
    port: int
    path: str
    is_allowed: bool
    """The settings allow this host by its name."""

    def url_at(self, address: str) -> str:
        literal = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{literal}:{self.port}{self.path}"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _USUAL[self.scheme] else f"{host}:{self.port}"


async def system_addresses(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Outgoing:
    """`allowed`: hosts that may be private and may be asked by http, each as `host` or `host:port`."""

    def __init__(
        self,
        *,
        allowed: Collection[str] = (),
        ports: Collection[int] = PORTS,
        resolve: Callable[[str, int], Awaitable[Sequence[str]]] = system_addresses,
        deadline: float = DEADLINE,
        security: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = frozenset(each.strip().lower() for each in allowed)
        self._ports = frozenset(ports)
        self._resolve = resolve
        self._deadline = deadline
        self._security = security

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made once: reading all authorities takes longer than most requests."""
        import httpx2  # noqa: PLC0415  only those who ask somebody load it

        return self._security or httpx2.create_ssl_context()

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._ask("GET", url, headers or {}, b"")

    async def post(self, url: str, body: bytes, *, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._ask("POST", url, headers or {}, body)

    def check(self, url: str) -> Target:
        """Where the URL leads, as far as its text tells. Refused if nothing may be asked there."""
        target = _target(url)
        named, whole = target.host, f"{target.host}:{target.port}"
        is_allowed = named in self._allowed or whole in self._allowed
        if target.scheme == "http" and not is_allowed:
            raise _refused("http is not private")
        if target.port not in self._ports and whole not in self._allowed and not _is_usual(target, is_allowed):
            raise _refused(f"port {target.port} is not one of those that may be asked")
        return target._replace(is_allowed=is_allowed)

    async def _ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        target = self.check(url)
        try:
            async with asyncio.timeout(self._deadline):
                address = await self._address(target)
                return await self._send(method, target, address, headers, body)
        except TimeoutError:
            raise Unreachable(f"{target.host} did not answer in {self._deadline:g} s") from None

    async def _address(self, target: Target) -> str:
        """The first of its addresses, if all may be asked: one that may not is reason enough."""
        try:
            found = await self._resolve(target.host, target.port)
        except OSError:
            raise Unreachable(f"{target.host} has no address") from None
        if not found:
            raise Unreachable(f"{target.host} has no address")
        if not target.is_allowed and not all(is_public(each) for each in found):
            raise _refused(f"{target.host} is not a public host")
        return found[0]

    async def _send(
        self, method: str, target: Target, address: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        import httpx2  # noqa: PLC0415  as above

        asked = {**headers, "host": target.host_header, "accept-encoding": "identity"}
        try:
            async with (
                httpx2.AsyncClient(
                    verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._deadline
                ) as client,
                client.stream(
                    method,
                    target.url_at(address),
                    headers=asked,
                    content=body or None,
                    extensions={"sni_hostname": target.host},
                ) as response,
            ):
                body = await _bounded(response.aiter_raw(), target.host)
                later = response.headers.get("retry-after", "")
                return Answer(response.status_code, body, later if len(later) <= _LONGEST_LATER else "")
        except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, OSError) as error:
            raise Unreachable(f"{target.host} cannot be asked: {type(error).__name__}") from None


async def _bounded(chunks: AsyncIterator[bytes], host: str) -> bytes:
    found = bytearray()
    async for chunk in chunks:
        found += chunk
        if len(found) > LARGEST_ANSWER:
            raise Unreachable(f"{host} answers with more than {LARGEST_ANSWER // 1024} KiB")
    return bytes(found)


def _is_usual(target: Target, is_allowed: bool) -> bool:  # noqa: FBT001  one of two facts
    return is_allowed and target.port == _USUAL[target.scheme]


def _target(url: str) -> Target:
    if len(url) > _LONGEST_URL or not url.isascii() or not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise _refused("this is no URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused("this is no URL") from None
    if parts.scheme not in _USUAL or url.partition(":")[2][:2] != "//":
        raise _refused("only https can be asked")
    if "@" in parts.netloc or parts.fragment or port == 0:
        raise _refused("a URL has no name, password or fragment here")
    host = _host(parts)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, _USUAL[parts.scheme] if port is None else port, path, is_allowed=False)


def _host(parts: SplitResult) -> str:
    """A name, or an address in the one form that nobody reads differently."""
    host = (parts.hostname or "").removesuffix(".")
    if parts.netloc.startswith("["):
        return _literal(host)
    if host.rpartition(".")[2][:1].isdigit():
        return _literal(host)
    if len(host) > _LONGEST_HOST or not _NAME.fullmatch(host):
        raise _refused("this is no host's name")
    return host


def _literal(host: str) -> str:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        raise _refused("this is no host's address") from None
    if "%" in host or (found.version == 4 and str(found) != host):  # noqa: PLR2004  IPv4
        raise _refused("this is no host's address")
    return str(found)


def _refused(why: str) -> Refused:
    return Refused(f"this address may not be asked: {why}", remedy=_REMEDY)
