"""A time limit for what is awaited, as `asyncio.timeout` sets one, and only for what really waits.

Asking for the running event loop is a system call in Python 3.11, and `asyncio.timeout` asks five times; on the
hot path of every message that is dearer than all the rest of it. A handler that ends with its first step has no
timer: none could have interrupted it.
"""

from __future__ import annotations

import asyncio
import types
from typing import TYPE_CHECKING, Any

from redrive.first_step import rest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator
    from types import TracebackType


@types.coroutine
def within(
    seconds: float, loop: asyncio.AbstractEventLoop, call: Awaitable[object]
) -> Generator[Any, None, object]:
    """Awaits the call in the current task, which is cancelled after so many seconds: that ends as TimeoutError."""
    ends = loop.time() + seconds
    steps = call.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as ended:
        return ended.value
    task = asyncio.current_task(loop)
    if task is None:  # nobody can be cancelled
        return (yield from rest(steps, waits_for))
    with _Deadline(task, ends, loop):
        return (yield from rest(steps, waits_for))


class _Deadline:
    """Within `with`, `task` is cancelled at that time of the loop, and that ends as TimeoutError."""

    __slots__ = ("_before", "_ends", "_loop", "_passed", "_task", "_timer")

    def __init__(self, task: asyncio.Task[Any], ends: float, loop: asyncio.AbstractEventLoop) -> None:
        self._task = task
        self._ends = ends
        self._loop = loop
        self._passed = False
        self._before = 0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._before = self._task.cancelling()
        self._timer = self._loop.call_at(self._ends, self._pass)

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
