"""Where the broker is: `amqp://user:password@host:5672/vhost`, several hosts with commas, `amqps` for TLS."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from redrive.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

_PORTS = {"amqp": 5672, "amqps": 5671}
_MAX_PORT = 65535


class Host(msgspec.Struct, frozen=True):
    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


class Address(msgspec.Struct, frozen=True):
    hosts: tuple[Host, ...]
    user: str
    password: str
    vhost: str
    secure: bool

    def __repr__(self) -> str:
        return f"Address({', '.join(map(str, self.hosts))}, vhost {self.vhost!r})"


def parse(url: str) -> Address:
    """ConfigurationError, which does not quote the password, for anything that is no such URL."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    if scheme not in _PORTS or not authority or set(path) & set("?#/"):
        raise _wrong(scheme)
    credentials, _, hosts = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    return Address(
        hosts=tuple(_host(part.strip(), scheme) for part in hosts.split(",")),
        user=unquote(user) if credentials else "guest",
        password=unquote(password) if credentials else "guest",
        vhost=unquote(path) if slash and path else "/",
        secure=scheme == "amqps",
    )


def security(*, ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Checks the broker's certificate, against this authority or those of the system."""
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
        if certificate is not None:
            context.load_cert_chain(str(certificate), None if key is None else str(key))
    except OSError as error:  # ssl's own errors too
        raise ConfigurationError(
            f"the TLS files of the broker cannot be used: {error}",
            remedy="set [broker.rabbitmq] tls_ca, tls_certificate and tls_key to readable PEM files",
        ) from None
    return context


def _host(text: str, scheme: str) -> Host:
    if text.startswith("["):
        name, closed, port = text[1:].partition("]")
        name, port = name if closed else "", port.removeprefix(":")
    else:
        name, _, port = text.partition(":")
    if not name or (port and not (port.isascii() and port.isdigit() and 0 < int(port) <= _MAX_PORT)):
        raise _wrong(scheme)
    return Host(name, int(port) if port else _PORTS[scheme])


def _wrong(scheme: str) -> ConfigurationError:
    return ConfigurationError(
        f"the {scheme}:// address of the broker cannot be read",
        remedy="write amqp://user:password@host:5672/vhost; several hosts with commas; a / in a name is %2F",
    )
