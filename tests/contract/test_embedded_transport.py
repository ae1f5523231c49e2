from pathlib import Path

import pytest

from redrive.testing import ManualClock
from redrive.testing.transport_contract import TransportContract
from redrive.transports import Names, Transport
from redrive.transports.embedded import EmbeddedTransport


class TestEmbeddedFile(TransportContract):
    @pytest.fixture(autouse=True)
    def _broker(self, tmp_path: Path) -> None:
        self.url = f"embedded:///{tmp_path}/broker.db"
        self.clock = ManualClock()

    async def make_transport(self) -> Transport:
        return EmbeddedTransport(self.url, names=Names(), clock=self.clock, lease=self.lease, poll=0.005)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)


class TestEmbeddedMemory(TransportContract):
    @pytest.fixture(autouse=True)
    def _broker(self) -> None:
        self.clock = ManualClock()

    async def make_transport(self) -> Transport:
        return EmbeddedTransport("embedded:///:memory:", names=Names(), clock=self.clock, lease=self.lease)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
