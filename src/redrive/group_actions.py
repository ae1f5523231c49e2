"""The desk's part about groups and S1's analyses: see `redrive.actions`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from redrive.dead_letter import Actor
from redrive.duration import seconds
from redrive.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.clock import Clock
    from redrive.dead_letter import FailureGroup, Verdict
    from redrive.duration import Duration
    from redrive.statistics import EventTypeCount, HourlyRate, ResolutionTime, TopError
    from redrive.stores import DeadLetterStore


class GroupActions(ABC):
    _store: DeadLetterStore
    _clock: Clock
    _actor: str

    @abstractmethod
    def _because(self, reason: str) -> Actor:
        """Who asks, and why. UsageError without a reason."""

    async def groups(
        self,
        *,
        queue: str | None = None,
        owner: str | None = None,
        verdict: Verdict | None = None,
        limit: int = 50,
    ) -> list[FailureGroup]:
        return await self._store.groups(queue=queue, owner=owner, verdict=verdict, limit=limit)

    async def group(self, group_id: str) -> FailureGroup:
        """With its history; the beginning of its id will do. A merged one is found as what it is part of."""
        found = await self._store.group(group_id.strip().lower())
        if found is None:
            raise NotFound(f"no group {group_id}", remedy="`redrive groups` shows the ids")
        return found

    async def annotate(
        self,
        group_id: str,
        *,
        owner: str | UnsetType | None = UNSET,
        verdict: Verdict | UnsetType | None = UNSET,
        note: str | UnsetType | None = UNSET,
        runbook: str | UnsetType | None = UNSET,
        reason: str = "",
    ) -> FailureGroup:
        """What somebody says about a group; what is not given stays, None and blank texts are taken away."""
        group = await self.group(group_id)
        by = Actor(self._actor, reason.strip())
        return await self._store.annotate(
            group.id, owner=_text(owner), verdict=verdict, note=_text(note), runbook=_text(runbook), by=by
        )

    async def merge(self, into: str, others: Sequence[str], reason: str) -> FailureGroup:
        """All of them are the first one from now on. Interrupted, the same again completes it."""
        named = [each.strip().lower() for each in (into, *others)]
        return await self._store.merge(named[0], named[1:], by=self._because(reason))

    async def split(self, group_id: str, fingerprint: str, reason: str) -> FailureGroup:
        """What was merged into the group under this id is a group of its own again, which is given back."""
        by = self._because(reason)
        return await self._store.split(group_id.strip().lower(), fingerprint.strip().lower(), by=by)

    async def top_errors(self, *, limit: int = 10) -> list[TopError]:
        return await self._store.top_errors(limit=limit)

    async def error_rate(self, within: Duration) -> list[HourlyRate]:
        """Letters per hour of that long until now, the hour that has begun included."""
        now = self._clock.now()
        try:
            since = now - timedelta(seconds=seconds(within))
        except OverflowError:
            raise UsageError(f"{within} reaches back before the calendar", remedy="ask for less") from None
        return await self._store.error_rate(since=since, until=now)

    async def by_event_type(self) -> list[EventTypeCount]:
        return await self._store.by_event_type()

    async def time_to_resolve(self) -> ResolutionTime:
        return await self._store.time_to_resolve()


def _text(said: str | UnsetType | None) -> str | UnsetType | None:
    return said.strip() or None if isinstance(said, str) else said
