"""The file of the embedded broker: one table, and every statement that touches it.

A message is one row for its whole life; `state` says what it waits for.

    send ──────────────> READY ──lease──> LEASED ──ack──> gone
    send with a delay ─> DELAYED ──due──lease──^  │
                            ^──────retry──────────┤   (the same row, in the retry queue)
                         READY <──release─────────┘
    A lease that ran out makes the row due again, still LEASED: that is how a redelivery is recognised.

1. READY rows are due whatever the clock says, so a clock that is set back hides nothing. Their `due_at` is their
   place in the order.
2. DELAYED and LEASED rows are due when the clock has passed `due_at`, never before.
3. Whoever leases a row writes a new random `receipt` into it. Every later change names id and receipt, so a
   holder whose lease went to somebody else changes nothing.

`state`, `due_at` and `receipt` always take the same number of bytes: SQLite then overwrites a row in place, and
a lease on a message of many megabytes writes one page, not the message.
"""

from __future__ import annotations

import json
import secrets
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from redrive.errors import ConfigurationError
from redrive.group_commit import configure_sqlite, make_private, open_sqlite
from redrive.transports.embedded_row import COLUMNS, Row

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from redrive.transports.embedded_lease import Lease

MEMORY = ":memory:"
READY, DELAYED, LEASED = 2, 3, 4  # 0 and 1 would take no byte, see above
NOBODY = 1 << 62
"""The receipt of a row that nobody holds; those of leases are below it, and as wide."""

_APPLICATION_ID = 0x52445256  # "RDRV": tells our file from other people's databases
_VERSION = 1
_CHUNKS = (64, 8, 1)

_SCHEMA = (
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, for it is part of the identity
        queue TEXT NOT NULL,                  -- where it lies: orders, orders_retry, orders_dlq
        state INTEGER NOT NULL,
        due_at INTEGER NOT NULL,              -- microseconds since 1970, as all times here
        receipt INTEGER NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 1,
        first_attempt_at INTEGER,
        home NOT NULL,                        -- the message's own queue
        message_id NOT NULL,
        source,
        sent_at INTEGER NOT NULL,
        key BLOB,
        headers BLOB NOT NULL,
        overlay BLOB,
        trail BLOB,
        properties BLOB,                      -- last in files of before there was one, see _add_what_is_new
        body BLOB
    )
    """,
    "CREATE INDEX messages_by_due ON messages (queue, state, due_at)",
    "CREATE TABLE broker (id TEXT NOT NULL)",
)
_COLUMNS_SENT = (
    "queue, state, due_at, receipt, trail, "
    "home, message_id, source, sent_at, key, headers, overlay, properties, body"
)
_PLACES = f"({', '.join('?' * (_COLUMNS_SENT.count(',') + 1))})"
_INSERT = {
    size: f"INSERT INTO messages ({_COLUMNS_SENT}) VALUES {', '.join([_PLACES] * size)}"  # noqa: S608  constants
    for size in _CHUNKS
}
_FIRST_READY = f"""
    SELECT {COLUMNS} FROM messages WHERE queue = ? AND state = {READY} ORDER BY due_at, id LIMIT ?
"""  # noqa: S608  constants only, here and below; every value is bound
_DUE_ELSEWHERE = f"""
    SELECT id, due_at FROM messages WHERE queue = ?2 AND state = {READY}
    UNION ALL SELECT id, due_at FROM messages WHERE queue = ?1 AND state = {DELAYED} AND due_at <= ?3
    UNION ALL SELECT id, due_at FROM messages WHERE queue = ?2 AND state = {DELAYED} AND due_at <= ?3
    UNION ALL SELECT id, due_at FROM messages WHERE queue = ?1 AND state = {LEASED} AND due_at <= ?3
    UNION ALL SELECT id, due_at FROM messages WHERE queue = ?2 AND state = {LEASED} AND due_at <= ?3
    ORDER BY due_at, id LIMIT ?4
