"""Looking at groups: their numbers from the counters, their newest letter from its index."""

from __future__ import annotations

from collections import defaultdict
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, and_, case, func, literal, or_, select, type_coerce

from redrive.dead_letter import REDRIVES_OF, TREND_HOURS, FailureGroup, Status, Verdict
from redrive.errors import UsageError
from redrive.insights import GroupOrder
from redrive.stores.columns import microseconds
from redrive.stores.expressions import begins_with, earlier, later, one_of
from redrive.stores.schema import audit, counter_deltas, groups, letters, redrives
from redrive.stores.sql_audit import happening, of_group
from redrive.stores.sql_counters import HOUR, hours_now, totals_now
from redrive.stores.sql_runs_outcomes import ENDINGS
from redrive.stores.sql_scope import inside, outside, scope_terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, FromClause, Row, Select, Subquery

    from redrive.access import Scope
    from redrive.dead_letter import Happening
    from redrive.insights import GroupPlace, GroupQuery

SHORTEST_BEGINNING = 4
_UNDER_WAY = "under way"


def find_groups(
    connection: Connection, asked: GroupQuery, *, now: datetime, within: Scope = None
) -> list[FailureGroup]:
    """One page of the groups that have letters."""
    counted, seen = _counted(), _seen()
    last_seen, value = _last_seen(seen), _ordered_by(asked.order, counted, seen)
    wanted: tuple[tuple[ColumnElement[Any], str | None], ...] = (
        (groups.c.queue, asked.queue),
        (groups.c.owner, asked.owner),
        (groups.c.verdict, None if asked.verdict is None else str(asked.verdict)),
    )
    query = (
        _select(seen)
        .join(counted, counted.c.group_id == groups.c.id)
        .where(counted.c.total > 0, *(column == value for column, value in wanted if value is not None))
        .where(*wholly_inside(groups, within))
        .order_by(value.desc(), last_seen.desc(), groups.c.id)
        .limit(asked.limit)
    )
    if asked.text is not None:
        query = query.where(_holds(groups.c.title, asked.text, connection.dialect.name))
    if asked.after is not None:
        query = query.where(_behind(asked.after, value, last_seen))
    return _told(connection, connection.execute(query).all(), now)


def by_ids(connection: Connection, ids: list[str], now: datetime) -> dict[str, FailureGroup]:
    mine = one_of(groups.c.id, ids, connection.dialect.name)
    rows = connection.execute(_select(_seen()).where(mine)).all()
    return {each.id: each for each in _told(connection, rows, now)}


def _ordered_by(order: GroupOrder, counted: Subquery, seen: Subquery) -> ColumnElement[int]:
    """As a number, whatever it is."""
    by: dict[GroupOrder, ColumnElement[Any]] = {
        GroupOrder.PENDING: counted.c.pending,
        GroupOrder.TOTAL: counted.c.total,
        GroupOrder.LAST_SEEN: _last_seen(seen),
        GroupOrder.FIRST_SEEN: _first_seen(seen),
    }
    return type_coerce(by[order], BigInteger)


def _behind(place: GroupPlace, value: ColumnElement[int], last_seen: ColumnElement[Any]) -> ColumnElement[bool]:
    seen = literal(place.last_seen, groups.c.last_seen.type)
    same = value == place.value
    return or_(
        value < place.value,
        and_(same, last_seen < seen),
        and_(same, last_seen == seen, groups.c.id > place.id),
    )


def _holds(title: ColumnElement[str], text: str, dialect: str) -> ColumnElement[bool]:
    """No character of the text has a meaning."""
    found = func.strpos if dialect == "postgresql" else func.instr
    told = literal(text.translate(_LOWER), groups.c.title.type)
    return found(func.lower(title), told) > 0


_LOWER = {ord(each): each.lower() for each in ascii_uppercase}
"""As SQLite, and PostgreSQL by the collation C, lower text."""


