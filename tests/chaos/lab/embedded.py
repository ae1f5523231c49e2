"""What lies in the file of an embedded broker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from chaos.lab import places
from chaos.lab.broker import Broker
from chaos.lab.rows import rows
from redrive.secret_url import SecretUrl
from redrive.settings import BrokerSettings

LEASE = 0.6


@dataclass(frozen=True)
class Embedded(Broker):
    path: str
    lease: float = LEASE

    def settings(self) -> BrokerSettings:
        return BrokerSettings(url=SecretUrl(f"embedded:///{self.path}"), lease=self.lease)

    def messages(self) -> Counter[str]:
        return Counter(message_id for (message_id,) in rows(Path(self.path), "SELECT message_id FROM messages"))

    def damage(self) -> list[str]:
        return places.damage(Path(self.path))