"""  # noqa: S608
_BY_ID = f"SELECT {COLUMNS} FROM messages WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608
_LEASE = f"""
    UPDATE messages SET state = {LEASED}, due_at = ?, receipt = ? + id
    WHERE id IN (SELECT value FROM json_each(?))
"""  # noqa: S608
_HELD = f"""
    id IN (SELECT value FROM json_each(?)) AND receipt IN (SELECT value FROM json_each(?)) AND state = {LEASED}
"""  # noqa: S608
_REMOVE = f"DELETE FROM messages WHERE {_HELD}"  # noqa: S608
_KEPT = f"SELECT receipt FROM messages WHERE {_HELD}"  # noqa: S608
_RENEW = f"UPDATE messages SET due_at = ? WHERE {_HELD}"  # noqa: S608
_RELEASE = f"""
    UPDATE messages SET state = {READY}, due_at = ?, receipt = {NOBODY}
    WHERE id = ? AND receipt = ? AND state = {LEASED}
"""  # noqa: S608
_RETRY = f"""
    UPDATE messages SET queue = ?, state = ?, due_at = ?, receipt = {NOBODY}, attempt = attempt + 1,
        overlay = ?, trail = ?, first_attempt_at = coalesce(first_attempt_at, ?)
    WHERE id = ? AND receipt = ? AND state = {LEASED}
"""  # noqa: S608
_PEEK = f"""
    SELECT EXISTS (SELECT 1 FROM messages WHERE queue = ?1 AND state = {READY})
        OR EXISTS (SELECT 1 FROM messages WHERE queue = ?2 AND state = {READY}),
        (SELECT min(due_at) FROM messages WHERE queue = ?1 AND state = {DELAYED}),
        (SELECT min(due_at) FROM messages WHERE queue = ?2 AND state = {DELAYED}),
        (SELECT min(due_at) FROM messages WHERE queue = ?1 AND state = {LEASED}),
        (SELECT min(due_at) FROM messages WHERE queue = ?2 AND state = {LEASED})
"""  # noqa: S608
_COUNT = "SELECT queue, state, count(*), sum(due_at <= ?) FROM messages GROUP BY queue, state"


class Place(NamedTuple):
    """Where a queue's messages lie: in itself and in its retry queue."""

    queue: str
    retry: str


class Fetched(NamedTuple):
    rows: list[Row]
    token: int
    """Added to a row's id it is the row's receipt: one random number per lease, one receipt per row."""
    broker: str


class Outlook(NamedTuple):
    due: bool
    next_due: int | None
    """When the next delayed message will be due."""


