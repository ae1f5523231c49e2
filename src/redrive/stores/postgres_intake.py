"""One writer for all letters that a process records: those who wait together share a transaction.

A COMMIT costs a sync of the server's log, and a letter costs five tables. While one transaction is under way the
next letters gather, and the writer takes them all, up to a bound. Each caller is answered after COMMIT. Where very
many wait, a second transaction runs beside the first: one is made ready here while the server works on the other.
"""

from __future__ import annotations

import asyncio
from itertools import islice
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
    """Entries that are recorded together or not at all."""

    entries: Sequence[Entry]
    answers: asyncio.Future[list[Answer]]

    @property
    def size(self) -> int:
        return sum(len(entry.message.body or b"") for entry in self.entries)


class Intake:
    """`record_all` records a batch in one transaction, durable when it returns, and answers for each entry."""

    def __init__(self, record_all: Callable[[Sequence[Entry]], Awaitable[list[Answer]]]) -> None:
        self._record_all = record_all
        self._waiting: list[_Waiting] = []
        self._letters = 0
        """That wait."""
        self._lanes: set[asyncio.Task[None]] = set()
        self._closed = False

    async def record(self, entry: Entry) -> Answer:
        [answer] = await self.record_together([entry])
        return answer

    async def record_together(self, entries: Sequence[Entry]) -> list[Answer]:
        """All of them in one transaction, whatever else it holds; if it raises, none is on record."""
        if self._closed:
            raise Unreachable("the store is closed", remedy="open a new one")
        answers: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(entries, answers))
        self._letters += len(entries)
        if not self._lanes or (self._letters >= _WORTH_A_LANE and len(self._lanes) < _LANES):
            self._open_lane()
        return await answers

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
        size = letters = number = 0
        for waiting in self._waiting:
            size += waiting.size
            letters += len(waiting.entries)
            if number and (size > MOST_BYTES or letters > MOST_LETTERS):
                break
            number += 1
        batch, self._waiting = self._waiting[:number], self._waiting[number:]
        self._letters -= sum(len(waiting.entries) for waiting in batch)
        return batch

    async def _keep(self, batch: list[_Waiting]) -> None:
        try:
            answers = iter(await self._record_all([entry for waiting in batch for entry in waiting.entries]))
        except Exception as error:  # noqa: BLE001  the callers get it; the writer lives on
            await self._refused(batch, error)
        else:
            for waiting in batch:
                theirs = list(islice(answers, len(waiting.entries)))
                if not waiting.answers.done():
                    waiting.answers.set_result(theirs)

    async def _refused(self, batch: list[_Waiting], error: Exception) -> None:
        """A store that is away is everybody's matter. Anything else is one letter's doing: whoever handed it in is
        found by halves, so that one caller's error is never another's.
        """
        if len(batch) > 1 and not isinstance(error, Unreachable):
            middle = len(batch) // 2
            await self._keep(batch[:middle])
            await self._keep(batch[middle:])
            return
        for waiting in batch:
            if not waiting.answers.done():
                waiting.answers.set_exception(error)
