"""What people say about groups, and which groups are one; each change with its lines of history.

A merge is told to the groups first, one after the other, and then the letters are moved (sql_group_moves):

1. Whatever was merged into the group that is to be merged goes to the target as well, so that no letter ever has
   to follow a chain, and then the group itself. Each is a transaction of its own that locks one group FOR UPDATE,
   which those who record into it share: it waits for them, they see its outcome, and nobody waits in a circle.
2. From then on no letter comes to these groups, so that moving what lies there comes to an end.

A process that is killed in between leaves a state that is valid, and the same merge again completes it. Those who
change groups take turns with each other and with the counters' fold, by its lock.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select, update

from redrive.errors import NotFound, Refused, UsageError
from redrive.ledger import GROUP, Deed, Subject
from redrive.stores import sql_audit
from redrive.stores.expressions import earlier, later
from redrive.stores.schema import audit, groups
from redrive.stores.sql_counters import wait_for_fold
from redrive.stores.sql_group_pages import identify, seen
from redrive.stores.sql_ledger import NO_LEDGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.dead_letter import Actor
    from redrive.stores.expressions import Values
    from redrive.stores.sql_ledger import Ledger

BUDGETS = {"owner": 256, "verdict": 64, "note": 8192, "runbook": 2048}
"""Characters of what may be said about a group. More is refused: nobody's words are cut."""

MERGED, TOOK_IN = "merged into", "took in"
SPLIT_OFF, GAVE_UP = "split off", "gave up"
ANNOTATED = "annotated"


