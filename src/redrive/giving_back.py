"""Deliveries that nobody will finish go back to the broker, each in a task of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from redrive.errors import LeaseLost, RedriveError

if TYPE_CHECKING:
    from redrive.transports import Delivery, Transport

log = structlog.get_logger("redrive.broker")


class GivingBack:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.under_way: set[asyncio.Task[None]] = set()

    def start(self, delivery: Delivery) -> asyncio.Task[None]:
        """No cancellation of whoever had the delivery interrupts the task."""
        task = asyncio.create_task(self._release(delivery))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return task

    async def _release(self, delivery: Delivery) -> None:
        try:
            await self._transport.release(delivery)
        except LeaseLost:
            pass  # it was settled at the same moment, or somebody else has it
        except RedriveError as error:
            log.warning("not given back, its lease will run out", queue=delivery.queue, error=str(error))
