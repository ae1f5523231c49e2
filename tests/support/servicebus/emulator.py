"""An emulator of Azure Service Bus: an AMQP 1.0 server inside this process that the real SDK talks to unchanged.

It is an emulator, written from what the SDK sends and expects and from what Azure documents. It has no disk, no
partitions, no transactions, no duplicate detection and no forwarding; what only a
real namespace can show is listed in docs/decisions/0013-service-bus.md.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from support.servicebus.administration import EmulatedAdministration
from support.servicebus.connection import EmulatedConnection
from support.servicebus.faults import Faults
from support.servicebus.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.certificates import Certificates

_TURNS = 10
"""Of the event loop, in which both ends hear that they are cut."""
_POLICY, _KEY = "RootManageSharedAccessKey", "bm90IGEgc2VjcmV0"


class ServiceBusEmulator:
    """`namespace` has its entities, `faults` what shall go wrong. Time passes by itself, and by `pass_time`."""

    def __init__(self, certificates: Certificates | None = None) -> None:
        """With certificates it has an administration, over HTTPS."""
        self._ahead = 0.0
        self.namespace = Namespace(self.now)
        self.faults = Faults()
        self.connections: set[EmulatedConnection] = set()
        self._trusted = "" if certificates is None else str(certificates.authority)
        self._administration = (
            None if certificates is None else EmulatedAdministration(self, certificates, key=_KEY)
        )
        self._server: asyncio.Server | None = None
        self._woken: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def connection_string(self) -> str:
        """For the SDK."""
        key = f"SharedAccessKeyName={_POLICY};SharedAccessKey={_KEY}"
        return f"Endpoint=sb://127.0.0.1:{self._port};{key};UseDevelopmentEmulator=true;"

    @property
    def url(self) -> str:
        """For Redrive."""
        return f"servicebus-emulator://{_POLICY}:{_KEY}@127.0.0.1:{self._port}"

    @property
    def administration(self) -> EmulatedAdministration:
        assert self._administration is not None, "it was made without certificates"
        return self._administration

    @property
    def variables(self) -> dict[str, str]:
        """Where its administration is, by the ends of the variables that tell Redrive."""
        section, place = "BROKER__SERVICEBUS__", f"https://127.0.0.1:{self.administration.port}"
        return {f"{section}ADMINISTRATION": place, f"{section}TLS_CA": self._trusted}

    @property
    def settings(self) -> str:
        """For Redrive's settings, in TOML, with the administration."""
        own = f'administration = "https://127.0.0.1:{self.administration.port}"\ntls_ca = "{self._trusted}"'
        return f'[broker]\nurl = "{self.url}"\n[broker.servicebus]\n{own}\n'

    @property
    def _port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def now(self) -> float:
        return time.time() + self._ahead

    def pass_time(self, seconds: float) -> None:
        """The emulator's clock alone: the SDK's goes on as it did."""
        self._ahead += seconds
        self._work()

    def cut(self) -> None:
        """Every connection, at once. New ones can be made."""
        for connection in list(self.connections):
            connection.cut()

    def lose_locks(self) -> None:
        """Every lock on a message or a session is over."""
        for entity in self.namespace:
            entity.lose_locks()
            entity.sessions.lose()
        self._work()

    def wake(self) -> None:
        """Something has changed: receivers may get something, as soon as whoever changed it is done."""
        if self._woken is None:
            self._woken = asyncio.get_running_loop().call_soon(self._work)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: EmulatedConnection(self), "127.0.0.1", 0)
        if self._administration is not None:
            await self._administration.start()

    async def stop(self) -> None:
        assert self._server is not None
        if self._administration is not None:
            await self._administration.stop()
        self._server.close()
        self.cut()
        for handle in (self._woken, self._timer):
            if handle is not None:
                handle.cancel()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def _work(self) -> None:
        self._woken = None
        for entity in self.namespace:
            for owner in entity.sweep():
                for connection in list(self.connections):
                    connection.session_lost(owner)
        for connection in list(self.connections):
            connection.hand_out()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        moments = [moment for entity in self.namespace if (moment := entity.next_moment()) is not None]
        if moments:
            wait = max(min(moments) - self.now(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(wait, self._work)


@asynccontextmanager
async def emulated(certificates: Certificates | None = None) -> AsyncIterator[ServiceBusEmulator]:
    emulator = ServiceBusEmulator(certificates)
    await emulator.start()
    try:
        yield emulator
    finally:
        await emulator.stop()
