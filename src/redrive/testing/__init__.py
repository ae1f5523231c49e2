"""Shipped contract suites for drivers, and what tests of one's own handlers need.

The suites need pytest and pytest-asyncio; nothing else here does.
"""

from redrive.testing.clock import InstantClock, ManualClock
from redrive.testing.worker import Bench, bench_for

__all__ = ["Bench", "InstantClock", "ManualClock", "bench_for"]
