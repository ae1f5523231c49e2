"""Opt-in expiry of unhandled letters (T19): S0's and S2's TTL, as a recorded discard that can be restored."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.dead_letter import Actor, Status, Transition
from redrive.duration import short
from redrive.letter_query import MAX_PAGE, LetterQuery, Place

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.stores import DeadLetterStore


async def expire(store: DeadLetterStore, queue: str, *, older_than: float, now: datetime) -> int:
    """Discards the queue's letters that have been PENDING for longer than that; how many. Never deletes anything.

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
            left = await store.change(ids, Transition.EXPIRE, by=actor, how="expired")
            expired += len(ids) - len(left)
        query = msgspec.structs.replace(query, after=Place.of(page[-1]))
    return expired
