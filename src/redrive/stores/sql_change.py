"""What a person or a rule does to letters: T11 to T15, T17, T19 and the purge, each with its audit line, and all
of one call with one row of the ledger.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from redrive.dead_letter import BY_HAND, TRANSITIONS, Actor, Status, Transition, Unreadable, Version
from redrive.errors import NotFound, Refused, TransitionRefused, UsageError
from redrive.ledger import LETTERS, Deed, Subject
from redrive.message import cut
from redrive.stores import sql_audit, sql_groups
from redrive.stores.expressions import lots
from redrive.stores.schema import letters, redrives, revisions
from redrive.stores.sealing import sealing_of
from redrive.stores.sql_guard import HOW_BUDGET, moving, target
from redrive.stores.sql_ledger import NO_LEDGER
from redrive.stores.sql_retention import VERSION, version_of
from redrive.stores.sql_rows import content, held_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.message import Message
    from redrive.stores.expressions import Values
    from redrive.stores.sql_ledger import Ledger

Unchanged = dict[str, Status | None]
"""Letters that stayed as they were, with their status; None: there is no such letter."""

Before = dict[str, Status]
"""Letters that were changed, with their status before."""

EXPIRED = "expired"
ASSUMED = "assumed"


def change(
    connection: Connection,
    letter_ids: Sequence[str],
    transition: Transition,
    *,
    by: Actor,
    how: str,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> Unchanged:
    changed, unchanged = move(connection, letter_ids, transition, by=by, how=how, now=now)
    tell(connection, ledger, transition, changed, by=by, now=now)
    return unchanged


def move(
    connection: Connection,
    letter_ids: Sequence[str],
    transition: Transition,
    *,
    by: Actor,
    how: str,
    now: datetime,
) -> tuple[Before, Unchanged]:
    """All of `change` but the ledger's row, which is for the end of the transaction."""
    if transition not in BY_HAND:
        known = ", ".join(sorted(each.name for each in BY_HAND))
        raise UsageError(f"{transition.name} is no change made by hand", remedy=f"use one of: {known}")
    moved: Before = {}
    unchanged: Unchanged = {}
    for lot in lots(sorted(letter_ids)):  # everybody locks in the order of ids
        before = _statuses(connection, lot)
        statement = moving(transition, now, letters.c.id.in_(lot)).values(_values(transition, how))
        changed = set(connection.scalars(statement.returning(letters.c.id)))
        if transition is Transition.RESOLVE:
            sent = {each for each in changed if before[each] is Status.REDRIVEN}
            _close_redrives(connection, sent, how, now)
        sql_audit.write(connection, *_lines(transition, changed, before, by=by, now=now))
        moved |= {each: before[each] for each in changed}
        unchanged |= {each: before.get(each) for each in lot if each not in changed}
    return moved, unchanged


def tell(
    connection: Connection, ledger: Ledger, transition: Transition, changed: Before, *, by: Actor, now: datetime
) -> None:
    """One row of the ledger about letters that were changed together, if there are any."""
    if not changed:
        return
    numbers = Counter(map(str, changed.values()))
    before = ", ".join(f"{status} {number}" for status, number in sorted(numbers.items()))
    goal = TRANSITIONS[transition].target
    deed = Deed(
        what=sql_audit.HAPPENED[transition],
        subject=Subject.of(LETTERS, changed),
        before=before if len(numbers) > 1 else next(iter(numbers)),
        after="" if goal is None else str(goal),
    )
    ledger.write(connection, deed, by=by, now=now)


def _values(transition: Transition, how: str) -> Values:
    if transition is Transition.EXPIRE:
        return {"how": EXPIRED}
    if target(transition) is not Status.PENDING:
        return {"how": cut(how, HOW_BUDGET)}
    return {"how": None, "refusals": 0}  # a person has looked: it may be redriven like a new one


def _close_redrives(connection: Connection, letter_ids: set[str], how: str, now: datetime) -> None:
    """Somebody has decided what became of them; one that comes back all the same is known as that then."""
    outcome = ASSUMED if how == ASSUMED else sql_audit.HAPPENED[Transition.RESOLVE]
    if letter_ids:
        current = select(letters.c.redrive_id).where(letters.c.id.in_(sorted(letter_ids)))
        undecided = update(redrives).where(redrives.c.redrive_id.in_(current), redrives.c.outcome.is_(None))
        connection.execute(undecided.values(outcome=outcome, outcome_at=now))


