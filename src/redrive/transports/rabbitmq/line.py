"""A connection that is opened when somebody needs it, and again after it was lost."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Any

from redrive.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from redrive.transports.rabbitmq.connection import Connection


class Line:
    def __init__(self, connect: Callable[[], Coroutine[Any, Any, Connection]]) -> None:
        self._connect = connect
        self._current: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._closed = False

    async def connection(self) -> Connection:
        """The one that is alive, else a new one: those who ask meanwhile share it, and its failure too."""
        if self._closed:
            raise Unreachable("the transport is closed")
        if self._current is not None and self._current.why_lost is None:
            return self._current
        if self._opening is None or self._opening.done():
            # In a context of its own: what is logged of the connection later is not about whoever asked first.
            self._opening = asyncio.create_task(self._open(), context=Context())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Connection:
        self._current = await self._connect()
        return self._current

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            await asyncio.wait({self._opening})
            if not self._opening.cancelled():
                self._opening.exception()  # told to those who waited
        if self._current is not None:
            await self._current.close()
