"""The emulator's counts, in the place of the administration over HTTP, which it does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.transports.servicebus.counts import Count
from support.servicebus.held import ACTIVE, SCHEDULED

if TYPE_CHECKING:
    from support.servicebus.emulator import ServiceBusEmulator


class EmulatorCounts:
    def __init__(self, emulator: ServiceBusEmulator) -> None:
        self._emulator = emulator

    async def of(self, entity: str) -> Count | None:
        found = self._emulator.namespace.receivable(entity)
        if found is None:
            return None
        states = [held.state for held in found.messages.values()]
        dead = len(found.dead_letters.messages) if found.subqueues else 0
        return Count(states.count(ACTIVE), states.count(SCHEDULED), dead)

    async def close(self) -> None:
        pass
