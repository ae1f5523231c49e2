"""Whole letters come in: from an archive, or from another store's export."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import select

from redrive.dead_letter import Entry, Fingerprint, Status
from redrive.fingerprint import fingerprint
from redrive.ledger import LETTERS, Deed, Subject
from redrive.stores import sql_audit, sql_failures, sql_groups
from redrive.stores.expressions import insert_into
from redrive.stores.private import columns_of
from redrive.stores.schema import audit, failures, letters, revisions
from redrive.stores.sql_ledger import NO_LEDGER
from redrive.stores.sql_record import letter_row
from redrive.stores.sql_rows import content, first_content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection
    from sqlalchemy.dialects.sqlite import Insert

    from redrive.dead_letter import Actor, DeadLetter
    from redrive.stores.expressions import Values
    from redrive.stores.private import Columns
    from redrive.stores.sql_ledger import Ledger

_KEPT = (
    "how",
    "kind",
    "type",
    "text",
    "generation",
    "revision",
    "deliveries",
    "attempts",
    "first_attempt_at",
    "last_attempt_at",
    "changed_at",
    "lane",
)
"""As the letter says: its last failure need not be the one that it is known by."""


def restore(
    connection: Connection,
    whole: Sequence[DeadLetter],
    *,
    by: Actor,
    now: datetime,
    ledger: Ledger = NO_LEDGER,
) -> set[str]:
    wanted = {letter.id: letter for letter in whole}
    groups = sql_groups.join(connection, [_entry(letter) for letter in wanted.values()])
    columns = {queue: columns_of(connection, queue) for queue in {letter.queue for letter in whole}}
    rows = [
        _row(letter, groups[letter.group_id], now, columns[letter.queue])
        for letter in sorted(wanted.values(), key=lambda each: each.id)
    ]
    new = set(connection.scalars(_new_letter(connection.dialect.name), rows))
    come = [letter for letter in wanted.values() if letter.id in new]
    if come:
        connection.execute(revisions.insert(), [row for letter in come for row in _revisions(letter)])
        told = (_failures(letter, columns[letter.queue]) for letter in come)
        connection.execute(failures.insert(), [row for own in told for row in own])
        _tell(connection, come, by=by, now=now)
    sql_groups.leave(connection, set(groups.values()))  # those that were made for letters that are here already
    if new:
        deed = Deed(what=sql_audit.IMPORTED, subject=Subject.of(LETTERS, new))
        ledger.write(connection, deed, by=by, now=now)
    return new


@cache
def _new_letter(dialect: str) -> Insert:
    # Whichever key is taken, its id's or its identity's, the letter is here.
    insert = insert_into(letters, dialect).on_conflict_do_nothing()
    return insert.returning(letters.c.id)  # type: ignore[return-value]  # executes as the same statement


def _entry(letter: DeadLetter) -> Entry:
    """As if it were recorded now, with the message as it came; `_row` puts its later life over it."""
    title = fingerprint(letter.failures[-1], queue=letter.queue).title
    return Entry(
        identity=letter.identity,
        message=letter.revisions[0].message if letter.revisions else letter.message,
        queue=letter.queue,
        handler=letter.handler,
        failures=letter.failures,
        fingerprint=Fingerprint(letter.group_id, title),
        at=letter.created_at,
        first_attempt_at=letter.first_attempt_at,
    )


def _row(letter: DeadLetter, group_id: str, now: datetime, columns: Columns) -> Values:
    row = letter_row(letter.id, _entry(letter), group_id, now, columns)
    kept = {name: getattr(letter, name) for name in _KEPT}
    kept |= {"text": columns.text(letter.text), "how": columns.optional(letter.how)}
    # Every claim wrote a line of history, so the fence does not fall behind one that was given out.
    later = {"fence": len(letter.history), "delivered_at": letter.last_attempt_at}
    shown = {"status": str(_status(letter)), "short_type": letter.type.rpartition(".")[2]}
    return row | kept | later | shown


def _status(letter: DeadLetter) -> Status:
    return Status.PENDING if letter.status is Status.REDRIVING else letter.status


def _revisions(letter: DeadLetter) -> Iterator[Values]:
    for each in letter.revisions:
        signed = {"by": each.by, "reason": each.reason, "at": each.at}
        held = first_content(each.message) if each.number == 0 else {**content(each.message), "properties": None}
        yield {"letter_id": letter.id, "number": each.number, **signed, **held}


def _failures(letter: DeadLetter, columns: Columns) -> Iterator[Values]:
    for generation, failure in zip(letter.generations, letter.failures, strict=True):
        yield from sql_failures.rows(letter.id, generation, [failure], columns)


def _tell(connection: Connection, come: Sequence[DeadLetter], *, by: Actor, now: datetime) -> None:
    """Their history, unless it is here: the lines of a purged letter stay. Then how they came."""
    ids = [letter.id for letter in come]
    known = set(connection.scalars(select(audit.c.letter_id).where(audit.c.letter_id.in_(ids)).distinct()))
    lines = [line for letter in come if letter.id not in known for line in _history(letter)]
    for letter in come:
        before = str(letter.status) if letter.status is not _status(letter) else ""
        after = str(_status(letter))
        lines.append(sql_audit.line(sql_audit.IMPORTED, letter.id, at=now, by=by, before=before, after=after))
    sql_audit.write(connection, *lines)


def _history(letter: DeadLetter) -> Iterator[Values]:
    # As they are: what is cut bears a mark that says so, and would be cut again.
    return ({"letter_id": letter.id, **msgspec.structs.asdict(each)} for each in letter.history)
