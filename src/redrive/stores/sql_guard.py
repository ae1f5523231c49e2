"""The one way a letter's status changes: an UPDATE guarded by the table of transitions, whose rows are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from redrive.dead_letter import TRANSITIONS, Transition
from redrive.message import cut
from redrive.stores import sql_audit
from redrive.stores.expressions import later, one_of
from redrive.stores.schema import letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Update

    from redrive.dead_letter import Actor, Status

HOW_BUDGET = 512


def hold(connection: Connection, letter_ids: Sequence[str]) -> None:
    """Locks the letters until the transaction ends, in the order in which everybody locks them.

    A statement of its own: one that locks and joins sees a letter as it is when its turn has come, but the rows
    joined to it as they were before.
    """
    if connection.dialect.name != "sqlite":  # where there is one writer at a time
        mine = select(letters.c.id).where(one_of(letters.c.id, letter_ids, connection.dialect.name))
        connection.execute(mine.order_by(letters.c.id).with_for_update())


def moving(transition: Transition, now: datetime, *letter: ColumnElement[bool]) -> Update:
    """Moves the letters that `letter` names and whose status allows it; the caller adds values and counts."""
    rule = TRANSITIONS[transition]
    statement = update(letters).where(*letter, letters.c.status.in_(rule.sources))
    statement = statement.values(changed_at=later(letters.c.changed_at, now))
    return statement if rule.target is None else statement.values(status=str(rule.target))


def moving_held(
    connection: Connection, transition: Transition, now: datetime, letter_ids: Sequence[str]
) -> Update:
    """As `moving`, for letters that are locked and whose status is known. They are found by their ids alone: a
    server would else weigh to go by the index of statuses, through whatever has been in one since it was cleaned.
    """
    rule = TRANSITIONS[transition]
    mine = one_of(letters.c.id, letter_ids, connection.dialect.name)
    allowed = letters.c.status.concat("").in_(rule.sources)
    statement = update(letters).where(mine, allowed).values(changed_at=later(letters.c.changed_at, now))
    return statement if rule.target is None else statement.values(status=str(rule.target))


def target(transition: Transition) -> Status:
    found = TRANSITIONS[transition].target
    if found is None:
        raise ValueError(f"{transition.name} has no status of its own")
    return found


def quarantine(
    connection: Connection, letter_id: str, *, before: str, cause: str, by: Actor, now: datetime
) -> bool:
    """T14, where the letter's status allows it. `before` is that status, read and locked."""
    statement = moving(Transition.QUARANTINE, now, letters.c.id == letter_id)
    if connection.execute(statement.values(how=cut(cause, HOW_BUDGET))).rowcount != 1:
        return False
    what, after = sql_audit.HAPPENED[Transition.QUARANTINE], str(target(Transition.QUARANTINE))
    sql_audit.write(connection, sql_audit.line(what, letter_id, at=now, by=by, before=before, after=after))
    return True
