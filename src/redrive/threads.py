"""Threads for plain `def` handlers.

As a ThreadPoolExecutor, but of daemon threads: Python waits for the threads of that one before it exits, so that
a single handler which hangs would keep a process from ending after its grace.

A thread cannot be stopped. One whose caller has gone (its time was up) is lost until its function ends by itself,
and another takes its place; when too many are lost, no more calls are begun until one has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger("redrive.worker")

P = ParamSpec("P")
T = TypeVar("T")

_SPARE = 3
"""Threads that may be lost, for each call that may run."""


class _Outcome(Future[T]):
    """Says when whoever waits for it has gone, though the call goes on."""

    def __init__(self, abandoned: Callable[[_Outcome[Any]], None]) -> None:
        super().__init__()
        self._abandoned = abandoned

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if not cancelled:
            self._abandoned(self)
        return cancelled


_Call = tuple[_Outcome[Any], "Callable[[], Any]"]


class HandlerThreads(Executor):
    """For `size` calls at once that somebody waits for. A thread is made when it is needed and none is idle."""

    def __init__(self, size: int) -> None:
        self._spare = size * _SPARE
        self._started = 0
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lost: set[_Outcome[Any]] = set()
        self._losing = threading.Lock()
        self._waiting: set[asyncio.Future[None]] = set()

    async def room(self) -> None:
        """Waits while too many threads are lost; a call made after that begins at once."""
        while (found := self._to_be_found()) is not None:
            try:
                await found
            finally:
                self._waiting.discard(found)

    def _to_be_found(self) -> asyncio.Future[None] | None:
        with self._losing:
            if len(self._lost) < self._spare:
                return None
            if not self._waiting:
                log.error(
                    "plain handlers hang and keep their threads, no more are called", threads=len(self._lost)
                )
            found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(found)
            return found

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """For one event loop: it is not called from two threads at once."""
        future: _Outcome[T] = _Outcome(self._lose)
        self._calls.put((future, partial(function, *args, **kwargs)))
        if not self._idle.acquire(blocking=False):
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
            self._find(call[0])

    def _lose(self, future: _Outcome[Any]) -> None:
        with self._losing:
            if not future.done():
                self._lost.add(future)

    def _find(self, future: _Outcome[Any]) -> None:
        with self._losing:
            if future not in self._lost:
                return
            self._lost.discard(future)
            waiting = tuple(self._waiting)
        for found in waiting:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                found.get_loop().call_soon_threadsafe(_wake, found)


def _wake(found: asyncio.Future[None]) -> None:
    if not found.done():
        found.set_result(None)


def _make(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001  whoever awaits the call gets it, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)
