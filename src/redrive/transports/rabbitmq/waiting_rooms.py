"""Which delay queues there are. AMQP cannot list queues, so they are those this process has used and, where the
management API answers, those of others.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from redrive.errors import RedriveError
from redrive.transports.rabbitmq.management_address import ManagementAddress

if TYPE_CHECKING:
    import ssl

    from redrive.clock import Clock
    from redrive.transports.rabbitmq.topology import Topology

_AGAIN, _AGAIN_WHEN_DEAF = 5.0, 60.0


class WaitingRooms:
    def __init__(
        self, url: str, management_url: str | None, *, security: ssl.SSLContext | None, clock: Clock
    ) -> None:
        self._address = ManagementAddress(url, management_url)
        self._security = security
        self._clock = clock
        self._names: set[str] = set()
        self._ask_at = 0.0

    def used(self, name: str) -> None:
        self._names.add(name)

    async def of(self, queues: set[str], topology: Topology) -> set[str]:
        """The names of those for these queues."""
        if self._clock.monotonic() >= self._ask_at:
            await self._ask(topology)
        return {name for name in self._names if topology.home_of_waiting(name) in queues}

    async def _ask(self, topology: Topology) -> None:
        self._ask_at = self._clock.monotonic() + _AGAIN_WHEN_DEAF
        with suppress(RedriveError):
            self._names |= {name for name in await self._listed() if topology.home_of_waiting(name) is not None}
            self._ask_at = self._clock.monotonic() + _AGAIN

    async def _listed(self) -> list[str]:
        from redrive.transports.rabbitmq.management import Management  # noqa: PLC0415  slow to load, and few look

        management = Management(self._address, security=self._security, deadline=1.0)
        try:
            return [queue.name for queue in await management.queues()]
        finally:
            await management.close()
