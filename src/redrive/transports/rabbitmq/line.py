"""A connection that is opened when somebody needs it, and again after it was lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from redrive.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.transports.rabbitmq.connection import Connection


class Line:
    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._current: Connection | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def connection(self) -> Connection:
        """The one that is alive, else a new one: those who ask meanwhile share it."""
        if self._current is not None and self._current.why_lost is None and not self._closed:
            return self._current
        async with self._opening:
            if self._closed:
                raise Unreachable("the transport is closed")
            if self._current is None or self._current.why_lost is not None:
                self._current = await self._connect()
            return self._current

    async def close(self) -> None:
        self._closed = True
        async with self._opening:
            if self._current is not None:
                await self._current.close()
