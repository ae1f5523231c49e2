"""Redriven letters of which nothing was heard for a chosen time are taken for resolved, how=assumed.

For consumers that are not ours: they confirm nothing, and what fails there comes back by a dead-letter queue, or
not at all. Any number of processes do this at once; the store looks at each letter again when it is locked.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import structlog

from redrive.dead_letter import Actor, Status
from redrive.duration import short
from redrive.errors import RedriveError
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.search_terms import Field, FieldTerm, Filter, Op
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redrive.clock import Clock
    from redrive.dead_letter import DeadLetter
    from redrive.stores import RunStore

log = structlog.get_logger("redrive.assuming")

LOOK_EVERY = 60.0


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """After how many seconds without a word a letter of a queue is taken for resolved."""

    queues: Mapping[str, float | None] = {}
    """Those that something is said about. None: never."""
    otherwise: float | None = None

    def of(self, queue: str) -> float | None:
        return self.queues.get(queue, self.otherwise)

    @property
    def shortest(self) -> float | None:
        """None: nothing is ever assumed."""
        return min((each for each in (*self.queues.values(), self.otherwise) if each is not None), default=None)


class Assuming:
    def __init__(self, silence: Silence, *, store: RunStore, clock: Clock, every: float = LOOK_EVERY) -> None:
        self._silence = silence
        self._store = store
        self._clock = clock
        self._every = every

    async def serve(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
            except RedriveError as error:
                log.warning("silent letters were not looked at, they will be", **error_facts(error))
            except Exception as error:  # noqa: BLE001  a task that nobody waits for must not end unseen
                log.error("silent letters were not looked at", **error_facts(error))  # noqa: TRY400  no payloads
            await self._clock.sleep(self._every)

    async def look(self) -> int:
        """Once, at all that are silent for long enough, a page per transaction; how many were assumed."""
        assumed = 0
        for query in self._queries():
            assumed += await self._walk(query)
        if assumed:
            log.info("letters without word were taken for resolved", letters=assumed)
        return assumed

    def _queries(self) -> Iterator[LetterQuery]:
        """Of the named queues alone, if nothing is said about the others."""
        shortest = self._silence.shortest
        if shortest is None:
            return
        if self._silence.otherwise is not None:
            yield self._silent_for(shortest)
            return
        for queue, span in self._silence.queues.items():
            if span is not None:
                yield msgspec.structs.replace(self._silent_for(span), queue=queue)

    def _silent_for(self, span: float) -> LetterQuery:
        # A letter changes when it is sent: one that changed later was not sent before.
        unchanged = FieldTerm(field=Field.CHANGED, op=Op.LESS, values=(self._limit(span),))
        return LetterQuery(status=Status.REDRIVEN, where=Filter((unchanged,)), limit=MAX_PAGE)

    async def _walk(self, query: LetterQuery) -> int:
        assumed = 0
        while page := await self._store.find(query):
            for queue in sorted({letter.queue for letter in page}):
                assumed += await self._assume(queue, [each for each in page if each.queue == queue])
            query = msgspec.structs.replace(query, after=Place.of(page[-1]))
        return assumed

    async def _assume(self, queue: str, letters: Sequence[DeadLetter]) -> int:
        span = self._silence.of(queue)
        if span is None:
            return 0
        limit = self._limit(span)
        ids = [letter.id for letter in letters if letter.changed_at < limit]
        by = Actor("silence", f"sent, and no word for {short(span)}")
        return await self._store.assume(ids, sent_before=limit, by=by) if ids else 0

    def _limit(self, span: float) -> datetime:
        now = self._clock.now()
        try:
            return now - timedelta(seconds=span)
        except OverflowError:
            return datetime.min.replace(tzinfo=now.tzinfo)
