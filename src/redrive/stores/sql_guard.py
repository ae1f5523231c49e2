"""The one way a letter's status changes: an UPDATE guarded by the table of transitions, whose rows are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, true, update

from redrive.dead_letter import TRANSITIONS, Transition
from redrive.message import cut
from redrive.stores import sql_audit
from redrive.stores.columns import escape_all
from redrive.stores.expressions import any_of, later, one_of
from redrive.stores.schema import letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Update

    from redrive.dead_letter import Actor, Status
    from redrive.stores.expressions import Values

HOW_BUDGET = 512


def hold(connection: Connection, letter_ids: Sequence[str]) -> None:
    """Locks the letters until the transaction ends, in the order in which everybody locks them.

    A statement of its own: one that locks and joins sees a letter as it is when its turn has come, but the rows
    joined to it as they were before.
    """
    if connection.dialect.name != "sqlite":  # where there is one writer at a time
        connection.execute(_HOLD, {"ids": escape_all(letter_ids)})


_locked = select(letters.c.id).where(any_of(letters.c.id)).order_by(letters.c.id).with_for_update().subquery()
# Who locks them knows their ids. And what follows is found by ids: a server that has planned it for a table that
# was nearly empty would else read all of it for every window of a run that fills it.
_HOLD = select(func.count(), func.set_config("enable_seqscan", "off", true())).select_from(_locked)


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
    return moving_found(transition, now, one_of(letters.c.id, letter_ids, connection.dialect.name))


def moving_found(
    transition: Transition, now: datetime | ColumnElement[datetime], mine: ColumnElement[bool]
) -> Update:
    """As `moving_held`, found by that condition on their ids."""
    rule = TRANSITIONS[transition]
    allowed = letters.c.status.concat("").in_(rule.sources)
    statement = update(letters).where(mine, allowed).values(changed_at=later(letters.c.changed_at, now))
    return statement if rule.target is None else statement.values(status=str(rule.target))


SETTLED: dict[Transition, dict[str, Any]] = {
    Transition.SENT: {"refusals": 0},  # the redrive stays the one that decides
    Transition.REFUSED: {"refusals": letters.c.refusals + 1, "redrive_id": None},
    Transition.UNCLAIM: {"redrive_id": None},
}
"""How a claim may end by whoever has it, and what that changes of the letter."""


def told_of(outcome: Transition, now: datetime | ColumnElement[datetime]) -> Values:
    """What the row of a redrive says of it, and when, if it ends by this."""
    if outcome is Transition.SENT:
        return {"sent_at": now}
    return {"outcome": sql_audit.HAPPENED[outcome], "outcome_at": now}


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
