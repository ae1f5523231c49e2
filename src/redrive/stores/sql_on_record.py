"""What of a batch is on record already, on PostgreSQL: found out, or locked, for all entries at once.

A spool that is replayed a second time, or a batch whose COMMIT had an unknown end, brings hundreds of entries that
change nothing. One by one they would take longer than it took to record them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, Text, any_, bindparam, or_, select

from redrive.stores.columns import escape
from redrive.stores.schema import failures, letters
from redrive.stores.sql_failures import attempt_number
from redrive.stores.sql_rows import identity_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from redrive.dead_letter import Entry

_KEYS, _IDS = (any_(bindparam(name, type_=ARRAY(Text))) for name in ("keys", "ids"))
_known = select(letters.c.identity, letters.c.id, letters.c.delivered_at).where(letters.c.identity == _KEYS)
_told = select(failures.c.letter_id, failures.c.attempt, failures.c.at).where(
    failures.c.letter_id == _KEYS, failures.c.generation == 1
)
_locked = (
    select(letters.c.id)
    .where(or_(letters.c.identity == _KEYS, letters.c.id == _IDS))
    .order_by(letters.c.id)
    .with_for_update()
)


def repeats(connection: Connection, entries: Sequence[Entry]) -> dict[int, str]:
    """By place: the letters of those that `sql_record` would find counted, with every failure told, and leave as
    they are.
    """
    wanted = {
        place: identity_key(entry.identity)
        for place, entry in enumerate(entries)
        if entry.ticket is None and entry.quarantine is None
    }
    known: dict[str, Any] = {row.identity: row for row in connection.execute(_known, _keys(wanted.values()))}
    told = _tell(connection, known) if known else {}
    return {
        place: known[key].id
        for place, key in wanted.items()
        if key in known and _is_repeat(entries[place], known[key], told[known[key].id])
    }


def lock(connection: Connection, entries: Sequence[Entry]) -> None:
    """The letters that these will be added to, in the order of their ids, as everybody locks letters. One after
    the other as they come, two batches would wait for each other.
    """
    keys = [escape(identity_key(entry.identity)) for entry in entries if entry.ticket is None]
    ids = [escape(entry.ticket.letter_id) for entry in entries if entry.ticket is not None]
    connection.execute(_locked, {"keys": keys, "ids": ids})


def _keys(values: Iterable[str]) -> dict[str, list[str]]:
    return {"keys": [escape(each) for each in values]}


def _tell(connection: Connection, known: dict[str, Any]) -> dict[str, dict[int, Any]]:
    """By letter: when each attempt of its first life was."""
    told: dict[str, dict[int, Any]] = defaultdict(dict)
    for letter_id, attempt, at in connection.execute(_told, _keys(row.id for row in known.values())):
        told[letter_id][attempt] = at
    return told


def _is_repeat(entry: Entry, known: Any, told: dict[int, Any]) -> bool:
    last = entry.failures[-1]
    counted = known.delivered_at == entry.at or told.get(attempt_number(last)) == last.at
    return counted and all(attempt_number(each) in told for each in entry.failures)
