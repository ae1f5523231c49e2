"""Where the management API of a broker is, and as whom it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from redrive.errors import ConfigurationError
from redrive.transports.rabbitmq.address import Address, parse

if TYPE_CHECKING:
    from urllib.parse import SplitResult

PORT, TLS_PORT = 15672, 15671
_FORMS = "write broker.rabbitmq.management_url like http://host:15672, with user:password@ if they differ"


class ManagementAddress:
    """Beside the broker of an `amqp://` or `amqps://` URL, or at `management_url` where it is somewhere else. Its
    text never holds a password.
    """

    def __init__(self, broker_url: str, management_url: str | None = None) -> None:
        broker = parse(broker_url)
        own = None if management_url is None else _parts(management_url)
        self.vhost = broker.vhost
        self.user, self.password = _credentials(own) or (broker.user, broker.password)
        self.bases = _beside(broker) if own is None else (_base(own),)
        """One for each host that the URL names."""

    def __str__(self) -> str:
        return ", ".join(self.bases)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ConfigurationError("broker.rabbitmq.management_url is no http or https URL", remedy=_FORMS)
    return parts


def _credentials(parts: SplitResult | None) -> tuple[str, str] | None:
    named, at, _ = (parts.netloc if parts else "").rpartition("@")
    user, _, password = named.partition(":")
    return (unquote(user), unquote(password)) if at else None


def _base(own: SplitResult) -> str:
    host = own.netloc.rpartition("@")[2]
    return f"{own.scheme}://{host}{own.path.rstrip('/').removesuffix('/api')}"


def _beside(broker: Address) -> tuple[str, ...]:
    scheme, port = ("https", TLS_PORT) if broker.secure else ("http", PORT)
    names = dict.fromkeys(f"[{host.name}]" if ":" in host.name else host.name for host in broker.hosts)
    return tuple(f"{scheme}://{name}:{port}" for name in names)
