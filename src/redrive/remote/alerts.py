"""Alerts through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.alerts.incident import Incident
from redrive.duration import seconds
from redrive.remote.line import Line, segment

if TYPE_CHECKING:
    from redrive.duration import Duration


class _Alerts(msgspec.Struct):
    items: list[Incident]


class RemoteAlerts:
    _line: Line

    async def incidents(self, *, firing: bool = False, limit: int = 50) -> list[Incident]:
        params = {"firing": str(firing).lower(), "limit": limit}
        return (await self._line.ask("GET", "/alerts", _Alerts, params=params)).items

    async def incident(self, incident_id: str) -> Incident:
        return await self._line.ask("GET", f"/alerts/{segment(incident_id)}", Incident)

    async def acknowledge(self, incident_id: str, reason: str = "") -> Incident:
        return await self._change_incident(incident_id, "acknowledge", {"reason": reason})

    async def snooze(self, incident_id: str, wait: Duration, reason: str = "") -> Incident:
        told = wait if isinstance(wait, str) else f"{seconds(wait):.3f}s"  # what is no duration, the server says
        return await self._change_incident(incident_id, "snooze", {"wait": told, "reason": reason})

    async def wake(self, incident_id: str, reason: str = "") -> Incident:
        return await self._change_incident(incident_id, "wake", {"reason": reason})

    async def resolve_incident(self, incident_id: str, reason: str = "") -> Incident:
        return await self._change_incident(incident_id, "resolve", {"reason": reason})

    async def _change_incident(self, incident_id: str, change: str, body: dict[str, str]) -> Incident:
        return await self._line.ask("POST", f"/alerts/{segment(incident_id)}/{change}", Incident, body=body)
