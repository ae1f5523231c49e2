"""New connections to a server that may be away: one attempt tells all who wait whether it is there.

When a server goes, everybody who used it wants a new connection in the same moment; a pool full of them, in every
process, is the storm that a server which has just come back needs least.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Knocking:
    """`connect` opens one connection."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._turn = asyncio.Lock()
        self._failures = 0
        self._error: Exception | None = None

    async def connect(self) -> Any:
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
            return connection
