"""Threads for plain `def` handlers.

As a ThreadPoolExecutor, but of daemon threads: Python waits for the threads of that one before it exits, so that
a single handler which hangs would keep a process from ending after its grace.
"""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

_Call = tuple["Future[Any]", "Callable[[], Any]"]


class HandlerThreads(Executor):
    """At most `size` threads, each made when it is needed and none is idle."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._started = 0
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """For one event loop: it is not called from two threads at once."""
        future: Future[T] = Future()
        self._calls.put((future, partial(function, *args, **kwargs)))
        if not self._idle.acquire(blocking=False) and self._started < self._size:
            self._started += 1
            threading.Thread(target=self._work, name=f"redrive-handler-{self._started}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  Executor's own signature
        """Never waits. What runs may end; what has not begun is cancelled."""
        while (call := self._next()) is not None:
            call[0].cancel()
        self._calls.put(None)

    def _next(self) -> _Call | None:
        try:
            return self._calls.get_nowait()
        except Empty:
            return None

    def _work(self) -> None:
        while True:
            call = self._next()
            if call is None:
                self._idle.release()
                call = self._calls.get()
            if call is None:
                self._calls.put(None)  # for the next one
                return
            _make(*call)


def _make(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001  whoever awaits the call gets it, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)
