"""The seam to alerts: what rules look at, incidents, and what processes report of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from redrive.access import Scope
    from redrive.alerts.incident import Incident, IncidentChange
    from redrive.alerts.observed import EndedRun, NewGroups, ProcessReport, Reported, Returned, Sample
    from redrive.dead_letter import Actor, FailureGroup


class AlertStore(Protocol):
    # What rules look at

    async def take_sample(self, *, keep: float, every: float) -> list[Sample]:
        """The numbers of now, behind those that were kept in the last `keep` seconds, the oldest first. They are
        kept too, unless some were in the last `every` seconds; older ones go.
        """
        ...

    async def oldest_open(self, *, within: Scope = None) -> datetime | None:
        """When the oldest letter that is PENDING or QUARANTINED was recorded."""
        ...

    async def recent_by_group(self, since: datetime, *, at_most: int) -> Mapping[str, int]:
        """Letters that failed for good since then, by group: of the newest `at_most`."""
        ...

    async def critical_groups(self, *, limit: int) -> Mapping[str, int]:
        """Open letters that failed critically, by group, most first."""
        ...

    async def new_groups(self, since: datetime, *, limit: int) -> NewGroups:
        """First seen since then and with open letters: the newest `limit`, and how many there are besides."""
        ...

    async def returned_groups(self, since: datetime, *, limit: int) -> Mapping[str, Returned]:
        """Back since then, after days of quiet, after all of it was settled, or after it was sent back; `limit` of
        each at most.
        """
        ...

    async def groups_named(self, group_ids: Sequence[str]) -> Mapping[str, FailureGroup]:
        """Those that there are, as in a list."""
        ...

    async def failed_runs(self, *, since: datetime, limit: int) -> list[EndedRun]:
        """That have failed or were stopped since then, the last one first."""
        ...

    # Incidents

    async def incidents_to_judge(self, *, since: datetime) -> list[Incident]:
        """That are firing, held or snoozed, have something to be told, or changed since then."""
        ...

    async def save_incidents(self, changed: Sequence[Incident], *, duty: str, holder: str) -> list[Incident]:
        """Those that were saved, each with its new revision: one that somebody else has changed meanwhile is left
        as it is. None of them, if the duty is no longer the holder's.
        """
        ...

    async def forget_incidents(self, *, before: datetime) -> int:
        """Those that are over and did not change since: how many."""
        ...

    async def incidents(self, *, firing: bool = False, limit: int = 50, within: Scope = None) -> list[Incident]:
        """The last change first, those that are firing before the others. What is not about one queue is in no
        scope but that of everything.
        """
        ...

    async def incident(self, incident_id: str, *, within: Scope = None) -> Incident | None:
        """The beginning of its id will do, of at least eight characters, if no other begins like it."""
        ...

    async def change_incident(
        self, incident_id: str, change: IncidentChange, *, by: Actor, until: datetime | None = None
    ) -> Incident:
        """With a row of the ledger. NotFound; Refused if it is over. Its end is told by whoever looks next."""
        ...

    # Processes

    async def report(self, report: ProcessReport) -> None:
        """What it says is true now; what it said before is not kept."""
        ...

    async def say_goodbye(self, process_id: str) -> None:
        """The process ends in good order. Safe to repeat."""
        ...

    async def processes(self, *, since: datetime, spools_since: datetime) -> list[Reported]:
        """Those that have reported since then; older reports go. Of a spool that letters were left in, what was
        said of it last stays longer, of no queues then.
        """
        ...
