"""A time limit for what runs in the current task, as `asyncio.timeout` sets one, at a third of its cost.

Asking for the running event loop is a system call in Python 3.11, and `asyncio.timeout` asks five times; on the
hot path of every message that is dearer than all the rest of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class Deadline:
    """Within `with Deadline(...)`, `task` is cancelled after `seconds`, and that ends as TimeoutError."""

    __slots__ = ("_before", "_loop", "_passed", "_seconds", "_task", "_timer")

    def __init__(self, task: asyncio.Task[None], seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self._task = task
        self._seconds = seconds
        self._loop = loop
        self._passed = False
        self._before = 0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._before = self._task.cancelling()
        self._timer = self._loop.call_later(self._seconds, self._pass)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Somebody else may have cancelled it too, and then it is to end, not to go on with a TimeoutError.
        if self._passed and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _pass(self) -> None:
        self._passed = True
        self._task.cancel()