def find_group(connection: Connection, group_id: str, now: datetime, within: Scope = None) -> FailureGroup | None:
    """With its history, by its id or an unambiguous beginning. One that was merged is found as the group it is in
    now; one without letters only if somebody has said something about it, or merged others into it.
    """
    row = identify(connection, group_id, within)
    if row is None:
        return None
    current = groups.c.id == (row.merged_into or row.id)
    found = _told(connection, connection.execute(_select(_seen()).where(current)).all(), now)
    if not found or not (found[0].example or found[0].merged or _said(found[0])):
        return None
    redrives, history = _redrives(connection, found[0].id), _history(connection, found[0].id)
    return msgspec.structs.replace(found[0], redrives=redrives, history=history)


def identify(connection: Connection, group_id: str, within: Scope = None) -> Row[Any] | None:
    """Its whole id, and that of the group it was merged into. UsageError if more than one id begins like that."""
    known = _known(within)
    exact: Row[Any] | None = connection.execute(known.where(groups.c.id == group_id)).one_or_none()
    if exact is not None or len(group_id) < SHORTEST_BEGINNING:
        return exact
    beginning = begins_with(groups.c.id, group_id.lower())
    rows: Sequence[Row[Any]] = connection.execute(known.where(beginning).limit(2)).all()
    if len(rows) > 1:
        raise UsageError(
            f"more than one group's id begins with {group_id!r}", remedy="give more of the id, or all of it"
        )
    return rows[0] if rows else None


def _known(within: Scope) -> Select[Any]:
    """Groups that are, or were merged into, one that is wholly inside."""
    known = select(groups.c.id, groups.c.merged_into)
    if not scope_terms(within):
        return known
    current = groups.alias("current")
    whole = select(current.c.id).where(*wholly_inside(current, within))
    return known.where(func.coalesce(groups.c.merged_into, groups.c.id).in_(whole))


def wholly_inside(group: FromClause, within: Scope) -> list[ColumnElement[bool]]:
    """A group is of one queue until somebody merges it with one of another. What is said about it is then about
    both, and whoever changes it changes both: it is there for those only who may know of all of it, that is of its
    own queue, of those that were merged into it, and of every letter it holds.
    """
    if not scope_terms(within):
        return []
    now, merged = totals_now(), groups.alias("merged")
    strange = select(now.c.group_id).where(*outside(now.c.queue, within)).group_by(now.c.group_id)
    parts = select(merged.c.merged_into).where(merged.c.merged_into.is_not(None), *outside(merged.c.queue, within))
    return [
        *inside(group.c.queue, within),
        group.c.id.not_in(strange.having(func.sum(now.c.letters) > 0)),
        group.c.id.not_in(parts),
    ]


def seen(connection: Connection, group_id: str) -> tuple[datetime, datetime]:
    """When a group that exists was seen first and last."""
    row = connection.execute(_select(_seen()).where(groups.c.id == group_id)).one()
    return row.first_seen, row.last_seen


def _said(group: FailureGroup) -> bool:
    return any(each is not None for each in (group.owner, group.verdict, group.note, group.runbook))


def _counted() -> Subquery:
    now = totals_now()
    pending = case((now.c.status == str(Status.PENDING), now.c.letters), else_=0)
    columns = (now.c.group_id, func.sum(now.c.letters).label("total"), func.sum(pending).label("pending"))
    return select(*columns).group_by(now.c.group_id).subquery("counted")


def _seen() -> Subquery:
    """What is not folded yet of when groups were seen."""
    deltas = counter_deltas.c
    first, last = func.min(deltas.first_seen).label("first_seen"), func.max(deltas.last_seen).label("last_seen")
    return select(deltas.group_id, first, last).group_by(deltas.group_id).subquery("seen")


def _first_seen(seen: Subquery) -> ColumnElement[datetime]:
    return earlier(groups.c.first_seen, func.coalesce(seen.c.first_seen, groups.c.first_seen))


def _last_seen(seen: Subquery) -> ColumnElement[datetime]:
    return later(groups.c.last_seen, func.coalesce(seen.c.last_seen, groups.c.last_seen))


def _select(seen: Subquery) -> Select[Any]:
    own = [column for column in groups.c if column.name not in {"first_seen", "last_seen", "merged_into"}]
    return select(*own, _first_seen(seen).label("first_seen"), _last_seen(seen).label("last_seen")).join(
        seen, seen.c.group_id == groups.c.id, isouter=True
    )


