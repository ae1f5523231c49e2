"""What `send_at_once` must do, where a driver has it; it is skipped where not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from redrive.errors import PublishRefused
from redrive.testing.transport_corpus import OVERLAY
from redrive.testing.transport_harness import TransportHarness

if TYPE_CHECKING:
    from redrive.transports import Transport


def _nobody_is_told(error: Exception | None) -> None:
    raise AssertionError(f"told of a message that is not on its way: {error}")


class AtOnceContract(TransportHarness):
    """A promise per test."""

    async def test_what_is_sent_at_once_arrives_as_if_by_send(self, transport: Transport) -> None:
        quick = self.quick(transport)
        await transport.send(self.message())  # connected, and the queue is known
        messages = [self.message(headers=(("a", number),), key=b"k", overlay=OVERLAY) for number in range(20)]
        told = [self.told(quick, message) for message in messages]
        assert await asyncio.gather(*told) == [None] * 20
        arrived = [delivery.message for delivery in await self.handle(transport, 21)]
        assert all(message in arrived for message in messages)

    async def test_nothing_is_sent_at_once_by_a_transport_that_has_to_connect_first(
        self, transport: Transport
    ) -> None:
        quick = self.quick(transport)
        assert not quick.send_at_once(self.message(), queue=self.queue, done=_nobody_is_told)
        await self.expect_only(transport)

    async def test_what_cannot_be_sent_is_not_sent_at_once_either(self, transport: Transport) -> None:
        quick = self.quick(transport)
        await transport.send(self.message())
        impossible = self.message(headers=(("a", object()),))
        assert not quick.send_at_once(impossible, queue=self.queue, done=_nobody_is_told)
        with pytest.raises(PublishRefused):
            await transport.send(impossible)
