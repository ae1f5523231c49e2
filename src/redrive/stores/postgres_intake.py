"""One writer for all letters that a process records: those who wait together share a transaction.

A COMMIT costs a sync of the server's log, and a letter costs five tables. While one transaction is under way the
next letters gather, and the writer takes them all, up to a bound. Each caller is answered after COMMIT. Where very
many wait, a second transaction runs beside the first: one is made ready here while the server works on the other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from redrive.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redrive.dead_letter import Entry, Recorded

    Answer = tuple[str, Recorded]

MOST_LETTERS = 500
MOST_BYTES = 8 * 2**20
"""Of bodies in one transaction; a larger one goes alone."""

_LANES = 2
_WORTH_A_LANE = 100


class _Waiting(NamedTuple):
    entry: Entry
    answer: asyncio.Future[Answer]


class Intake:
    """`record_all` records a batch in one transaction, durable when it returns, and answers for each entry."""

    def __init__(self, record_all: Callable[[Sequence[Entry]], Awaitable[list[Answer]]]) -> None:
        self._record_all = record_all
        self._waiting: list[_Waiting] = []
        self._lanes: set[asyncio.Task[None]] = set()
        self._closed = False

    async def record(self, entry: Entry) -> Answer:
        if self._closed:
            raise Unreachable("the store is closed", remedy="open a new one")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(entry, answer))
        if not self._lanes or (len(self._waiting) >= _WORTH_A_LANE and len(self._lanes) < _LANES):
            self._open_lane()
        return await answer

    async def close(self) -> None:
        """Waits for what was handed in."""
        self._closed = True
        while self._lanes:
            await asyncio.wait(self._lanes)  # unlike gather, it cancels nobody's transaction if it is cancelled

    def _open_lane(self) -> None:
        # A task begins in the next turn of the loop: whoever goes on in this one shares the transaction.
        lane = asyncio.create_task(self._work(), name="redrive-intake")
        self._lanes.add(lane)

    async def _work(self) -> None:
        lane = asyncio.current_task()
        try:
            while batch := self._take():
                await self._keep(batch)
        finally:  # before anybody who was answered can hand in more: they would wait for a lane that has ended
            self._lanes -= {lane}

    def _take(self) -> list[_Waiting]:
        size = number = 0
        for waiting in self._waiting[:MOST_LETTERS]:
            size += len(waiting.entry.message.body or b"")
            if number and size > MOST_BYTES:
                break
            number += 1
        batch, self._waiting = self._waiting[:number], self._waiting[number:]
        return batch

    async def _keep(self, batch: list[_Waiting]) -> None:
        try:
            answers = await self._record_all([waiting.entry for waiting in batch])
        except Exception as error:  # noqa: BLE001  the callers get it; the writer lives on
            await self._refused(batch, error)
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)

    async def _refused(self, batch: list[_Waiting], error: Exception) -> None:
        """A store that is away is everybody's matter. Anything else is one letter's doing: it is found by halves,
        so that one caller's error is never another's.
        """
        if len(batch) > 1 and not isinstance(error, Unreachable):
            middle = len(batch) // 2
            await self._keep(batch[:middle])
            await self._keep(batch[middle:])
            return
        for waiting in batch:
            if not waiting.answer.done():
                waiting.answer.set_exception(error)
