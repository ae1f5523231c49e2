"""The desk's part about groups and S1's analyses: see `redrive.actions`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from redrive.access import Permission
from redrive.duration import seconds
from redrive.errors import NotFound, UsageError
from redrive.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.clock import Clock
    from redrive.dead_letter import FailureGroup, Verdict
    from redrive.duration import Duration
    from redrive.statistics import EventTypeCount, HourlyRate, ResolutionTime, TopError


class GroupActions(Standing):
    _clock: Clock

    async def groups(
        self,
        *,
        queue: str | None = None,
        owner: str | None = None,
        verdict: Verdict | None = None,
        limit: int = 50,
    ) -> list[FailureGroup]:
        within = await self._may(Permission.READ)
        found = await self._store.groups(queue=queue, owner=owner, verdict=verdict, limit=limit, within=within)
        return [self._masked_group(each) for each in found]

    async def group(self, group_id: str) -> FailureGroup:
        """With its history; the beginning of its id will do. A merged one is found as what it is part of."""
        return self._masked_group(await self._group(group_id, Permission.READ))

    async def _group(self, group_id: str, permission: Permission) -> FailureGroup:
        found = await self._store.group(group_id.strip().lower(), within=await self._may(permission))
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
        group, by = await self._group(group_id, Permission.ANNOTATE), self._by(reason)
        return self._masked_group(
            await self._store.annotate(
                group.id, owner=_text(owner), verdict=verdict, note=_text(note), runbook=_text(runbook), by=by
            )
        )

    async def merge(self, into: str, others: Sequence[str], reason: str) -> FailureGroup:
        """All of them are the first one from now on. Interrupted, the same again completes it."""
        named = [each.strip().lower() for each in (into, *others)]
        for each in named:
            await self._check_reached(each)
        return self._masked_group(await self._store.merge(named[0], named[1:], by=self._because(reason)))

    async def split(self, group_id: str, fingerprint: str, reason: str) -> FailureGroup:
        """What was merged into the group under this id is a group of its own again, which is given back."""
        await self._check_reached(group_id)
        by = self._because(reason)
        alone = await self._store.split(group_id.strip().lower(), fingerprint.strip().lower(), by=by)
        return self._masked_group(alone)

    def _masked_group(self, group: FailureGroup) -> FailureGroup:
        return self._masks.for_queue(group.queue).group(group)

    async def _check_reached(self, group_id: str) -> None:
        """NotFound for a group of queues that are not whoever asks' own."""
        if await self._may(Permission.ANNOTATE) is not None:
            await self._group(group_id, Permission.ANNOTATE)

    async def top_errors(self, *, limit: int = 10) -> list[TopError]:
        found = await self._store.top_errors(limit=limit, within=await self._may(Permission.READ))
        return [replace(each, title=self._masks.general.text(each.title)) for each in found]

    async def error_rate(self, within: Duration) -> list[HourlyRate]:
        """Letters per hour of that long until now, the hour that has begun included."""
        allowed, now = await self._may(Permission.READ), self._clock.now()
        try:
            since = now - timedelta(seconds=seconds(within))
        except OverflowError:
            raise UsageError(f"{within} reaches back before the calendar", remedy="ask for less") from None
        return await self._store.error_rate(since=since, until=now, within=allowed)

    async def by_event_type(self) -> list[EventTypeCount]:
        return await self._store.by_event_type(within=await self._may(Permission.READ))

    async def time_to_resolve(self) -> ResolutionTime:
        return await self._store.time_to_resolve(within=await self._may(Permission.READ))


def _text(said: str | UnsetType | None) -> str | UnsetType | None:
    return said.strip() or None if isinstance(said, str) else said
