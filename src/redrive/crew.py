"""The tasks that handle a consumer's deliveries: so many at once and no more, and no more tasks than it takes.

Only a handler that runs has one of these places. What becomes of the message afterwards takes its time without it,
as long as there are no more deliveries in hand than there may be: a store commits a hundred letters in the time of
one, if only a hundred come to it together.

1. What is given waits in line; a task takes the first, and has another task called if there is a second.
2. A handler that ends without having waited for anything: its task goes on with the next in line. A task for each
   message costs more than a short handler does.
3. A handler that has waited, or has set a context variable: its task ends with it. Whoever looks at the current
   task or its context, meets nothing that another message has left there.
"""

from __future__ import annotations

import asyncio
import types
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from redrive.first_step import rest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from redrive.transports import Delivery


class Crew:
    """`handle` is awaited for each delivery, and says with `settles` that its handler has ended. `forsaken` is
    called with one whose handling was cancelled, or ended with an error. `in_hand` includes what is being settled.
    """

    def __init__(
        self,
        at_once: int,
        in_hand: int,
        handle: Callable[[Delivery], Coroutine[Any, Any, None]],
        forsaken: Callable[[Delivery, BaseException | None], None],
    ) -> None:
        self.running: dict[asyncio.Task[None], Delivery] = {}
        self.settling: set[asyncio.Task[None]] = set()
        """Of those that run: whose handler has ended."""
        self._at_once = at_once
        self._in_hand = max(at_once, in_hand)
        self._handle = handle
        self._forsaken = forsaken
        self._line: deque[Delivery] = deque()
        self._called = False
        """A task is on its way that will look into the line."""
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def busy(self) -> bool:
        return bool(self.running or self._line)

    @property
    def full(self) -> bool:
        in_hand = len(self.running) + len(self._line)
        return in_hand - len(self.settling) >= self._at_once or in_hand >= self._in_hand

    def give(self, delivery: Delivery) -> None:
        """Only while it is not `full`."""
        self._line.append(delivery)
        if not self._called:
            self._call()

    def settles(self) -> None:
        """The handler of the current task has ended."""
        self.settling.add(asyncio.current_task(self._loop))  # type: ignore[arg-type]  # there is one
        if self._waiting and not self._line:
            self._tell()

    async def something_ends(self) -> None:
        """Until the line is empty again, or a delivery that had to wait for something is handled or settled."""
        loop = self._loop = self._loop or asyncio.get_running_loop()  # once: asking is dear
        waiting: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def take_back(self) -> list[Delivery]:
        """What nobody has begun with."""
        left = list(self._line)
        self._line.clear()
        return left

    def give_up(self, receipt: object) -> Delivery | None:
        """The delivery with that receipt, if its handler has not ended: it is cancelled, or never begun."""
        for task, delivery in self.running.items():
            if delivery.receipt is receipt:
                return delivery if task not in self.settling and task.cancel() else None
        for number, delivery in enumerate(self._line):
            if delivery.receipt is receipt:
                del self._line[number]
                self._forsaken(delivery, None)
                self._tell()
                return delivery
        return None

    def leave_behind(self) -> list[Delivery]:
        """Those that are still being handled: no longer the crew's concern."""
        for task in self.running:
            asyncio.tasks._unregister_task(task)  # noqa: SLF001  or `asyncio.run` would wait for it for ever
        left = list(self.running.values())
        self.running.clear()
        self.settling.clear()
        return left

    def _call(self) -> None:
        self._called = True
        loop = self._loop = self._loop or asyncio.get_running_loop()
        loop.create_task(self._work()).add_done_callback(self._ended)

    async def _work(self) -> None:
        self._called = False
        line, running, settling, handle = self._line, self.running, self.settling, self._handle
        if not line:
            return
        task: asyncio.Task[None] = asyncio.current_task(self._loop)  # type: ignore[assignment]  # there is one
        context = copy_context()
        while line:
            running[task] = delivery = line.popleft()
            if line and not self._called:
                self._call()
            waited = await _noticing(handle(delivery))
            settling.discard(task)
            if running.pop(task, None) is None or waited or copy_context() != context:
                return
        self._tell()

    def _ended(self, task: asyncio.Task[None]) -> None:
        delivery = self.running.pop(task, None)
        self.settling.discard(task)
        error = None if task.cancelled() else task.exception()
        if delivery is not None:
            self._forsaken(delivery, error)
        if self._line and not self._called:
            self._call()
        self._tell()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


@types.coroutine
def _noticing(handling: Coroutine[Any, Any, None]) -> Generator[Any, None, bool]:
    """Awaits it, and tells whether it had to wait."""
    steps = handling.__await__()
    try:
        waits_for = next(steps)
    except StopIteration:
        return False
    yield from rest(steps, waits_for)
    return True
