"""Alerts in a store on SQL: see `alert_store`. An incident is changed by guarded updates of its revision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import delete, or_, select, update

from redrive.alerts.incident import Incident, IncidentStatus, changed
from redrive.any_text_json import decoded, encoded
from redrive.dead_letter import OPEN
from redrive.errors import NotFound, UsageError
from redrive.ledger import INCIDENT, Deed, Subject
from redrive.stores import sql_group_news, sql_observing, sql_processes
from redrive.stores.expressions import begins_with, insert_into, lots
from redrive.stores.schema import groups
from redrive.stores.schema_duties import duties
from redrive.stores.schema_incidents import incidents, processes
from redrive.stores.sql_group_pages import by_ids, wholly_inside
from redrive.stores.sql_scope import inside, scope_terms
from redrive.stores.sql_selection import page_size
from redrive.stores.sql_statistics import oldest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from redrive.access import Scope
    from redrive.alerts.incident import IncidentChange
    from redrive.alerts.observed import EndedRun, NewGroups, ProcessReport, Reported, Returned, Sample
    from redrive.clock import Clock
    from redrive.dead_letter import Actor, FailureGroup
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")

MOST_JUDGED = 20_000
"""Incidents in one round. Each rule makes a thousand at most."""
SHORTEST_BEGINNING = 8


class SqlAlerting(ABC):
    _clock: Clock
    _ledger: Ledger

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    @abstractmethod
    def _now(self, connection: Connection) -> datetime:
        """The clock of all who share the store."""

    async def take_sample(self, *, keep: float, every: float) -> list[Sample]:
        return await self._write(
            lambda connection: sql_observing.take_sample(
                connection, keep=keep, every=every, now=self._now(connection)
            )
        )

    async def oldest_open(self, *, within: Scope = None) -> datetime | None:
        return await self._read(lambda connection: oldest(connection, within, OPEN))

    async def recent_by_group(self, since: datetime, *, at_most: int) -> Mapping[str, int]:
        return await self._read(partial(sql_observing.recent_by_group, since=since, at_most=at_most))

    async def failed_runs(self, *, since: datetime, limit: int) -> list[EndedRun]:
        return await self._read(partial(sql_observing.failed_runs, since=since, limit=limit))

    async def critical_groups(self, *, limit: int) -> Mapping[str, int]:
        return await self._read(partial(sql_observing.critical_groups, limit=limit))

    async def new_groups(self, since: datetime, *, limit: int) -> NewGroups:
        return await self._read(partial(sql_group_news.new_groups, since=since, limit=limit))

    async def returned_groups(self, since: datetime, *, limit: int) -> Mapping[str, Returned]:
        return await self._read(partial(sql_group_news.returned_groups, since=since, limit=limit))

    async def groups_named(self, group_ids: Sequence[str]) -> Mapping[str, FailureGroup]:
        now, wanted = self._clock.now(), list(dict.fromkeys(group_ids))

        def unit(connection: Connection) -> dict[str, FailureGroup]:
            found: dict[str, FailureGroup] = {}
            for lot in lots(wanted):
                found |= by_ids(connection, lot, now)
            return found

        return await self._read(unit)

    async def incidents_to_judge(self, *, since: datetime) -> list[Incident]:
        now, columns = self._clock.now(), incidents.c
        wanted = or_(
            columns.status == str(IncidentStatus.FIRING),
            columns.changed_at >= since,
            columns.held,
            columns.untold,
            columns.snoozed_until > now,
        )
        query = (
            select(columns.body, columns.revision).where(wanted).order_by(columns.changed_at.desc(), columns.key)
        )
        return await self._read(lambda connection: _found(connection, query.limit(MOST_JUDGED)))

    async def save_incidents(self, changed: Sequence[Incident], *, duty: str, holder: str) -> list[Incident]:
        def unit(connection: Connection) -> list[Incident]:
            mine = select(duties.c.name).where(duties.c.name == duty, duties.c.holder == holder)
            if connection.scalar(mine.with_for_update()) is None:
                return []
            # In one order for all: whoever changes one by hand would else be waited for, and wait.
            ordered = sorted(changed, key=lambda each: each.key)
            return [saved for each in ordered if (saved := _save(connection, each)) is not None]

        return await self._write(unit)

    async def forget_incidents(self, *, before: datetime) -> int:
        columns = incidents.c
        over = (
            columns.status == str(IncidentStatus.RESOLVED),
            columns.changed_at < before,
            ~columns.held,
            ~columns.untold,
            or_(columns.snoozed_until.is_(None), columns.snoozed_until < before),
        )
        return await self._write(lambda connection: connection.execute(delete(incidents).where(*over)).rowcount)

    async def incidents(self, *, firing: bool = False, limit: int = 50, within: Scope = None) -> list[Incident]:
        columns = incidents.c
        query = select(columns.body, columns.revision).where(*_visible(within))
        if firing:
            query = query.where(columns.status == str(IncidentStatus.FIRING))
        # FIRING stands before RESOLVED in any alphabet.
        query = query.order_by(columns.status, columns.changed_at.desc(), columns.key).limit(page_size(limit))
        return await self._read(lambda connection: _found(connection, query))

    async def incident(self, incident_id: str, *, within: Scope = None) -> Incident | None:
        named = incident_id.strip().lower()
        if len(named) < SHORTEST_BEGINNING:
            raise UsageError(
                f"{incident_id!r} is too short for an alert's id",
                remedy=f"give at least {SHORTEST_BEGINNING} characters; `redrive alerts list` shows the ids",
            )
        columns = incidents.c
        query = select(columns.body, columns.revision).where(begins_with(columns.id, named), *_visible(within))
        found = await self._read(lambda connection: _found(connection, query.limit(2)))
        if len(found) > 1:
            raise UsageError(f"more than one alert begins with {incident_id}", remedy="give more of its id")
        return found[0] if found else None

    async def change_incident(
        self, incident_id: str, change: IncidentChange, *, by: Actor, until: datetime | None = None
    ) -> Incident:
        def unit(connection: Connection) -> Incident:
            columns, now = incidents.c, self._now(connection)
            query = select(columns.body, columns.revision).where(columns.id == incident_id).with_for_update()
            found = _found(connection, query)
            if not found:
                raise NotFound(f"no alert {incident_id}", remedy="`redrive alerts list` shows the ids")
            after = changed(found[0], change, by=by.name, now=now, until=until)
            saved = _save(connection, after)
            what = f"alert {change.value}"
            told = "" if until is None else f"until {until.isoformat()}"
            deed = Deed(what=what, subject=Subject.of(INCIDENT, [after.id]), after=told or str(after.status))
            self._ledger.write(connection, deed, by=by, now=now)
            return saved or after

        return await self._write(unit)

    async def report(self, report: ProcessReport) -> None:
        def unit(connection: Connection) -> None:
            new = insert_into(processes, connection.dialect.name)
            again = {"seen_at": new.excluded.seen_at, "body": new.excluded.body}
            row = {"id": report.id, "seen_at": self._now(connection), "body": encoded(report)}
            connection.execute(new.on_conflict_do_update(index_elements=["id"], set_=again), row)

        await self._write(unit)

    async def say_goodbye(self, process_id: str) -> None:
        await self._write(
            lambda connection: connection.execute(delete(processes).where(processes.c.id == process_id))
        )

    async def processes(self, *, since: datetime, spools_since: datetime) -> list[Reported]:
        return await self._write(partial(sql_processes.processes, since=since, spools_since=spools_since))


def _visible(within: Scope) -> list[ColumnElement[bool]]:
    """What is about no queue, or all of them, is for those who may know of all; and what is about a group that has
    letters of other queues too, for those who may know of these.
    """
    if not scope_terms(within):
        return []
    whole = select(groups.c.id).where(groups.c.id == incidents.c.group_id, *wholly_inside(groups, within))
    own_group = or_(incidents.c.group_id == "", whole.exists())
    return [incidents.c.queue != "", *inside(incidents.c.queue, within), own_group]


def _found(connection: Connection, query: Any) -> list[Incident]:
    return [replace(decoded(row.body, Incident), revision=row.revision) for row in connection.execute(query)]


def _save(connection: Connection, incident: Incident) -> Incident | None:
    """None, and nothing is changed, if somebody else was quicker."""
    saved = replace(incident, revision=incident.revision + 1)
    row = {
        "key": saved.key,
        "id": saved.id,
        "rule": saved.rule,
        "status": str(saved.status),
        "queue": saved.queue,
        "group_id": saved.group_id,
        "changed_at": saved.changed_at,
        "snoozed_until": saved.snoozed_until,
        "held": saved.held,
        "untold": saved.message is not None,
        "revision": saved.revision,
        "body": encoded(saved),
    }
    if incident.revision:
        same = (incidents.c.key == incident.key, incidents.c.revision == incident.revision)
        return saved if connection.execute(update(incidents).where(*same).values(**row)).rowcount else None
    new = insert_into(incidents, connection.dialect.name)
    # One that was over long ago was not looked at; it begins anew.
    over = (incidents.c.status == str(IncidentStatus.RESOLVED)) & ~incidents.c.held
    others = {name: new.excluded[name] for name in row if name != "key"}
    statement = new.on_conflict_do_update(index_elements=["key"], set_=others, where=over)
    return saved if connection.execute(statement, row).rowcount else None
