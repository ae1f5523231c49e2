"""S3's `queue:reprocess`: everything dead of one queue goes back, once.

Dead letters of `orders` may lie in two places: in the broker's queue `orders_dlq`, where other consumers and
other tools put them, and in the store, where ours do. The selection is frozen before the first send, so what
handlers throw straight back is left for the next command (SD10). Whoever has no store sends back what the queue
holds: no letter is looked for, and the store is not asked anything.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from redrive.dead_letter import Status
from redrive.dead_letter_queue import DeadLetterQueue, Drained
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.redriving import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.pace import Pace
    from redrive.redriving import Redriver
    from redrive.stores import DeadLetterStore
    from redrive.transports import Transport


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What lay there at one moment."""

    dead_letter_queue: str
    home: str
    in_queue: int
    in_other_hands: int
    """Messages of the dead-letter queue that another process holds: left to it."""
    pending: tuple[str, ...]
    """Letters in the store, oldest first."""
    unfinished: tuple[str, ...]
    """Letters that are REDRIVING: another process sends them now, or died on the way and left them to us."""
    with_store: bool = True
    """Whether letters of the store were looked for."""
    at: datetime | None = None
    """That moment: what was put into the dead-letter queue later may have been thrown back by a handler."""

    @property
    def total(self) -> int:
        return self.in_queue + len(self.pending) + len(self.unfinished)

    def first(self, limit: int | None) -> Selection:
        """At most `limit` of them, those of the queue first."""
        if limit is None:
            return self
        in_queue = min(self.in_queue, limit)
        pending = self.pending[: limit - in_queue]
        unfinished = self.unfinished[: limit - in_queue - len(pending)]
        return msgspec.structs.replace(self, in_queue=in_queue, pending=pending, unfinished=unfinished)


class Reprocessed(msgspec.Struct, frozen=True, kw_only=True):
    queue: Drained
    letters: tuple[Outcome, ...]

    @property
    def from_store(self) -> int:
        return sum(outcome.result is Result.SENT for outcome in self.letters)

    @property
    def total(self) -> int:
        return self.queue.sent + self.from_store


class Reprocessor:
    def __init__(self, *, store: DeadLetterStore, transport: Transport, redriver: Redriver) -> None:
        self._store = store
        self._transport = transport
        self._redriver = redriver

    async def select(
        self, dead_letter_queue: str, *, with_store: bool = True, at: datetime | None = None
    ) -> Selection:
        """`at` is now. UsageError if that is not the name of a dead-letter queue."""
        queue = DeadLetterQueue(dead_letter_queue, transport=self._transport)
        pending = await self._letters(queue.home, Status.PENDING) if with_store else ()
        unfinished = await self._letters(queue.home, Status.REDRIVING) if with_store else ()
        backlog = await queue.backlog()
        return Selection(
            dead_letter_queue=dead_letter_queue,
            home=queue.home,
            in_queue=backlog.ready,
            in_other_hands=backlog.in_other_hands,
            pending=pending,
            unfinished=unfinished,
            with_store=with_store,
            at=at,
        )

    async def reprocess(
        self, selection: Selection, *, pace: Pace, on_progress: Callable[[int], None] | None = None
    ) -> Reprocessed:
        queue = DeadLetterQueue(selection.dead_letter_queue, transport=self._transport)
        drained = Drained()
        if selection.in_queue:
            drained = await queue.drain(
                selection.in_queue, pace=pace, cut_off=selection.at, on_progress=on_progress
            )
        outcomes: list[Outcome] = []
        if letter_ids := selection.pending + selection.unfinished:
            outcomes = await self._redriver.redrive(letter_ids, pace=pace, on_progress=on_progress)
        return Reprocessed(queue=drained, letters=tuple(outcomes))

    async def _letters(self, queue: str, status: Status) -> tuple[str, ...]:
        query = LetterQuery(status=status, queue=queue, limit=MAX_PAGE)
        newest_first: list[str] = []
        while page := await self._store.find(query):
            newest_first += [letter.id for letter in page]
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))
        return tuple(reversed(newest_first))
