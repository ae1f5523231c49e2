"""Actions on a queue that SQS takes ten at a time. What is asked for while others are under way goes together, and
everybody is told what became of their own: a batch that is answered with success may have entries that failed.

A request costs milliseconds, whatever is in it. So only a full batch goes beside another; what is less waits for
an answer, or for a moment if none comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.transports.sqs.refusals import away, of_entry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Entry = dict[str, Any]
    Request = Callable[[list[Entry]], Awaitable[dict[str, Any]]]

_ENTRIES = 10
_BYTES = 2**20
AT_ONCE = 16
_LINGER = 0.02
"""Seconds that a batch which is not full waits for others to be answered."""


class _Waiting(NamedTuple):
    entry: dict[str, Any]
    size: int
    told: asyncio.Future[None]
    since: float


class Batches:
    """`request` sends entries, each with its `Id`; `at_once` so many times beside each other, where 1 keeps the
    order in which they were asked for. `moment`: seconds that the first of them waits for others.
    """

    def __init__(self, request: Request, *, at_once: int = AT_ONCE, moment: float = 0.0) -> None:
        self._request = request
        self._at_once = at_once
        self._moment = moment
        self._waiting: deque[_Waiting] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None

    async def add(self, entry: Entry, *, size: int = 0) -> None:
        """It is done when it returns. SqsRefusal if SQS refused this one, Unreachable if nobody knows."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(entry, size, told, loop.time()))
        if not self._woken:
            self._woken = True
            loop.call_later(self._moment, self._begin)  # what others ask for meanwhile goes along
        await told

    async def finished(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _begin(self) -> None:
        self._woken = False
        while len(self._under_way) < self._at_once and self._is_due():
            task = asyncio.create_task(self._send(self._next()))
            self._under_way.add(task)
            task.add_done_callback(self._ended)
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LINGER, self._hurry)

    def _hurry(self) -> None:
        self._timer = None
        self._begin()

    def _is_due(self) -> bool:
        if not self._waiting or not self._under_way or len(self._waiting) >= _ENTRIES:
            return bool(self._waiting)
        return asyncio.get_running_loop().time() - self._waiting[0].since >= _LINGER

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._begin()

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        total = 0
        while self._waiting and len(batch) < _ENTRIES and (not batch or total + self._waiting[0].size <= _BYTES):
            total += self._waiting[0].size
            batch.append(self._waiting.popleft())
        return batch

    async def _send(self, batch: list[_Waiting]) -> None:
        entries = [{**each.entry, "Id": str(number)} for number, each in enumerate(batch)]
        try:
            answer = await self._request(entries)
        except BaseException as error:  # cancelled too: whoever waits would wait for ever
            for each in batch:
                _tell(each, error if isinstance(error, Exception) else away("the request was given up"))
            if not isinstance(error, Exception):
                raise
            return
        done = {each["Id"] for each in answer.get("Successful", ())}
        failed = {each["Id"]: each for each in answer.get("Failed", ())}
        for number, each in enumerate(batch):
            _tell(each, _outcome(str(number), done, failed))


def _outcome(number: str, done: set[str], failed: dict[str, dict[str, Any]]) -> Exception | None:
    if number in done:
        return None
    if number not in failed:
        return away("an entry of a batch was not answered")
    return of_entry(failed[number])


def _tell(waiting: _Waiting, error: Exception | None) -> None:
    if waiting.told.done():
        return
    if error is None:
        waiting.told.set_result(None)
    else:
        waiting.told.set_exception(error)
