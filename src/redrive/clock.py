"""Time and ids come in from outside, so that decisions can be tested without waiting."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from datetime import UTC, datetime
from typing import Protocol

import uuid_utils

from redrive.uptime import Uptime, uptime


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring spans."""
        ...

    def uptime(self) -> Uptime:
        """How long the machine has been running, whatever its wall clock says."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> Uptime:
        return uptime()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def new_id() -> str:
    """A UUIDv7: unique, and sorts by the time it was made."""
    return str(uuid_utils.uuid7())


def own_name() -> str:
    """Of this process, such as no other has or had: a pid may come again, the id does not."""
    return f"{socket.gethostname()} {os.getpid()} {new_id()}"
