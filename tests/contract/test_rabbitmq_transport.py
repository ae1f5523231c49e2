import asyncio

import pytest

from redrive.testing.transport_contract import TransportContract
from redrive.transports import Transport
from redrive.transports.rabbitmq.topology import Topology
from redrive.transports.rabbitmq.transport import RabbitTransport


class RabbitContract(TransportContract):
    delay = 0.5
    exact_time = False

    @pytest.fixture(autouse=True)
    def _broker(self, rabbitmq_url: str) -> None:
        self.url = rabbitmq_url

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # the broker's own clock cannot be moved


class TestQuorum(RabbitContract):
    async def make_transport(self) -> Transport:
        return RabbitTransport(self.url)


class TestClassic(RabbitContract):
    async def make_transport(self) -> Transport:
        return RabbitTransport(self.url, topology=Topology(queue_type="classic"))