def _told(connection: Connection, rows: Sequence[Row[Any]], now: datetime) -> list[FailureGroup]:
    ids = [row.id for row in rows]
    statuses, trends = _statuses(connection, ids), _trends(connection, ids, now)
    examples, merged = _examples(connection, ids), _merged(connection, ids)
    return [
        FailureGroup(
            id=row.id,
            title=row.title,
            queue=row.queue,
            handler=row.handler,
            first_seen=row.first_seen,
            last_seen=row.last_seen,
            total=sum(statuses[row.id].values()),
            pending=statuses[row.id].get(str(Status.PENDING), 0),
            example=examples.get(row.id),
            by_status=statuses[row.id],
            trend=trends[row.id],
            owner=row.owner,
            verdict=None if row.verdict is None else Verdict(row.verdict),
            note=row.note,
            runbook=row.runbook,
            merged=tuple(merged[row.id]),
        )
        for row in rows
    ]


def _statuses(connection: Connection, ids: list[str]) -> dict[str, dict[str, int]]:
    now = totals_now()
    number = func.sum(now.c.letters).label("number")
    query = select(now.c.group_id, now.c.status, number).where(
        one_of(now.c.group_id, ids, connection.dialect.name)
    )
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in connection.execute(query.group_by(now.c.group_id, now.c.status).order_by(now.c.status)):
        if row.number:
            found[row.group_id][row.status] = int(row.number)
    return found


def _trends(connection: Connection, ids: list[str], now: datetime) -> dict[str, tuple[int, ...]]:
    last = microseconds(now) // HOUR
    first = last - TREND_HOURS + 1
    hours = hours_now(since=first, until=last + 1)
    number = func.sum(hours.c.letters).label("number")
    query = select(hours.c.group_id, hours.c.hour, number).where(
        one_of(hours.c.group_id, ids, connection.dialect.name)
    )
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for row in connection.execute(query.group_by(hours.c.group_id, hours.c.hour)):
        found[row.group_id][row.hour] = int(row.number)
    return {each: tuple(found[each].get(hour, 0) for hour in range(first, last + 1)) for each in ids}


def _examples(connection: Connection, ids: list[str]) -> dict[str, str]:
    """The newest letter of each group: one look into the index per group, however many letters it has."""
    order = (letters.c.created_at.desc(), letters.c.id.desc())
    newest = select(letters.c.id).where(letters.c.group_id == groups.c.id).order_by(*order).limit(1)
    example = newest.correlate(groups).scalar_subquery()
    mine = one_of(groups.c.id, ids, connection.dialect.name)
    rows = connection.execute(select(groups.c.id, example.label("example")).where(mine))
    return {row.id: row.example for row in rows if row.example is not None}


def _merged(connection: Connection, ids: list[str]) -> dict[str, list[str]]:
    into = one_of(groups.c.merged_into, ids, connection.dialect.name)
    query = select(groups.c.merged_into, groups.c.id).where(into).order_by(groups.c.id)
    found: dict[str, list[str]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.merged_into].append(row.id)
    return found


def _redrives(connection: Connection, group_id: str) -> dict[str, int]:
    """Of the newest letters, so that it costs the same for a group of a million."""
    order = (letters.c.created_at.desc(), letters.c.id.desc())
    newest = select(letters.c.id).where(letters.c.group_id == group_id).order_by(*order).limit(REDRIVES_OF)
    outcome = func.coalesce(redrives.c.outcome, _UNDER_WAY).label("outcome")
    query = select(outcome, func.count().label("number")).where(redrives.c.letter_id.in_(newest))
    query = query.where(outcome.in_([_UNDER_WAY, *ENDINGS]))
    rows = connection.execute(query.group_by(outcome).order_by(outcome))
    return {row.outcome: row.number for row in rows}


def _history(connection: Connection, group_id: str) -> tuple[Happening, ...]:
    mine = audit.c.letter_id == of_group(group_id)
    return tuple(happening(row) for row in connection.execute(select(audit).where(mine).order_by(audit.c.id)))