def purge(
    connection: Connection,
    which: Sequence[str | Version],
    *,
    by: Actor,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> Unchanged:
    rule = TRANSITIONS[Transition.PURGE]
    seen = {each.id: each for each in which if isinstance(each, Version)}
    purged: Before = {}
    unchanged: Unchanged = {}
    for lot in lots(sorted(each.id if isinstance(each, Version) else each for each in which)):
        before = _statuses(connection, lot)  # they are locked now: what is compared is what is deleted
        same = _unchanged(connection, lot, seen)
        statement = delete(letters).where(letters.c.id.in_(same), letters.c.status.in_(rule.sources))
        rows = connection.execute(statement.returning(letters.c.id, letters.c.group_id)).all()
        sql_groups.leave(connection, {row.group_id for row in rows})
        gone = {row.id for row in rows}
        sql_audit.write(connection, *_lines(Transition.PURGE, gone, before, by=by, now=now))
        purged |= {each: before[each] for each in gone}
        unchanged |= {each: before.get(each) for each in lot if each not in gone}
    tell(connection, ledger, Transition.PURGE, purged, by=by, now=now)
    return unchanged


def revise(
    connection: Connection,
    letter_id: str,
    message: Message,
    *,
    base: int,
    by: Actor,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> int:
    columns = (letters.c.status, letters.c.revision, letters.c.queue, letters.c.created_at)
    letter = connection.execute(select(*columns).where(letters.c.id == letter_id).with_for_update()).one_or_none()
    if letter is None:
        raise NotFound(f"no letter {letter_id}", remedy="`redrive list` shows the ids")
    number = base + 1
    new = {"letter_id": letter_id, "number": number, **sql_audit.signed(by), **content(message)}
    if letter.revision == number and _is_repeated(connection, new):
        return number
    new = sealing_of(connection).revision(new, queue=letter.queue, created_at=letter.created_at)
    statement = moving(Transition.EDIT, now, letters.c.id == letter_id, letters.c.revision == base)
    if connection.execute(statement.values(revision=number)).rowcount != 1:
        raise _why_not(letter_id, Status(letter.status), letter.revision)
    connection.execute(revisions.insert(), new | {"at": now})
    what, before, after = sql_audit.HAPPENED[Transition.EDIT], f"revision {base}", f"revision {number}"
    sql_audit.write(connection, sql_audit.line(what, letter_id, at=now, by=by, before=before, after=after))
    deed = Deed(what=what, subject=Subject.of(LETTERS, [letter_id]), before=before, after=after)
    ledger.write(connection, deed, by=by, now=now)
    return number


def _is_repeated(connection: Connection, new: Values) -> bool:
    """Whether the current revision is this very one: the caller asks again because it got no answer."""
    key = (revisions.c.letter_id == new["letter_id"], revisions.c.number == new["number"])
    kept = connection.execute(select(revisions).where(*key)).one()
    held = held_by(kept, sealing_of(connection))
    return (
        not isinstance(held, Unreadable) and {"by": kept.by, "reason": kept.reason, **held}.items() <= new.items()
    )


def _why_not(letter_id: str, status: Status, revision: int) -> Refused:
    if status not in TRANSITIONS[Transition.EDIT].sources:
        return TransitionRefused(letter_id, Transition.EDIT, status)
    return Refused(
        f"letter {letter_id} was edited meanwhile: it is at revision {revision}",
        remedy="look at the current revision and edit that one",
    )


def _unchanged(connection: Connection, letter_ids: list[str], seen: Mapping[str, Version]) -> list[str]:
    """Those that are as they were seen, and those of which nobody says how they were seen."""
    guarded = [each for each in letter_ids if each in seen]
    if not guarded:
        return letter_ids
    rows = connection.execute(select(*VERSION).where(letters.c.id.in_(guarded)))
    now = {row.id: version_of(row) for row in rows}
    return [each for each in letter_ids if each not in seen or now.get(each) == seen[each]]


def _statuses(connection: Connection, letter_ids: list[str]) -> dict[str, Status]:
    query = select(letters.c.id, letters.c.status).where(letters.c.id.in_(letter_ids))
    rows = connection.execute(query.order_by(letters.c.id).with_for_update())
    return {row.id: Status(row.status) for row in rows}


def _lines(
    transition: Transition, changed: set[str], before: dict[str, Status], *, by: Actor, now: datetime
) -> list[Values]:
    what, rule = sql_audit.HAPPENED[transition], TRANSITIONS[transition]
    after = "" if rule.target is None else str(rule.target)
    return [
        sql_audit.line(what, each, at=now, by=by, before=str(before[each]), after=after)
        for each in sorted(changed)
    ]
