"""Hands what handlers' attempts came to over to the store now and then: S2's failure rates.

The success path touches no store, so what is counted since the last flush is lost by a kill; letters are not
counted here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from redrive.errors import Undecided
from redrive.statistics import HandlerTally
from redrive.telemetry.counts import HandlerCounts

if TYPE_CHECKING:
    from collections.abc import Collection

    from redrive.stores import DeadLetterStore


class Tally:
    def __init__(self) -> None:
        self._counted: dict[tuple[str, str], HandlerCounts] = {}
        self._handed_over: dict[tuple[str, str], tuple[int, int]] = {}
        self._flushing: asyncio.Task[None] | None = None

    def of(self, handler: str, queue: str, payload_type: str = "") -> HandlerCounts:
        """To be counted on."""
        return self._counted.setdefault((handler, queue), HandlerCounts(handler, queue, payload_type))

    @property
    def counts(self) -> Collection[HandlerCounts]:
        return self._counted.values()

    @property
    def pending(self) -> bool:
        """Whether anything was counted that the store may not have yet."""
        return bool(self._new()) or (self._flushing is not None and not self._flushing.done())

    async def flush(self, store: DeadLetterStore) -> None:
        """Hands over what was counted; if the store is away, keeps it for the next time.

        Being cancelled does not interrupt it, for then nobody would know whether the store has counted; the next
        flush waits for it.
        """
        if self._flushing is not None:
            await asyncio.wait({self._flushing})
        if not self._new():
            return
        self._flushing = asyncio.create_task(self._hand_over(store))
        # Whoever waited for it may be gone when it fails: nobody has to hear of it then, the counts are kept.
        self._flushing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(self._flushing)

    async def _hand_over(self, store: DeadLetterStore) -> None:
        before, new = dict(self._handed_over), self._new()
        self._handed_over = {key: _counted(counts) for key, counts in self._counted.items()}
        try:
            await store.tally(new)
        except Undecided:  # better lost than counted twice: a rate may be a little old, and must not be wrong
            raise
        except BaseException:
            self._handed_over = before
            raise

    def _new(self) -> list[HandlerTally]:
        """What was counted since the last time."""
        found = []
        for key, counts in self._counted.items():
            succeeded, failed = self._handed_over.get(key, (0, 0))
            good, bad = _counted(counts)
            if (good, bad) != (succeeded, failed):
                found.append(HandlerTally(counts.handler, counts.queue, good - succeeded, bad - failed))
        return found


def _counted(counts: HandlerCounts) -> tuple[int, int]:
    # To drop a message is no failure.
    return counts.succeeded + counts.dropped, counts.failed
