"""S3's `queue:reprocess`: everything dead of one queue goes back, once.

Dead letters of `orders` may lie in two places: in the broker's queue `orders_dlq`, where other consumers and
other tools put them, and in the store, where ours do. The pending letters of the store are a run like any other.
It goes first: what stops it, a brake, a canary or a person, keeps back what lies in the queue as well. Both
selections are made before the first send, so what handlers throw straight back is left for the next command
(SD10). Whoever has no store sends back what the queue holds: no letter is looked for, and the store is not asked
anything.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from redrive.dead_letter import Status
from redrive.dead_letter_queue import DeadLetterQueue, Drained
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.redriving import Outcome, Result
from redrive.run import Run, RunPlan, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.pace import Pace
    from redrive.redriving import Redriver
    from redrive.run_policy import RunPolicy
    from redrive.stores import DeadLetterStore
    from redrive.telemetry.spans import Spans
    from redrive.transports import Transport


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What lay there at one moment."""

    dead_letter_queue: str
    home: str
    in_queue: int
    in_other_hands: int
    """Messages of the dead-letter queue that another process holds: left to it."""
    pending: int
    """Letters in the store."""
    unfinished: tuple[str, ...]
    """Letters that are REDRIVING, oldest first: another process sends them now, or died on the way and left them
    to us. No more than engines have in hand.
    """
    with_store: bool = True
    """Whether letters of the store were looked for."""
    at: datetime | None = None
    """That moment: what was put into the dead-letter queue later may have been thrown back by a handler."""

    @property
    def total(self) -> int:
        return self.in_queue + self.pending + len(self.unfinished)

    def first(self, limit: int | None) -> Selection:
        """At most `limit` of them, those of the queue first."""
        if limit is None:
            return self
        in_queue = min(self.in_queue, limit)
        pending = min(self.pending, limit - in_queue)
        unfinished = self.unfinished[: limit - in_queue - pending]
        return msgspec.structs.replace(self, in_queue=in_queue, pending=pending, unfinished=unfinished)

    def plan(self, policy: RunPolicy, rate: float | None) -> RunPlan:
        """The run of its pending letters: no more than were counted, whatever dies meanwhile."""
        return RunPlan(
            selection=LetterQuery(queue=self.home),
            at_most=self.pending,
            rate=rate,
            canary=policy.canary,
            brakes=policy.brakes,
            reason=f"reprocess {self.dead_letter_queue}",
        )


class Reprocessed(msgspec.Struct, frozen=True, kw_only=True):
    run: Run | None = None
    """Of the pending letters; None: there were none."""
    queue: Drained = Drained()
    unfinished: tuple[Outcome, ...] = ()

    @property
    def from_store(self) -> int:
        finished = sum(outcome.result is Result.SENT for outcome in self.unfinished)
        return finished if self.run is None else finished + self.run.progress.sent

    @property
    def total(self) -> int:
        return self.queue.sent + self.from_store

    @property
    def halted(self) -> bool:
        """Whether the run did not come to its end, so that nothing else was sent."""
        return self.run is not None and self.run.status is not RunStatus.DONE


class Reprocessor:
    """What is no run's: counting, letters that somebody began to send, and the broker's queue."""

    def __init__(
        self, *, store: DeadLetterStore, transport: Transport, redriver: Redriver, spans: Spans | None = None
    ) -> None:
        self._store = store
        self._transport = transport
        self._redriver = redriver
        self._spans = spans

    async def select(
        self, dead_letter_queue: str, *, with_store: bool = True, at: datetime | None = None
    ) -> Selection:
        """`at` is now. UsageError if that is not the name of a dead-letter queue."""
        queue = DeadLetterQueue(dead_letter_queue, transport=self._transport)
        backlog = await queue.backlog()
        return Selection(
            dead_letter_queue=dead_letter_queue,
            home=queue.home,
            in_queue=backlog.ready,
            in_other_hands=backlog.in_other_hands,
            pending=await self._pending(queue.home) if with_store else 0,
            unfinished=await self._unfinished(queue.home) if with_store else (),
            with_store=with_store,
            at=at,
        )

    async def finish(
        self, selection: Selection, *, pace: Pace, on_progress: Callable[[int], None] | None = None
    ) -> tuple[Outcome, ...]:
        """Letters that somebody began to send: those whose leases have run out are sent, under the same ids."""
        if not selection.unfinished:
            return ()
        return tuple(
            await self._redriver.redrive(selection.unfinished, pace=pace, on_progress=on_progress, begun=True)
        )

    async def drain(
        self, selection: Selection, *, pace: Pace, on_progress: Callable[[int], None] | None = None
    ) -> Drained:
        if not selection.in_queue:
            return Drained()
        queue = DeadLetterQueue(selection.dead_letter_queue, transport=self._transport, spans=self._spans)
        return await queue.drain(selection.in_queue, pace=pace, cut_off=selection.at, on_progress=on_progress)

    async def _pending(self, queue: str) -> int:
        return (await self._store.count(LetterQuery(status=Status.PENDING, queue=queue))).number

    async def _unfinished(self, queue: str) -> tuple[str, ...]:
        query = LetterQuery(status=Status.REDRIVING, queue=queue, limit=MAX_PAGE)
        newest_first: list[str] = []
        while page := await self._store.find(query):
            newest_first += [letter.id for letter in page]
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))
        return tuple(reversed(newest_first))
