"""What lies on a server that plays SQS, asked by a plain client and by nothing of the product's."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from chaos.lab.broker import Broker
from redrive.secret_url import SecretUrl
from redrive.settings import BrokerSettings
from redrive.sqs_settings import SqsSettings
from support.sqs_account import CREDENTIALS, URL

if TYPE_CHECKING:
    from support.plain_sqs import PlainSqs

_PATIENCE = 60.0
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class Sqs(Broker):
    """Queues of a server that runs. All their names begin with `name`."""

    names_all: ClassVar[bool] = False
    modules: ClassVar[tuple[str, ...]] = ("redrive.transports.sqs.transport",)
    environment: ClassVar[dict[str, str]] = CREDENTIALS

    endpoint: str
    name: str
    visibility: float = 2.0
    """Seconds after which others get what a dead process had in hand."""

    def settings(self) -> BrokerSettings:
        own = SqsSettings(endpoint=self.endpoint, visibility=self.visibility, wait=1.0)
        return BrokerSettings(url=SecretUrl(URL), sqs=own)

    def queue(self, name: str) -> str:
        return f"{self.name}-{name}"

    def messages(self) -> Counter[str]:
        """Once nobody has any in hand."""
        client, deadline = self._client(), time.monotonic() + _PATIENCE
        queues = client.names(self.name)
        while any(client.hidden(queue) for queue in queues):
            assert time.monotonic() < deadline, "somebody has messages in hand"
            time.sleep(_LOOK_EVERY)
        return Counter(_message_id(body) for queue in queues for body in client.look_into(queue))

    def _client(self) -> PlainSqs:
        """The client library is loaded by those who use it: most processes of the lab fork, and never do."""
        client: PlainSqs = import_module("support.plain_sqs").PlainSqs(self.endpoint)
        return client


def _message_id(body: str) -> str:
    return str(json.loads(body).get("message_id", ""))
