"""The SDK's two clients, and who they say they are."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import AzureError
from azure.servicebus.aio import ServiceBusClient

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential
    from azure.servicebus.aio.management import ServiceBusAdministrationClient

    from redrive.transports.servicebus.address import Address

_PATIENCE: dict[str, Any] = {"retry_total": 2, "connection_timeout": 10, "read_timeout": 20}
"""With HTTP. The SDK's own is five minutes for a connection, ten times."""

_AGAIN: dict[str, Any] = {"retry_backoff_factor": 0.2}
"""With AMQP: seconds, doubled each of three times. Then whoever uses the driver decides how long to try."""


class Access:
    """By the address's policy and key, else as Entra ID finds out: by the environment, a workload's or managed
    identity, `az login`.

    `administration`: HOST:PORT of the HTTPS side, where it is not the namespace's own; `ca`: whom both sides trust
    beside the usual authorities; `attempt`: seconds for one attempt at something, with AMQP.
    """

    def __init__(self, address: Address, *, administration: str = "", ca: str = "", attempt: float = 10.0) -> None:
        self.address = address
        self._again = {**_AGAIN, "try_timeout": attempt}
        self._administration = administration or address.host
        self._trusted: dict[str, Any] = {"connection_verify": ca} if ca else {}
        self._identity: DefaultAzureCredential | None = None

    def messages(self) -> ServiceBusClient:
        if self.address.policy:
            string = self.address.connection_string
            return ServiceBusClient.from_connection_string(string, **self._trusted, **self._again)
        plain: dict[str, Any] = {"use_tls": False} if self.address.emulator else {}
        return ServiceBusClient(self.address.host, self._credential(), **self._trusted, **plain, **self._again)

    def entities(self) -> ServiceBusAdministrationClient:
        from azure.servicebus.aio.management import (  # noqa: PLC0415  it is slow to import, and few ask
            ServiceBusAdministrationClient,
        )

        if self.address.policy:
            told = f"SharedAccessKeyName={self.address.policy};SharedAccessKey={self.address.key}"
            string = f"Endpoint=sb://{self._administration};{told}"
            return ServiceBusAdministrationClient.from_connection_string(string, **self._trusted, **_PATIENCE)
        return ServiceBusAdministrationClient(
            self._administration, self._credential(), **self._trusted, **_PATIENCE
        )

    async def close(self) -> None:
        identity, self._identity = self._identity, None
        if identity is not None:
            with suppress(AzureError, OSError):
                await identity.close()

    def _credential(self) -> DefaultAzureCredential:
        from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415  only those without a key

        if self._identity is None:
            self._identity = DefaultAzureCredential()
        return self._identity