def annotate(
    connection: Connection,
    group_id: str,
    said: Mapping[str, str | None],
    *,
    by: Actor,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> str:
    """Sets what `said` names, takes away what it names as None; the id of the group it was said about."""
    for name, text in said.items():
        if text is not None and len(text) > BUDGETS[name]:
            raise UsageError(f"{name} has {len(text)} characters", remedy=f"use at most {BUDGETS[name]}")
    group = _current(connection, group_id)
    changed = {name: text for name, text in said.items() if getattr(group, name) != text}
    if changed:
        connection.execute(update(groups).where(groups.c.id == group.id).values(changed))
        _tell(connection, _said(group, changed), by=by, now=now)
        before = json.dumps({name: getattr(group, name) for name in changed}, ensure_ascii=False)
        after = json.dumps(changed, ensure_ascii=False)
        deed = Deed(what=ANNOTATED, subject=Subject.of(GROUP, [group.id]), before=before, after=after)
        ledger.write(connection, deed, by=by, now=now)
    return str(group.id)


def _current(connection: Connection, group_id: str) -> Row[Any]:
    """The group, or the one it was merged into, locked against other changes."""
    wanted = _named(connection, group_id)
    while True:
        query = select(groups).where(groups.c.id == (wanted.merged_into or wanted.id))
        row = connection.execute(query.with_for_update(key_share=True)).one_or_none()
        if row is None:
            raise _unknown(group_id)
        if row.merged_into is None:
            return row
        wanted = row


class Merge(NamedTuple):
    target: str
    sources: tuple[str, ...]


def choose(connection: Connection, into: str, others: Iterable[str]) -> Merge:
    """Which groups a merge is about. Refused if one of them is the target, or part of another group."""
    target = _named(connection, into)
    goal = str(target.merged_into or target.id)
    sources = [_named(connection, other) for other in others]
    if not sources:
        raise UsageError("nothing to merge", remedy="name the groups that are to become part of the first one")
    for source in sources:
        if source.id == goal:
            raise Refused(f"group {goal} cannot be merged into itself", remedy="name two different groups")
        _check_free(source, goal)
    return Merge(goal, tuple(dict.fromkeys(str(source.id) for source in sources)))


def redirect(
    connection: Connection, source: str, target: str, *, by: Actor, now: datetime, ledger: Ledger = NO_LEDGER
) -> bool:
    """One more group sends its letters to the target: one that was merged into `source`, or at last that itself.
    False if nothing is left to be redirected.
    """
    wait_for_fold(connection)
    behind = select(groups.c.id).where(groups.c.merged_into == source).order_by(groups.c.id).limit(1)
    next_id = connection.scalar(behind) or source
    goal = _locked(connection, target, sharing=True)
    group = _locked(connection, next_id)
    if group.id == source:
        _check_free(group, target)
    if goal.merged_into is not None:
        raise Refused(f"group {target} was merged into another meanwhile", remedy="look again, then merge")
    if group.merged_into == target:
        return False
    connection.execute(update(groups).where(groups.c.id == group.id).values(merged_into=target))
    lines = [(group.id, MERGED, group.merged_into or "", target), (target, TOOK_IN, "", group.id)]
    if group.id == source:
        lines += _take_over(connection, goal, group)
    _tell(connection, lines, by=by, now=now)
    subject = Subject.of(GROUP, [group.id, target])
    deed = Deed(what=MERGED, subject=subject, before=group.merged_into or group.id, after=target)
    ledger.write(connection, deed, by=by, now=now)
    return True


def _take_over(connection: Connection, goal: Row[Any], group: Row[Any]) -> list[Line]:
    """The target was seen when the other was. It keeps what was said about it; where that is nothing, it takes
    over what was said about the other: `do not replay` must not be lost by a merge.
    """
    first, last = seen(connection, group.id)
    said = {name: getattr(group, name) for name in BUDGETS if getattr(goal, name) is None}
    taken = {name: text for name, text in said.items() if text is not None}
    values: Values = {
        "first_seen": earlier(groups.c.first_seen, first),
        "last_seen": later(groups.c.last_seen, last),
        **taken,
    }
    connection.execute(update(groups).where(groups.c.id == goal.id).values(values))
    return _said(goal, taken)


class Split(NamedTuple):
    whole: str
    part: str


def split_off(
    connection: Connection,
    group_id: str,
    fingerprint: str,
    *,
    by: Actor,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> Split:
    """Letters of this fingerprint go to its own group again. Nothing is done if that was done before, and Refused
    if it never was part of the group.
    """
    wait_for_fold(connection)
    whole = _named(connection, group_id)
    goal = str(whole.merged_into or whole.id)
    own = _locked(connection, str(_named(connection, fingerprint).id))
    _check_free(own, goal)
    if own.merged_into is None:
        _check_was_part(connection, own.id, goal)
        return Split(goal, own.id)
    connection.execute(update(groups).where(groups.c.id == own.id).values(merged_into=None))
    lines = [(own.id, SPLIT_OFF, goal, ""), (goal, GAVE_UP, own.id, "")]
    _tell(connection, lines, by=by, now=now)
    deed = Deed(what=SPLIT_OFF, subject=Subject.of(GROUP, [own.id, goal]), before=goal, after=own.id)
    ledger.write(connection, deed, by=by, now=now)
    return Split(goal, own.id)


def _check_was_part(connection: Connection, group_id: str, whole: str) -> None:
    told = (audit.c.letter_id == sql_audit.of_group(group_id), audit.c.what == SPLIT_OFF, audit.c.before == whole)
    if connection.scalar(select(audit.c.id).where(*told).limit(1)) is None:
        raise Refused(
            f"group {group_id} is not part of {whole}",
            remedy="`redrive groups show` lists what was merged into it",
        )


def _named(connection: Connection, group_id: str) -> Row[Any]:
    found = identify(connection, group_id)
    if found is None:
        raise _unknown(group_id)
    return found


def _locked(connection: Connection, group_id: str, *, sharing: bool = False) -> Row[Any]:
    """`sharing`: letters may be recorded into it meanwhile."""
    query = select(groups).where(groups.c.id == group_id).with_for_update(key_share=sharing)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise _unknown(group_id)
    return row


def _check_free(group: Row[Any], target: str) -> None:
    if group.merged_into not in {None, target}:
        raise Refused(
            f"group {group.id} is part of {group.merged_into}",
            remedy=f"name {group.merged_into} instead, or split {group.id} off it first",
        )


def _unknown(group_id: str) -> NotFound:
    return NotFound(f"no group {group_id}", remedy="`redrive groups` shows the ids")


Line = tuple[str, str, str, str]
"""Of a group's history: the group, what happened, before, after."""


def _said(group: Row[Any], changed: Mapping[str, str | None]) -> list[Line]:
    return [(group.id, name, getattr(group, name) or "", text or "") for name, text in changed.items()]


def _tell(connection: Connection, lines: Iterable[Line], *, by: Actor, now: datetime) -> None:
    told = [
        sql_audit.line(what, sql_audit.of_group(group_id), at=now, by=by, before=before, after=after)
        for group_id, what, before, after in lines
    ]
    sql_audit.write(connection, *told)