class MessageTable:
    """One connection to the file. Every method is one step of a transaction that the caller begins and ends."""

    def __init__(self, connection: sqlite3.Connection, broker: str) -> None:
        self.connection = connection
        self.broker = broker

    @classmethod
    def open(cls, path: str) -> MessageTable:
        """The table, made if the file is new. ConfigurationError: the file is not ours, or from the future."""
        if path != MEMORY:
            make_private(path)  # the folder's other users need not read the messages
        connection = open_sqlite(path)
        try:
            _check(connection, path)
            configure_sqlite(connection)
            broker = _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return cls(connection, broker)

    def control(self, statement: str) -> None:
        self.connection.execute(statement)

    def close(self) -> None:
        self.connection.close()

    def insert(self, rows: list[tuple[Any, ...]]) -> Sequence[None]:
        start = 0
        for size in _CHUNKS:
            while len(rows) - start >= size:
                self.connection.execute(_INSERT[size], tuple(chain.from_iterable(rows[start : start + size])))
                start += size
        return [None] * len(rows)

    def lease(self, place: Place, *, now: int, until: int, limit: int) -> Fetched:
        """Up to `limit` due rows, in due order, held until then."""
        rows = self._due(place, now, limit)
        token = (1 << 61) + secrets.randbits(60)
        if rows:
            self.connection.execute(_LEASE, (until, token, _listed(row.id for row in rows)))
        return Fetched(rows, token, self.broker)

    def _due(self, place: Place, now: int, limit: int) -> list[Row]:
        # Nearly everything is in the first of six ranges of the index, so that one is read without a detour.
        rows = list(map(Row._make, self.connection.execute(_FIRST_READY, (place.queue, limit))))
        elsewhere = self.connection.execute(_DUE_ELSEWHERE, (*place, now, limit)).fetchall()
        if not elsewhere:
            return rows
        found = self.connection.execute(_BY_ID, (_listed(row_id for row_id, _ in elsewhere),))
        rows.extend(map(Row._make, found))
        rows.sort(key=_by_due)
        return rows[:limit]

    def remove(self, leases: list[Lease]) -> Sequence[bool]:
        """Whether each was still held and is gone now."""
        removed = self.connection.execute(_REMOVE, _pairs(leases)).rowcount
        if removed == len(leases):
            return [True] * removed
        if len(leases) == 1:
            return [False]
        raise OneByOne

    def put_off(
        self, lease: Lease, *, queue: str, state: int, due_at: int, overlay: bytes | None, trail: bytes
    ) -> bool:
        """Move to the retry queue; whether it was still held."""
        values = (queue, state, due_at, overlay, trail, lease.leased_at, lease.row_id, lease.receipt)
        return self.connection.execute(_RETRY, values).rowcount == 1

    def release(self, leases: Iterable[Lease]) -> int:
        """How many were still held; they are due again, in their old place."""
        values = [(lease.due_at, lease.row_id, lease.receipt) for lease in leases]
        return self.connection.executemany(_RELEASE, values).rowcount

    def renew(self, leases: list[Lease], until: int) -> set[int]:
        """The receipts of those still held; they are held until then."""
        pairs = _pairs(leases)
        self.connection.execute(_RENEW, (until, *pairs))
        return {receipt for (receipt,) in self.connection.execute(_KEPT, pairs)}

    def peek(self, place: Place, now: int) -> Outlook:
        ready, *times = self.connection.execute(_PEEK, place).fetchone()
        delayed = [time for time in times[:2] if time is not None]
        due = bool(ready) or any(time is not None and time <= now for time in times)
        return Outlook(due, min(delayed, default=None))

    def count(self, now: int) -> list[tuple[str, int, int, int]]:
        """(queue, state, rows, rows whose time has passed)."""
        return self.connection.execute(_COUNT, (now,)).fetchall()


class OneByOne(Exception):
    """Some of many leases were lost; which ones is found by trying each alone."""


def _by_due(row: Row) -> tuple[int, int]:
    return row.due_at, row.id


def _listed(numbers: Iterable[int]) -> str:
    return json.dumps(list(numbers))


def _pairs(leases: list[Lease]) -> tuple[str, str]:
    # No two leases share a receipt, so a row matches both lists only by its own pair.
    return _listed(lease.row_id for lease in leases), _listed(lease.receipt for lease in leases)


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Refuses what is neither ours nor new, before anything is written."""
    connection.execute("BEGIN")  # one look at the file: another process may be making it right now
    ours = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    connection.execute("COMMIT")
    if ours != _APPLICATION_ID and not empty:
        raise ConfigurationError(
            f"{path} is a database of something else", remedy="give the embedded broker a file of its own"
        )
    if version > _VERSION:
        raise ConfigurationError(
            f"{path} has format {version}, this version of redrive reads up to {_VERSION}",
            remedy="upgrade redrive, or use another file",
        )


def _prepare(connection: sqlite3.Connection) -> str:
    """Makes the tables unless another process was quicker, and gives the broker's id."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO broker VALUES (?)", (secrets.token_hex(8),))
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    _add_what_is_new(connection)
    connection.execute("COMMIT")
    broker: str = connection.execute("SELECT id FROM broker").fetchone()[0]
    return broker


def _add_what_is_new(connection: sqlite3.Connection) -> None:
    """Brings a file of an earlier release up to date. Its version stays: whoever does not know a column that may
    be empty works beside those who do.
    """
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(messages)")}
    if "properties" not in columns:
        connection.execute("ALTER TABLE messages ADD COLUMN properties BLOB")
