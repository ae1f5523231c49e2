"""Groups: made with their first letter, merged, split, and gone with their last letter unless somebody owns them.

A group's row is locked only in ways that letters being recorded do not wait for: they share it (KEY SHARE), which
keeps it from being deleted or merged under them and nothing else. Its numbers lie elsewhere: sql_counters.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, exists, or_, select

from redrive.message import cut
from redrive.stores.expressions import insert_into
from redrive.stores.private import columns_of
from redrive.stores.schema import groups, letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.dialects.sqlite import Insert

    from redrive.dead_letter import Entry
    from redrive.stores.expressions import Values

TITLE_BUDGET = 512


def join(connection: Connection, entries: Sequence[Entry]) -> dict[str, str]:
    """The group of each fingerprint: its own, made if need be, or the one it was merged into. None of them goes
    away before the transaction ends.
    """
    wanted = {entry.fingerprint.id: entry for entry in entries}
    found = hold(connection, sorted(wanted))
    while missing := sorted(wanted.keys() - found.keys()):
        _make(connection, [wanted[each] for each in missing])
        found |= hold(connection, missing)  # one that was deleted in between is made once more
    # A group may be merged before it is held here, and what was merged into it has gone on to a third one then.
    while merged := sorted({into for into in found.values() if into is not None} - found.keys()):
        found |= dict.fromkeys(merged) | hold(connection, merged)
    return {fingerprint: _followed(fingerprint, found) for fingerprint in wanted}


def _followed(group_id: str, found: dict[str, str | None]) -> str:
    while into := found[group_id]:
        group_id = into
    return group_id


def _make(connection: Connection, entries: Iterable[Entry]) -> None:
    rows: list[Values] = [
        {
            "id": entry.fingerprint.id,
            "title": cut(columns_of(connection, entry.queue).text(entry.fingerprint.title), TITLE_BUDGET),
            "queue": entry.queue,
            "handler": entry.handler,
            "first_seen": entry.at,
            "last_seen": entry.at,
        }
        for entry in entries
    ]
    # One after the other in the order of their ids: two writers that make the same groups cannot deadlock.
    connection.execute(_new_group(connection.dialect.name), rows)


@cache
def _new_group(dialect: str) -> Insert:
    return insert_into(groups, dialect).on_conflict_do_nothing(index_elements=[groups.c.id])


def hold(connection: Connection, group_ids: list[str]) -> dict[str, str | None]:
    """Those that exist, with the group they were merged into."""
    if not group_ids:
        return {}
    rows: Any = connection.execute(_held, {"ids": group_ids})
    return {row.id: row.merged_into for row in rows}


_held = (
    select(groups.c.id, groups.c.merged_into)
    .where(groups.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(groups.c.id)
    .with_for_update(read=True, key_share=True)
)


def leave(connection: Connection, gone: Iterable[str]) -> None:
    """Letters of these groups are no longer in them: a group without any goes, unless a person has said
    something about it, or letters of other groups would come to it.
    """
    other = groups.alias()
    said = or_(*(groups.c[name].is_not(None) for name in ("owner", "verdict", "note", "runbook", "merged_into")))
    empty = (
        groups.c.id.in_(sorted(set(gone))),
        ~exists().where(letters.c.group_id == groups.c.id),
        ~exists().where(other.c.merged_into == groups.c.id),
        ~said,
    )
    locked = select(groups.c.id).where(*empty).order_by(groups.c.id).with_for_update(of=groups)
    # Whoever was just recording into one of them has committed by now, and is seen by the second look. It is for
    # those that are locked only: DELETE waits for whoever shares a row, and does not look again then.
    if mine := connection.scalars(locked).all():
        connection.execute(delete(groups).where(groups.c.id.in_(mine), *empty))
