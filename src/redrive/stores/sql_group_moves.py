"""Moving letters from group to group, a few at a time: each portion is one short transaction.

Letters are locked before their group, as those do who purge them. Whether they still belong where they are to go
is looked at once more in every portion, for somebody may have decided otherwise meanwhile. A letter from before
fingerprints were kept gets its own when it is moved for the first time: the group it was in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, literal, select, tuple_, update

from redrive.letter_query import Place
from redrive.stores import sql_groups
from redrive.stores.expressions import LOT, earlier, insert_into, later
from redrive.stores.schema import counter_deltas, groups, letters
from redrive.stores.sql_counters import wait_for_fold

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from redrive.stores.expressions import Values

_fingerprint = func.coalesce(letters.c.fingerprint, letters.c.group_id)


def merged_into(connection: Connection, target: str) -> list[str]:
    return list(
        connection.scalars(select(groups.c.id).where(groups.c.merged_into == target).order_by(groups.c.id))
    )


def sweep(connection: Connection, source: str, after: Place | None) -> Place | None:
    """Moves a portion of what lies in `source` and belongs elsewhere, each letter to where its own fingerprint
    says now, and says where the next one begins. None: that was all. Whoever else merges and splits meanwhile, no
    letter is taken to a place that its fingerprint does not name.
    """
    which = letters.c.group_id == source
    found = _locked(connection, which, after)
    if not found:
        return None
    mine = letters.c.id.in_([each.id for each in found])
    fingerprints = connection.scalars(select(_fingerprint).where(mine).distinct())
    named = sql_groups.hold(connection, sorted(fingerprints))
    sql_groups.hold(connection, sorted({into for into in named.values() if into is not None}))
    for fingerprint, into in named.items():
        if (into or fingerprint) != source:
            of_it = and_(which, _fingerprint == fingerprint)
            _moved(connection, found, of_it, into or fingerprint)
    return found[-1]


def take_out(connection: Connection, whole: str, part: Values, after: Place | None) -> Place | None:
    """Moves a portion of the letters in `whole` whose fingerprint is that of the group `part`, as `gather` does:
    to that group, or to another if somebody has merged it again. None: that was all.
    """
    which = and_(letters.c.group_id == whole, _fingerprint == part["id"])
    found = _locked(connection, which, after)
    if not found:
        return None
    # As long as none has come, whoever purges the last of its letters takes the group for one that is gone.
    make = insert_into(groups, connection.dialect.name).on_conflict_do_nothing(index_elements=[groups.c.id])
    while part["id"] not in (held := sql_groups.hold(connection, [part["id"]])):
        connection.execute(make, part)
    destination = held[part["id"]] or part["id"]
    return None if destination == whole else _moved(connection, found, which, destination)


def row_of(connection: Connection, group_id: str) -> Values:
    """A group's row, for making it once more."""
    row = connection.execute(select(groups).where(groups.c.id == group_id)).one()
    return {**row._mapping, "merged_into": None}  # noqa: SLF001  SQLAlchemy's public name begins like that


def _locked(connection: Connection, which: ColumnElement[bool], after: Place | None) -> list[Place]:
    """A portion, newest first; locked in the order of ids, like everybody locks letters."""
    columns = letters.c
    query = select(columns.created_at, columns.id).where(which)
    if after is not None:
        reached = tuple_(literal(after.created_at, columns.created_at.type), literal(after.id, columns.id.type))
        query = query.where(tuple_(columns.created_at, columns.id) < reached)
    query = query.order_by(columns.created_at.desc(), columns.id.desc()).limit(LOT)
    found = [Place(row.created_at, row.id) for row in connection.execute(query)]
    mine = columns.id.in_([each.id for each in found])
    connection.execute(select(columns.id).where(mine).order_by(columns.id).with_for_update())
    return found


def _moved(connection: Connection, found: list[Place], which: ColumnElement[bool], target: str) -> Place:
    still = (letters.c.id.in_([each.id for each in found]), which)  # one may have come back with another cause
    connection.execute(update(letters).where(*still).values(group_id=target, fingerprint=_fingerprint))
    return found[-1]


def settle(connection: Connection, group_ids: list[str]) -> None:
    """After letters were taken out: when each of these groups was seen, by the letters it has; one that has none
    is gone, unless it is kept for another reason.
    """
    wait_for_fold(connection)
    # What is not added up yet tells of letters that are no longer there; those that are, are looked at below.
    stale = update(counter_deltas).where(counter_deltas.c.group_id.in_(group_ids))
    connection.execute(stale.values(first_seen=None, last_seen=None))
    first = func.min(earlier(letters.c.created_at, letters.c.delivered_at)).label("first_seen")
    last = func.max(later(letters.c.created_at, letters.c.delivered_at)).label("last_seen")
    for group_id in sorted(group_ids):
        row: Any = connection.execute(select(first, last).where(letters.c.group_id == group_id)).one()
        if row.first_seen is not None:
            values = {"first_seen": row.first_seen, "last_seen": row.last_seen}
            connection.execute(update(groups).where(groups.c.id == group_id).values(values))
    sql_groups.leave(connection, group_ids)
