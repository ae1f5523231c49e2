"""Counts handlers' attempts in memory and hands them to the store now and then: S2's failure rates.

The success path touches no store, so what is counted since the last flush is lost by a kill; letters are not
counted here.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from redrive.errors import Undecided
from redrive.statistics import HandlerTally

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.failure import Failure
    from redrive.stores import DeadLetterStore


class Tally:
    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        self._flushing: asyncio.Task[None] | None = None

    @property
    def pending(self) -> bool:
        """Whether anything was counted that the store may not have yet."""
        return bool(self._counts) or (self._flushing is not None and not self._flushing.done())

    def observer(self, handler: str, queue: str) -> Callable[[Failure | None], None]:
        """To be called after each attempt, with its failure or None."""
        key = (handler, queue)

        def observe(failure: Failure | None) -> None:
            self._counts[key][failure is not None] += 1

        return observe

    async def flush(self, store: DeadLetterStore) -> None:
        """Hands over what was counted; if the store is away, keeps it for the next time.

        Being cancelled does not interrupt it, for then nobody would know whether the store has counted; the next
        flush waits for it.
        """
        if self._flushing is not None:
            await asyncio.wait({self._flushing})
        if not self._counts:
            return
        self._flushing = asyncio.create_task(self._hand_over(store))
        # Whoever waited for it may be gone when it fails: nobody has to hear of it then, the counts are kept.
        self._flushing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(self._flushing)

    async def _hand_over(self, store: DeadLetterStore) -> None:
        counts, self._counts = self._counts, defaultdict(lambda: [0, 0])
        tallies = [HandlerTally(handler, queue, *count) for (handler, queue), count in counts.items()]
        try:
            await store.tally(tallies)
        except Undecided:  # better lost than counted twice: a rate may be a little old, and must not be wrong
            raise
        except BaseException:
            for key, (succeeded, failed) in counts.items():
                self._counts[key][0] += succeeded
                self._counts[key][1] += failed
            raise
