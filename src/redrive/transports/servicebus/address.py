"""Where the namespace is: `servicebus://name`, or `servicebus://policy:key@name` for a shared access policy.

A name without dots is one of `servicebus.windows.net`. Without a policy it is asked for as whoever this process is
in Entra ID. `servicebus-emulator://` is for an emulator, which speaks AMQP without TLS.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace

from redrive.errors import ConfigurationError

_SCHEMES = {"servicebus": False, "servicebus-emulator": True}
_UNSAFE = frozenset(" ;?#/@")
_DOMAIN = ".servicebus.windows.net"
_STRING = "Endpoint=sb://NAME.servicebus.windows.net/;SharedAccessKeyName=POLICY;SharedAccessKey=KEY"


class Address(msgspec.Struct, frozen=True):
    host: str
    policy: str = ""
    """Empty: Entra ID says who asks."""
    key: str = ""
    emulator: bool = False

    def __repr__(self) -> str:
        return f"Address({self.host})"

    @property
    def connection_string(self) -> str:
        """It holds the key: never in a log or an error."""
        ending = ";UseDevelopmentEmulator=true" if self.emulator else ""
        return f"Endpoint=sb://{self.host};SharedAccessKeyName={self.policy};SharedAccessKey={self.key}{ending}"


def parse(url: str, connection_string: str = "") -> Address:
    """ConfigurationError, which does not quote a key, for anything that is no such URL."""
    scheme, _, rest = url.partition("://")
    credentials, at, host = rest.rstrip("/").rpartition("@")
    policy, _, key = (unquote(part) for part in credentials.partition(":"))
    known = scheme in _SCHEMES and host and not set(host) & _UNSAFE
    if not known or bool(at) != bool(policy and key) or ";" in policy + key:
        raise ConfigurationError(
            f"the {scheme}:// address of the namespace cannot be read",
            remedy="write servicebus://NAME, or servicebus://policy:key@NAME; in a key, %2F is / and %2B is +",
        )
    emulator = _SCHEMES[scheme]
    address = Address(host if emulator else _whole(host), policy, key, emulator)
    return _with_key(address, connection_string) if connection_string else address


def _whole(host: str) -> str:
    name = host.lower()
    return name if "." in name else name + _DOMAIN


def _with_key(address: Address, connection_string: str) -> Address:
    """The connection string is the portal's; what it says beside key and namespace is nothing to us."""
    pairs = (part.partition("=") for part in connection_string.split(";"))
    told = {name.strip().lower(): value.strip() for name, _, value in pairs}
    policy, key = told.get("sharedaccesskeyname", ""), told.get("sharedaccesskey", "")
    endpoint = urlsplit(told.get("endpoint", "")).netloc
    if not (policy and key and endpoint):
        raise ConfigurationError(
            "the connection string of Service Bus cannot be read",
            remedy=f"copy it from the portal: {_STRING}; one with a SharedAccessSignature is not taken",
        )
    if address.policy:
        raise ConfigurationError(
            "there are two keys for Service Bus: one in broker.url, one in the connection string",
            remedy="leave servicebus://NAME in broker.url",
        )
    if endpoint.lower() != address.host.lower():
        raise ConfigurationError(
            f"broker.url is for {address.host}, and the connection string for another namespace",
            remedy="let both name the same one",
        )
    return replace(address, policy=policy, key=key)
