"""`/alerts`: what rules found, what people were told, and what somebody does about it."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.responses import Response

from redrive.access import Permission
from redrive.alerts.alert import Severity
from redrive.alerts.incident import Incident, IncidentStatus
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.letter_query import MAX_PAGE

alerts = Routes("Alerts")

AlertId = Annotated[str, Path(description="The alert's id, or a beginning that only it has.", max_length=64)]


class AlertJson(msgspec.Struct, kw_only=True):
    """One thing that a rule has found."""

    id: str
    key: str
    """The same whenever it is about the same thing; channels know it as the dedup key."""
    rule: str
    severity: Severity
    status: IncidentStatus
    title: str
    """Masked."""
    counts: dict[str, int]
    queue: str
    """Empty: it is not about one queue."""
    group_id: str
    """Empty: it is not about one group."""
    path: str
    """The page of the console that shows what it is about."""
    since: datetime
    changed_at: datetime
    ended_at: datetime | None
    told_at: datetime | None
    """When its beginning was told last. null: it was not told, for it is snoozed or was told shortly before."""
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    snoozed_until: datetime | None
    snoozed_by: str | None
    held: bool
    """Somebody has said that it is over, though it is not yet."""

    @classmethod
    def of(cls, incident: Incident) -> AlertJson:
        told = {name: getattr(incident, name) for name in cls.__struct_fields__}
        return cls(**(told | {"counts": dict(incident.counts)}))


class AlertList(msgspec.Struct):
    items: list[AlertJson]


class Said(msgspec.Struct):
    """Why, for the audit trail."""

    reason: str = ""


class Snooze(msgspec.Struct):
    """For how long, such as `4h`, and why."""

    wait: str
    reason: str = ""


@alerts.at(
    "GET", "/alerts", Permission.READ, answers=AlertList, summary="What rules found: what is so now comes first"
)
async def list_alerts(
    desk: AtDesk,
    firing: Annotated[bool, Query(description="Only what is so now.")] = False,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> Response:
    return answer(AlertList([AlertJson.of(each) for each in await desk.incidents(firing=firing, limit=limit)]))


@alerts.at(
    "GET",
    "/alerts/{alert_id}",
    Permission.READ,
    answers=AlertJson,
    also=(HTTPStatus.NOT_FOUND,),
    summary="One alert",
)
async def show(alert_id: AlertId, desk: AtDesk) -> Response:
    return answer(AlertJson.of(await desk.incident(alert_id)))


@alerts.at(
    "POST",
    "/alerts/{alert_id}/acknowledge",
    Permission.ANNOTATE,
    takes=Said,
    answers=AlertJson,
    summary="Say that somebody sees to it: nobody is reminded any more",
)
async def acknowledge(alert_id: AlertId, desk: AtDesk, said: Annotated[Said, taken(Said)]) -> Response:
    return answer(AlertJson.of(await desk.acknowledge(alert_id, said.reason)))


@alerts.at(
    "POST",
    "/alerts/{alert_id}/snooze",
    Permission.ANNOTATE,
    takes=Snooze,
    answers=AlertJson,
    summary="Tell nothing of it but its end for a while, also when it begins anew meanwhile",
)
async def snooze(alert_id: AlertId, desk: AtDesk, said: Annotated[Snooze, taken(Snooze)]) -> Response:
    return answer(AlertJson.of(await desk.snooze(alert_id, said.wait, said.reason)))


@alerts.at(
    "POST",
    "/alerts/{alert_id}/wake",
    Permission.ANNOTATE,
    takes=Said,
    answers=AlertJson,
    summary="Snooze it no longer",
)
async def wake(alert_id: AlertId, desk: AtDesk, said: Annotated[Said, taken(Said)]) -> Response:
    return answer(AlertJson.of(await desk.wake(alert_id, said.reason)))


@alerts.at(
    "POST",
    "/alerts/{alert_id}/resolve",
    Permission.ANNOTATE,
    takes=Said,
    answers=AlertJson,
    summary="Say that it is over; it is told again only after it was over by itself",
)
async def resolve(alert_id: AlertId, desk: AtDesk, said: Annotated[Said, taken(Said)]) -> Response:
    return answer(AlertJson.of(await desk.resolve_incident(alert_id, said.reason)))
