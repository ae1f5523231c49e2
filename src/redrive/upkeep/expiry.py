"""Opt-in expiry of unhandled letters (T19): S0's and S2's TTL, as a recorded discard that can be restored.

Of all workers and servers on one store, one does it for a queue at a time (duty.py), and none whose clock may have
jumped (clock_note.py): a wrong clock must not discard what nobody has looked at yet.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import structlog

from redrive.dead_letter import Actor, Status, Transition
from redrive.duration import short
from redrive.letter_query import MAX_PAGE, LetterQuery, Place
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.duty import Duty

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from redrive.clock import Clock
    from redrive.stores import DeadLetterStore, Store
    from redrive.upkeep.duty import Lease

log = structlog.get_logger("redrive.expiry")

LOOK_EVERY = 60.0


class QueueExpiry:
    """Of one queue that asks for it. `holder`: a name that no other process has."""

    def __init__(self, queue: str, older_than: float, *, store: Store, clock: Clock, holder: str) -> None:
        self._queue = queue
        self._older_than = older_than
        self._store = store
        self._note = ClockNote(store, clock)
        self._duty = Duty(f"expiry of {queue}", store=store, clock=clock, holder=holder, every=LOOK_EVERY)

    async def look(self) -> int | None:
        """How many were discarded; None: it is not due, or somebody else is at it."""
        return await self._duty.look(self._expire)

    async def _expire(self, lease: Lease) -> int:
        await self._note.check(keep=self._older_than)
        count = await expire(
            self._store, self._queue, older_than=self._older_than, now=lease.at, still_ours=lease.check
        )
        if count:
            log.warning(
                "dead letters expired", queue=self._queue, letters=count, older_than=short(self._older_than)
            )
        return count


async def expire(
    store: DeadLetterStore,
    queue: str,
    *,
    older_than: float,
    now: datetime,
    still_ours: Callable[[], None] = lambda: None,
) -> int:
    """Discards the queue's letters that have been PENDING for longer than that; how many. Never deletes anything.
    `still_ours` raises if somebody else has the work by now.

    A letter that was restored or came back is as old as that change: a person who restores an expired letter
    must find it there tomorrow.
    """
    actor = Actor("expiry", f"older than {short(older_than)}")
    limit = now - timedelta(seconds=older_than)
    query = LetterQuery(status=Status.PENDING, queue=queue, created_before=limit, limit=MAX_PAGE)
    expired = 0
    while page := await store.find(query):
        ids = [letter.id for letter in page if letter.changed_at < limit]
        if ids:
            still_ours()
            left = await store.change(ids, Transition.EXPIRE, by=actor, how="expired")
            expired += len(ids) - len(left)
        query = msgspec.structs.replace(query, after=Place.of(page[-1]))
    return expired
