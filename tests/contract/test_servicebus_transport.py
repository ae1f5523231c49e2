"""The transport's contract on the emulator of Azure Service Bus: the SDK is real, the broker is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from redrive.testing.transport_contract import TransportContract
from redrive.transports.servicebus.transport import ServiceBusTransport
from support.servicebus.counts import EmulatorCounts
from support.servicebus.emulator import emulated
from support.servicebus.entity import Rules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redrive.transports import Transport

MANY = Rules(max_deliveries=1000)
"""A release is a delivery more, and beyond its maximum the broker dead-letters a message itself."""


class TestServiceBusEmulator(TransportContract):
    exact_time = False

    @pytest_asyncio.fixture(autouse=True)
    async def _broker(self) -> AsyncIterator[None]:
        async with emulated() as self.emulator:
            yield

    async def make_transport(self) -> Transport:
        for name in (self.queue, f"elsewhere_{self.queue}", f"{self.queue}_dlq"):
            if self.emulator.namespace.receivable(name) is None:
                self.emulator.namespace.queue(name, MANY)
        return ServiceBusTransport(self.emulator.url, counts=EmulatorCounts(self.emulator))

    async def pass_time(self, seconds: float) -> None:
        self.emulator.pass_time(seconds)
