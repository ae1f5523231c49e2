"""The connections of one process to a server that may be away: how they are opened, and how it takes leave.

When a server goes, everybody who used it wants a new connection in the same moment; a pool full of them, in every
process, is the storm that a server which has just come back needs least. So one attempt tells all who wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_GOODBYE = 2.0
"""Seconds that a server has for its answer to our leaving."""


class Connections:
    """`connect` opens one."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._opened: WeakSet[Any] = WeakSet()
        self._turn = asyncio.Lock()
        self._failures = 0
        self._error: Exception | None = None

    async def open(self) -> Any:
        """A new one. Only one is tried at a time; if that fails, it fails for all who wait for their turn."""
        failures = self._failures
        async with self._turn:
            if self._error is not None and self._failures > failures:
                raise self._error
            try:
                connection = await self._connect()
            except Exception as error:
                self._failures += 1
                self._error = error
                raise
            self._error = None
        self._opened.add(connection)
        return connection

    async def close(self) -> None:
        """All of them at once. One whose server does not answer is left without a goodbye: whoever stops must not
        wait for a network that is gone.
        """
        goodbyes = (connection.close(timeout=_GOODBYE) for connection in list(self._opened))
        await asyncio.gather(*goodbyes, return_exceptions=True)
