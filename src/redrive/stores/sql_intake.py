"""Letters in bulk on PostgreSQL: what `sql_record` does for one, for hundreds in one transaction.

New messages, which is nearly all of them in an outage, go the short way: groups, letters, revisions, failures and
history, all in one go. What is on record as it is, is left so. What came back from a redrive, or is one more
delivery of what is on record, goes one by one as always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.clock import new_id
from redrive.dead_letter import Recorded
from redrive.stores import bulk, sql_failures, sql_groups, sql_on_record
from redrive.stores.private import columns_of
from redrive.stores.schema import audit, failures, letters, revisions
from redrive.stores.sql_failures import Of
from redrive.stores.sql_record import letter_row, record, recorded, sealed_original
from redrive.stores.sql_rows import identity_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from redrive.dead_letter import Entry
    from redrive.stores.expressions import Values
    from redrive.stores.private import Columns

    New = dict[str, tuple[str, Entry]]
    """By identity: the letter's id to be and its entry."""


def record_all(connection: Connection, entries: Sequence[Entry], now: datetime) -> list[tuple[str, Recorded]]:
    """One answer per entry, as `record` would give it to each of them, one after the other.

    If somebody else records one of the same messages at this very moment the transaction fails with a unique
    violation, and finds it on record when it is run again.
    """
    new = _unseen(connection, entries)
    known: dict[int, str] = {}
    if len(new) < len(entries):
        known = sql_on_record.repeats(connection, entries)
        sql_on_record.lock(connection, [entry for place, entry in enumerate(entries) if place not in known])
    if new:
        _insert(connection, new, now)
    answers: list[tuple[str, Recorded]] = []
    for place, entry in enumerate(entries):
        letter = new.pop(identity_key(entry.identity), None) if entry.ticket is None else None
        if letter is not None:
            answers.append((letter[0], Recorded.NEW))
        elif place in known:
            answers.append((known[place], Recorded.AGAIN))
        else:
            answers.append(record(connection, entry, now))
    return answers


def _unseen(connection: Connection, entries: Sequence[Entry]) -> New:
    """The first of each identity that is not on record."""
    first: dict[str, Entry] = {}
    for entry in entries:
        if entry.ticket is None and entry.lane is None:  # in a lane each has its place behind the others
            first.setdefault(identity_key(entry.identity), entry)
    there = bulk.known(connection, letters.c.identity, first) if first else set()
    return {key: (new_id(), entry) for key, entry in sorted(first.items()) if key not in there}


def _insert(connection: Connection, new: New, now: datetime) -> None:
    """T1 for each."""
    pairs = list(new.values())
    columns = {queue: columns_of(connection, queue) for queue in {entry.queue for _, entry in pairs}}
    groups = sql_groups.join(connection, [entry for _, entry in pairs])
    own = [(id_, entry, columns[entry.queue]) for id_, entry in pairs]
    bulk.insert_rows(
        connection,
        (letters, [letter_row(id_, entry, groups[entry.fingerprint.id], now, as_) for id_, entry, as_ in own]),
        (revisions, [sealed_original(connection, id_, entry) for id_, entry in pairs]),
        (failures, [row for each in own for row in _failures(connection, *each)]),
        (audit, [recorded(id_, entry, as_) for id_, entry, as_ in own]),
    )


def _failures(connection: Connection, letter_id: str, entry: Entry, columns: Columns) -> list[Values]:
    plain = sql_failures.rows(letter_id, 1, entry.failures, columns)
    return sql_failures.sealed(connection, Of(letter_id, entry.queue, entry.at), plain)
