"""How long the machine has been running: the one clock that nobody can set."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Uptime(msgspec.Struct, frozen=True):
    boot: str
    """Names one start of one machine; empty where nobody knows it."""
    seconds: float
    """Since then, sleep included."""


class NotedClock(msgspec.Struct, frozen=True):
    """What a machine's clock said, and how long the machine had been running then."""

    at: datetime
    uptime: Uptime


def uptime() -> Uptime:
    try:
        return Uptime(_BOOT_ID.read_text().strip(), time.clock_gettime(time.CLOCK_BOOTTIME))
    except (OSError, AttributeError):  # not Linux
        return Uptime("", 0.0)
