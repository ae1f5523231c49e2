"""What retries must do that stay where they are, where a driver has such (`Capabilities.durable_retries`);
skipped where not.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from redrive.testing.transport_harness import TransportHarness

if TYPE_CHECKING:
    from redrive.transports import Transport


class InPlaceContract(TransportHarness):
    """A promise per test."""

    async def test_a_retry_that_stays_in_its_place_is_never_early_and_passed_by_none(
        self, transport: Transport
    ) -> None:
        if self.can(transport).durable_retries or not self.exact_time:
            pytest.skip("retries are set aside, or no exact time")
        messages = [self.message() for _ in range(3)]
        for message in messages:
            await transport.send(message)
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=self.delay, trail=b"")
        assert await self.total(transport) == 3
        await self.pass_time(self.delay - 0.001)
        async with aclosing(transport.receive(self.queue, prefetch=10)) as deliveries:
            await self.expect_nothing(transport, deliveries)
        await self.pass_time(0.001)
        again = await self.handle(transport, 3)
        assert [delivery.message for delivery in again] == messages
        assert [delivery.attempt for delivery in again] == [2, 1, 1]

    async def test_a_retry_that_stays_in_its_place_begins_anew_after_its_process(
        self, transport: Transport
    ) -> None:
        if self.can(transport).durable_retries:
            pytest.skip("retries are set aside")
        messages = [self.message() for _ in range(3)]
        for message in messages:
            await transport.send(message)
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=self.delay, trail=b"trail")
        await transport.close()
        again = await self.handle(await self.open(), 3)
        assert [delivery.message for delivery in again] == messages
        assert (again[0].identity, again[0].attempt, again[0].trail) == (first.identity, 1, None)
        self.expect_unmarked(transport, *again)
