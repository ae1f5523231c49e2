"""The desk's part about alerts: see `redrive.actions`."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, cast

from redrive.access import Permission
from redrive.alerts.incident import IncidentChange
from redrive.duration import seconds
from redrive.errors import NotFound, UsageError
from redrive.standing import Standing

if TYPE_CHECKING:
    from redrive.alerts.incident import Incident
    from redrive.clock import Clock
    from redrive.duration import Duration
    from redrive.stores.alert_store import AlertStore

LONGEST_SNOOZE = 365 * 86400.0


class AlertActions(Standing):
    _clock: Clock

    @cached_property
    def _alerts(self) -> AlertStore:
        return cast("AlertStore", self._runs)  # every driver of ours is one

    async def incidents(self, *, firing: bool = False, limit: int = 50) -> list[Incident]:
        """Those that are firing first, then the last that ended. What is not about one queue is for those who may
        know of all.
        """
        within = await self._may(Permission.READ)
        return await self._alerts.incidents(firing=firing, limit=limit, within=within)

    async def incident(self, incident_id: str) -> Incident:
        """The beginning of its id will do."""
        return await self._incident(incident_id, Permission.READ)

    async def acknowledge(self, incident_id: str, reason: str = "") -> Incident:
        """Somebody sees to it: nobody is reminded any more. Its end is told."""
        return await self._change_incident(incident_id, IncidentChange.ACKNOWLEDGE, reason)

    async def snooze(self, incident_id: str, wait: Duration, reason: str = "") -> Incident:
        """Nothing but its end is told of it for so long, also when it begins anew meanwhile. If it is so when that
        is over, it is told again.
        """
        try:
            length = seconds(wait)
        except ValueError:
            length = 0.0
        if not 0 < length <= LONGEST_SNOOZE:
            raise UsageError(f"{wait!r} is no time to snooze an alert for", remedy="give up to 365d, such as 4h")
        return await self._change_incident(
            incident_id, IncidentChange.SNOOZE, reason, wait=timedelta(seconds=length)
        )

    async def wake(self, incident_id: str, reason: str = "") -> Incident:
        """It is no longer snoozed: told again at once, if it is so."""
        return await self._change_incident(incident_id, IncidentChange.WAKE, reason)

    async def resolve_incident(self, incident_id: str, reason: str = "") -> Incident:
        """It is over, somebody says; it is told again only after it was over by itself."""
        return await self._change_incident(incident_id, IncidentChange.RESOLVE, reason)

    async def _change_incident(
        self, incident_id: str, change: IncidentChange, reason: str, *, wait: timedelta | None = None
    ) -> Incident:
        found = await self._incident(incident_id, Permission.ANNOTATE)
        until = None if wait is None else self._clock.now() + wait
        return await self._alerts.change_incident(found.id, change, by=self._by(reason), until=until)

    async def _incident(self, incident_id: str, permission: Permission) -> Incident:
        found = await self._alerts.incident(incident_id, within=await self._may(permission))
        if found is None:
            raise NotFound(f"no alert {incident_id}", remedy="`redrive alerts list` shows the ids")
        return found
