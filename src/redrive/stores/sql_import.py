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
from redrive.stores.sealing import NO_KEY, sealing_of
from redrive.stores.sql_erasing import tombstones
from redrive.stores.sql_failures import Of
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
    wanted = {letter.id: letter for letter in _not_erased(connection, whole)}
    if not wanted:
        return set()
    groups = sql_groups.join(connection, [_entry(letter) for letter in wanted.values()])
    columns = {queue: columns_of(connection, queue) for queue in {letter.queue for letter in whole}}
    rows = [
        _row(letter, groups[letter.group_id], now, columns[letter.queue])
        for letter in sorted(wanted.values(), key=lambda each: each.id)
    ]
    new = set(connection.scalars(_new_letter(connection.dialect.name), rows))
    come = [letter for letter in wanted.values() if letter.id in new]
    if come:
        held = [row for letter in come for row in _revisions(connection, letter)]
        told = [row for letter in come for row in _failures(connection, letter, columns[letter.queue])]
        # Rows that cannot be read name the key that they had, and all rows of a statement have the same columns.
        connection.execute(revisions.insert(), [{"data_key": None, **row} for row in held])
        connection.execute(failures.insert(), [{"data_key": None, **row} for row in told])
        _tell(connection, come, by=by, now=now)
    sql_groups.leave(connection, set(groups.values()))  # those that were made for letters that are here already
    if new:
        deed = Deed(what=sql_audit.IMPORTED, subject=Subject.of(LETTERS, new))
        ledger.write(connection, deed, by=by, now=now)
    return new


def _not_erased(connection: Connection, whole: Sequence[DeadLetter]) -> list[DeadLetter]:
    """What was erased stays so, whichever archive or export it comes from: it is as if it were here."""
    erased = tombstones(connection, [letter.id for letter in whole])
    return [letter for letter in whole if letter.id not in erased]


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


def _revisions(connection: Connection, letter: DeadLetter) -> Iterator[Values]:
    sealing = sealing_of(connection)
    for each in letter.revisions:
        signed = {"by": each.by, "reason": each.reason, "at": each.at}
        held = first_content(each.message) if each.number == 0 else {**content(each.message), "properties": None}
        plain = {"letter_id": letter.id, "number": each.number, **signed, **held}
        if each.unreadable is not None:  # it stays so: nobody may take it for an empty message
            yield plain | {"data_key": NO_KEY}
        else:
            yield sealing.revision(plain, queue=letter.queue, created_at=letter.created_at)


def _failures(connection: Connection, letter: DeadLetter, columns: Columns) -> Iterator[Values]:
    own = Of(letter.id, letter.queue, letter.created_at)
    for generation, failure in zip(letter.generations, letter.failures, strict=True):
        yield from sql_failures.sealed(
            connection, own, sql_failures.rows(letter.id, generation, [failure], columns)
        )


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
