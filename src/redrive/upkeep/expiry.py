"""Opt-in expiry of unhandled letters (T19): S0's and S2's TTL, as a recorded discard that can be restored."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from redrive.dead_letter import Actor, Status, Transition
from redrive.duration import short
from redrive.stores import MAX_PAGE, DeadLetterStore, LetterQuery

if TYPE_CHECKING:
    from datetime import datetime


async def expire(store: DeadLetterStore, queue: str, *, older_than: float, now: datetime) -> int:
    """Discards the queue's PENDING letters recorded longer ago than that; how many. Never deletes anything."""
    actor = Actor("expiry", f"older than {short(older_than)}")
    query = LetterQuery(
        status=Status.PENDING, queue=queue, created_before=now - timedelta(seconds=older_than), limit=MAX_PAGE
    )
    expired = 0
    while letters := await store.find(query):
        ids = [letter.id for letter in letters]
        unchanged = await store.change(ids, Transition.EXPIRE, by=actor, how="expired")
        expired += len(ids) - len(unchanged)
        if unchanged:  # taken by somebody else meanwhile; the next round sees what is left
            break
    return expired
