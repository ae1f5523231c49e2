"""The transport's contract on SQS as moto plays it."""

from __future__ import annotations

import pytest

from redrive.testing.transport_contract import TransportContract
from redrive.transports import Transport
from redrive.transports.sqs.transport import SqsTransport
from support.moto_server import MotoSqs


class TestSqs(TransportContract):
    @pytest.fixture(autouse=True)
    def _broker(self, sqs: MotoSqs) -> None:
        self.sqs = sqs

    async def make_transport(self) -> Transport:
        return SqsTransport(
            self.sqs.url, endpoint=self.sqs.endpoint, clock=self.sqs.clock, visibility=self.lease, wait=1
        )

    async def pass_time(self, seconds: float) -> None:
        self.sqs.clock.advance(seconds)


class TestSqsFifo(TestSqs):
    """The same on queues that keep the order of each key."""

    queue_ending = ".fifo"
