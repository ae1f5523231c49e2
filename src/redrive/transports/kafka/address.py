"""Where the brokers are: `kafka://host:9092,other:9092`, with `user:password@` before them for SASL."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from redrive.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Value = str | int | float | bool

_SCHEMES = {"kafka": False, "kafkas": True}
_MECHANISM = "SCRAM-SHA-512"

OWN = frozenset(
    {
        "acks",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "group.id",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "transactional.id",
    }
)
"""What the driver's promises stand on; nobody else sets it."""


class Address(msgspec.Struct, frozen=True):
    servers: str
    user: str
    password: str
    secure: bool

    def __repr__(self) -> str:
        return f"Address({self.servers})"

    def client_settings(self, more: Mapping[str, Value]) -> dict[str, Value]:
        """For librdkafka; `more` is passed through. ConfigurationError for what is the driver's own."""
        if taken := sorted(OWN & more.keys()):
            raise ConfigurationError(
                f"[broker.kafka.client] cannot set {taken[0]!r}: no promise would hold with another value",
                remedy="leave it out; see docs/kafka.md for what is set and why",
            )
        protocol = "SSL" if self.secure else "PLAINTEXT"
        found: dict[str, Value] = {"bootstrap.servers": self.servers, "security.protocol": protocol}
        if self.user:
            found["security.protocol"] = f"SASL_{protocol}"
            found |= {"sasl.mechanism": _MECHANISM, "sasl.username": self.user, "sasl.password": self.password}
        return {**found, **more}


def parse(url: str) -> Address:
    """ConfigurationError, which does not quote the password, for anything that is no such URL."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    credentials, _, servers = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    hosts = [each.strip() for each in servers.split(",")]
    if scheme not in _SCHEMES or path or not all(map(_is_host, hosts)):
        raise ConfigurationError(
            f"the {scheme}:// address of the brokers cannot be read",
            remedy="write kafka://user:password@host:9092; several hosts with commas; kafkas:// for TLS",
        )
    return Address(",".join(hosts), unquote(user), unquote(password), _SCHEMES[scheme])


def _is_host(text: str) -> bool:
    name, colon, port = text.rpartition(":")
    if not colon:
        name, port = text, "9092"
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 2**16
    return bool(name) and is_port and not set(name) & set(" ?#/")
