"""What was told and what became of it: one incident per thing that a rule is about, kept in the store.

    nothing ──it is so──> FIRING ──it is no more, or a person says so──> RESOLVED ──again──> FIRING (a new id)

An incident carries the message that is still to be handed over, so that a crash between deciding and telling
neither repeats nor loses it: whoever comes next hands over the same message, which has an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from redrive.alerts.alert import LONGEST_TITLE, Alert, Severity, State
from redrive.alerts.conditions import key_of
from redrive.clock import new_id
from redrive.errors import Refused
from redrive.message import printable

if TYPE_CHECKING:
    from redrive.alerts.conditions import Condition
    from redrive.alerts.rule import AlertRule


class IncidentStatus(StrEnum):
    FIRING = "FIRING"
    RESOLVED = "RESOLVED"


class IncidentChange(StrEnum):
    """What people do about it."""

    ACKNOWLEDGE = "acknowledge"
    SNOOZE = "snooze"
    WAKE = "wake"
    """It is no longer snoozed."""
    RESOLVE = "resolve"


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    """The dedup key of its messages."""
    id: str
    """Of this time that it is so; the next one has another."""
    rule: str
    severity: Severity
    status: IncidentStatus
    title: str
    counts: Mapping[str, int] = {}
    queue: str = ""
    group_id: str = ""
    path: str = "/"
    since: datetime
    changed_at: datetime
    ended_at: datetime | None = None
    told_at: datetime | None = None
    """When its beginning was told last, this time or before; None: never."""
    first_told_at: datetime | None = None
    """The same without reminders."""
    told: bool = False
    """Whether it was told this time."""
    tell_again: bool = False
    """It was snoozed, or is worse than it was: it is told once more as soon as it may be."""
    told_as: str = ""
    """The key of the message about many that told of it; empty: its own."""
    told_of: int = 0
    """Of a message about many: how many it has told of."""
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None
    snoozed_until: datetime | None = None
    snoozed_by: str | None = None
    held: bool = False
    """Somebody has said that it is over though it is not: it is not told again before it was over."""
    channels: tuple[str, ...] | None = None
    """Those of its rule when it began: whoever is told of that is told of its end, whatever becomes of the rule.
    Empty: all. None: an older version made it.
    """
    message: Alert | None = None
    """To be handed over."""
    last_message: str = ""
    """The id of the last one that was made; empty: none, or an older version made it."""
    revision: int = 0

    @property
    def is_firing(self) -> bool:
        return self.status is IncidentStatus.FIRING

    def is_snoozed(self, now: datetime) -> bool:
        return self.snoozed_until is not None and self.snoozed_until > now


def begun(rule: AlertRule, condition: Condition, before: Incident | None, now: datetime) -> Incident:
    """From now on; nobody was told yet."""
    kept: dict[str, Any] = {} if before is None else {name: getattr(before, name) for name in _KEPT}
    return Incident(
        key=key_of(rule.name, condition.subject),
        id=new_id(),
        rule=rule.name,
        severity=rule.severity,
        status=IncidentStatus.FIRING,
        since=now,
        changed_at=now,
        channels=rule.channels,
        tell_again=before is not None and before.tell_again and before.is_snoozed(now),
        **_facts(condition),
        **kept,
    )


_KEPT = ("told_at", "first_told_at", "snoozed_until", "snoozed_by", "last_message", "revision")
_FACTS = ("title", "counts", "queue", "group_id", "path")


def followed(incident: Incident, condition: Condition, now: datetime) -> Incident:
    """It goes on, maybe with other numbers."""
    facts = _facts(condition)
    if all(getattr(incident, name) == facts[name] for name in _FACTS):
        return incident
    return replace(incident, **facts, changed_at=now)


def ended(incident: Incident, now: datetime) -> Incident:
    """It is not so any more. Whoever was told of its beginning is told of its end."""
    if not incident.is_firing:
        return replace(incident, held=False) if incident.held else incident
    over = replace(incident, status=IncidentStatus.RESOLVED, ended_at=now, changed_at=now)
    if not incident.told or incident.told_as:
        return over
    return _telling(over, State.RESOLVED, now)


def is_due(incident: Incident, rule: AlertRule, now: datetime) -> bool:
    """Whether somebody has to be told that it began, or reminded that it goes on."""
    if not incident.is_firing or incident.is_snoozed(now):
        return False
    if incident.tell_again:
        return True
    if not incident.told:
        return _is_past(incident.told_at, rule.cooldown, now)
    wanted = rule.remind is not None and incident.acknowledged_at is None and not incident.told_as
    return wanted and _is_past(incident.told_at, rule.remind or 0.0, now)


def _is_past(moment: datetime | None, wait: float, now: datetime) -> bool:
    """A moment that lies ahead was written by a clock that was wrong, and holds nobody up."""
    return moment is None or moment > now or moment + timedelta(seconds=wait) <= now


def told(incident: Incident, now: datetime) -> Incident:
    first = incident.first_told_at if incident.told else now
    said = replace(
        incident,
        told=True,
        told_at=now,
        first_told_at=first,
        told_as="",
        tell_again=False,
        snoozed_until=None,  # it is over, or nobody would be told
        snoozed_by=None,
        changed_at=now,
    )
    return _telling(said, State.RAISED, now)


def worsened(incident: Incident, severity: Severity) -> Incident:
    """It is to be told once more, as that."""
    return replace(incident, severity=severity, tell_again=True)


def told_among_many(incident: Incident, key: str, now: datetime) -> Incident:
    said = replace(incident, told=True, told_at=now, first_told_at=now, told_as=key, changed_at=now)
    return replace(said, tell_again=False)


def is_newest(message: Alert, incident: Incident | None) -> bool:
    """Whether it is the last word about its incident. None: that has begun anew since, or is long over."""
    return incident is not None and incident.last_message in {"", message.id}


def handed_over(incident: Incident) -> Incident:
    return replace(incident, message=None)


def changed(
    incident: Incident, change: IncidentChange, *, by: str, now: datetime, until: datetime | None
) -> Incident:
    """By a person. Refused if there is nothing to change any more."""
    if change is IncidentChange.WAKE:
        return replace(incident, snoozed_until=None, snoozed_by=None, changed_at=now)
    if change is IncidentChange.SNOOZE:
        if until is None or until <= now:
            raise Refused("an alert is snoozed until a moment that lies ahead", remedy="give a longer time")
        return replace(incident, snoozed_until=until, snoozed_by=by, tell_again=True, changed_at=now)
    if not incident.is_firing:
        raise Refused(f"this alert is over since {incident.ended_at}", remedy="there is nothing to do about it")
    if change is IncidentChange.ACKNOWLEDGE:
        return replace(incident, acknowledged_by=by, acknowledged_at=now, tell_again=False, changed_at=now)
    return replace(ended(incident, now), held=True, acknowledged_by=incident.acknowledged_by or by)


def _facts(condition: Condition) -> dict[str, Any]:
    return {name: getattr(condition, name) for name in _FACTS} | {"title": condition.title[:LONGEST_TITLE]}


def _telling(incident: Incident, state: State, now: datetime) -> Incident:
    message = _message(incident, state, now)
    return replace(incident, message=message, last_message=message.id)


def _message(incident: Incident, state: State, now: datetime) -> Alert:
    return Alert(
        id=new_id(),
        dedup_key=incident.key,
        rule=incident.rule,
        severity=incident.severity,
        state=state,
        title=printable(incident.title)[:LONGEST_TITLE],  # what no channel could write is told by its escapes
        counts=dict(incident.counts),
        queue=printable(incident.queue),
        group_id=incident.group_id,
        since=incident.since,
        at=now,
        path=incident.path,
        incident_id=incident.id,
    )
