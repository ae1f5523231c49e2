"""Groups, numbers and queues through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from redrive.clock import SystemClock
from redrive.dead_letter import FailureGroup
from redrive.duration import seconds
from redrive.errors import UsageError
from redrive.monitor import judge
from redrive.queue_actions import QueueOverview
from redrive.remote.line import Line, segment
from redrive.statistics import EventTypeCount, HourlyRate, ResolutionTime, Statistics, TopError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.dead_letter import Verdict
    from redrive.duration import Duration
    from redrive.monitor import Verdict as Monitored


class _Groups(msgspec.Struct):
    items: list[FailureGroup]


class _TopErrors(msgspec.Struct):
    items: list[TopError]


class _Rates(msgspec.Struct):
    items: list[HourlyRate]


class _EventTypes(msgspec.Struct):
    items: list[EventTypeCount]


class _Queues(msgspec.Struct):
    items: list[QueueOverview]
    incomplete: str


class RemoteGroups:
    _line: Line

    async def groups(
        self,
        *,
        queue: str | None = None,
        owner: str | None = None,
        verdict: Verdict | None = None,
        limit: int = 50,
    ) -> list[FailureGroup]:
        params = {"queue": queue, "owner": owner, "verdict": verdict and str(verdict), "limit": limit}
        return (await self._line.ask("GET", "/groups", _Groups, params=params)).items

    async def group(self, group_id: str) -> FailureGroup:
        return await self._line.ask("GET", f"/groups/{segment(group_id)}", FailureGroup)

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
        said = {"owner": owner, "verdict": verdict, "note": note, "runbook": runbook, "reason": reason}
        given = {name: value for name, value in said.items() if value is not UNSET}
        return await self._line.ask("PATCH", f"/groups/{segment(group_id)}", FailureGroup, body=given)

    async def merge(self, into: str, others: Sequence[str], reason: str) -> FailureGroup:
        body = {"others": list(others), "reason": reason}
        return await self._line.ask("POST", f"/groups/{segment(into)}/merge", FailureGroup, body=body)

    async def split(self, group_id: str, fingerprint: str, reason: str) -> FailureGroup:
        body = {"fingerprint": fingerprint, "reason": reason}
        return await self._line.ask("POST", f"/groups/{segment(group_id)}/split", FailureGroup, body=body)

    # Numbers

    async def statistics(self, *, older_than: Duration | None = None) -> Statistics:
        params = None if older_than is None else {"older_than": _text(older_than)}
        return await self._line.ask("GET", "/stats", Statistics, params=params)

    async def check(self, *, max_pending: int | None = None, max_age: Duration | None = None) -> Monitored:
        if max_pending is None and max_age is None:
            raise UsageError("nothing to check against", remedy="give --max-pending, --max-age or both")
        age = None if max_age is None else seconds(max_age)
        return judge(await self.statistics(), now=SystemClock().now(), max_pending=max_pending, max_age=age)

    async def top_errors(self, *, limit: int = 10) -> list[TopError]:
        return (await self._line.ask("GET", "/stats/top-errors", _TopErrors, params={"limit": limit})).items

    async def error_rate(self, within: Duration) -> list[HourlyRate]:
        return (await self._line.ask("GET", "/stats/rate", _Rates, params={"within": _text(within)})).items

    async def by_event_type(self) -> list[EventTypeCount]:
        return (await self._line.ask("GET", "/stats/event-types", _EventTypes)).items

    async def time_to_resolve(self) -> ResolutionTime:
        return await self._line.ask("GET", "/stats/resolution", ResolutionTime)

    async def queues(self, named: Sequence[str] = ()) -> tuple[list[QueueOverview], str]:
        found = await self._line.ask("GET", "/queues", _Queues, params={"queue": list(named) or None})
        return found.items, found.incomplete


def _text(duration: Duration) -> str:
    return f"{seconds(duration):.3f}s"
