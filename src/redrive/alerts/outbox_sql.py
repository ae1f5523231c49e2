"""The statements of the outbox, each a plain function of a connection inside one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from redrive.alerts.alert import Alert, State, read, written
from redrive.clock import new_id

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from datetime import datetime

MERGED_RULE = "merged"
"""The rule that a message about many alerts names."""

KEPT_AS_TOLD = 10_000
"""Keys of one channel that are known to have been told, and alerts that were merged; beyond them the oldest are
forgotten.
"""

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS alerts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    dedup_key TEXT NOT NULL,
    alert_id TEXT NOT NULL,
    alert BLOB NOT NULL,
    merged INTEGER NOT NULL DEFAULT 0,
    undelivered INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT ''
)
""",
    "CREATE INDEX IF NOT EXISTS alerts_due ON alerts (channel, undelivered, due)",
    "CREATE INDEX IF NOT EXISTS alerts_key ON alerts (channel, dedup_key)",
    """
CREATE TABLE IF NOT EXISTS told (
    channel TEXT NOT NULL,
    dedup_key TEXT NOT NULL,
    alert_id TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (channel, dedup_key)
)
""",
    """
CREATE TABLE IF NOT EXISTS counters (
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (channel, name)
)
""",
    """
CREATE TABLE IF NOT EXISTS merged (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    alert_id TEXT NOT NULL,
    UNIQUE (channel, alert_id)
)
""",
    "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, note BLOB NOT NULL)",
)

_ROW = "number, channel, alert, due, attempts, reason"
_OVER = "(due <= :now OR due > :now + 3600)"
"""Nothing is ever due so late: a clock that was put back holds nobody up."""

_IDLE = f"undelivered = 0 AND (held = 0 OR {_OVER})"
"""Nobody is sending it: held is kept by whoever died while sending, until its time is over."""

_KNOWN = """
SELECT 1 FROM alerts WHERE channel = :channel AND dedup_key = :key AND alert_id = :id
UNION ALL SELECT 1 FROM told WHERE channel = :channel AND dedup_key = :key AND alert_id = :id
UNION ALL SELECT 1 FROM merged WHERE channel = :channel AND alert_id = :id
"""
_NEXT = """
FROM alerts AS mine WHERE channel = :channel AND undelivered = 0 AND NOT EXISTS (
    SELECT 1 FROM alerts AS before
    WHERE before.channel = mine.channel AND before.dedup_key = mine.dedup_key
    AND before.undelivered = 0 AND before.number < mine.number
)
"""
"""What may be sent when it is due: of one key, one after the other."""

_CLAIMABLE = f"SELECT {_ROW} {_NEXT} AND {_OVER} ORDER BY due, number LIMIT 1"
_NEXT_DUE = f"SELECT min(due) {_NEXT}"
_COUNT = """
INSERT INTO counters (channel, name, value) VALUES (?, ?, ?)
ON CONFLICT (channel, name) DO UPDATE SET value = value + excluded.value
"""
_FORGET_TOLD, _FORGET_MERGED = (
    f"""
DELETE FROM {table} WHERE channel = ? AND number <= (
    SELECT number FROM {table} WHERE channel = ? ORDER BY number DESC LIMIT 1 OFFSET ?
)
"""  # noqa: S608  of constants
    for table in ("told", "merged")
)


class Row(NamedTuple):
    number: int
    channel: str
    alert: Alert
    due: float
    """When it is due; of one that is undelivered: when it was given up."""
    attempts: int
    reason: str


class Figures(msgspec.Struct, kw_only=True):
    """Of one channel. What waits and what is undelivered is there now; the others were counted since ever."""

    waiting: int = 0
    undelivered: int = 0
    delivered: int = 0
    merged: int = 0
    """Alerts that were told by their number alone."""
    given_up: int = 0
    forgotten: int = 0
    """Undelivered ones that had to make room for newer ones."""
    dropped: int = 0


def make_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


def put(connection: sqlite3.Connection, channel: str, alert: Alert, *, limit: int, now: datetime) -> None:
    if _is_known(connection, channel, alert):
        return
    due = _replaced(connection, channel, alert.dedup_key, now)
    if due is None and not _must_be_told(connection, channel, alert) and _is_full(connection, channel, limit):
        _merge(connection, channel, alert, now)
    else:
        _insert(connection, channel, alert, now.timestamp() if due is None else due)


def _is_known(connection: sqlite3.Connection, channel: str, alert: Alert) -> bool:
    about = {"channel": channel, "key": alert.dedup_key, "id": alert.id}
    return connection.execute(_KNOWN, about).fetchone() is not None


def _replaced(connection: sqlite3.Connection, channel: str, key: str, now: datetime) -> float | None:
    """When the one that waited was due, so that news do not shorten the wait for a channel that is down."""
    about = {"channel": channel, "key": key, "now": now.timestamp()}
    found = connection.execute(
        f"DELETE FROM alerts WHERE channel = :channel AND dedup_key = :key AND {_IDLE} RETURNING due",  # noqa: S608  a constant
        about,
    ).fetchall()
    return max((due for (due,) in found), default=None)


def _must_be_told(connection: sqlite3.Connection, channel: str, alert: Alert) -> bool:
    about = (channel, alert.dedup_key)
    told = "SELECT 1 FROM told WHERE channel = ? AND dedup_key = ? AND is_open = 1"
    return not alert.is_raised and connection.execute(told, about).fetchone() is not None


def _is_full(connection: sqlite3.Connection, channel: str, limit: int) -> bool:
    waiting = "SELECT count(*) FROM alerts WHERE channel = ? AND undelivered = 0 AND merged = 0"
    ((number,),) = connection.execute(waiting, (channel,))
    return bool(number >= limit)


def _insert(
    connection: sqlite3.Connection, channel: str, alert: Alert, due: float, *, merged: bool = False
) -> None:
    connection.execute(
        "INSERT INTO alerts (channel, dedup_key, alert_id, alert, due, merged) VALUES (?, ?, ?, ?, ?, ?)",
        (channel, alert.dedup_key, alert.id, written(alert), due, merged),
    )


def _merge(connection: sqlite3.Connection, channel: str, alert: Alert, now: datetime) -> None:
    """Counted in the message about many, which is made if none waits."""
    found = connection.execute(
        f"SELECT {_ROW} FROM alerts WHERE channel = :channel AND merged = 1 AND {_IDLE} ORDER BY number DESC",  # noqa: S608  a constant
        {"channel": channel, "now": now.timestamp()},
    ).fetchone()
    if found is None:
        _insert(connection, channel, _about_many(channel, alert, None), now.timestamp(), merged=True)
    else:
        row = _row(found)
        # Somebody may have got what was tried before, and would take the same id for the same message.
        more = _about_many(channel, alert, row.alert, same=not row.attempts)
        grown = "UPDATE alerts SET alert = ?, alert_id = ?, held = 0 WHERE number = ?"
        connection.execute(grown, (written(more), more.id, row.number))
    connection.execute("INSERT INTO merged (channel, alert_id) VALUES (?, ?)", (channel, alert.id))
    connection.execute(_FORGET_MERGED, (channel, channel, KEPT_AS_TOLD))
    connection.execute(_COUNT, (channel, "merged", 1))


def _about_many(channel: str, alert: Alert, before: Alert | None, *, same: bool = False) -> Alert:
    counts = {State.RAISED: 0, State.RESOLVED: 0, **({} if before is None else before.counts)}
    counts[alert.state] += 1
    worst = max((alert, before or alert), key=lambda each: each.severity.rank)
    since = alert.at if before is None else before.since
    return Alert(
        id=before.id if same and before is not None else new_id(),
        dedup_key=f"{MERGED_RULE}/{channel}",
        rule=MERGED_RULE,
        severity=worst.severity,
        state=State.RAISED,
        title="More alerts than this channel could be told one by one",
        counts={each.value: counts[each] for each in State},
        since=since,
        at=alert.at,
    )


def claim(connection: sqlite3.Connection, channel: str, *, now: datetime, until: float) -> Row | None:
    found = connection.execute(_CLAIMABLE, {"channel": channel, "now": now.timestamp()}).fetchone()
    if found is None:
        return None
    row = _row(found)
    connection.execute(
        "UPDATE alerts SET held = 1, due = ?, attempts = attempts + 1 WHERE number = ?", (until, row.number)
    )
    return row._replace(attempts=row.attempts + 1)


def next_due(connection: sqlite3.Connection, channel: str) -> float | None:
    ((due,),) = connection.execute(_NEXT_DUE, {"channel": channel})
    return None if due is None else float(due)


def delivered(connection: sqlite3.Connection, channel: str, number: int, alert: Alert) -> None:
    connection.execute("DELETE FROM alerts WHERE number = ?", (number,))
    # What was given up before is out of date: sent by hand, it would open again what is over. Of messages about
    # many each has counted others, and is needed.
    stale = (
        "DELETE FROM alerts WHERE channel = ? AND dedup_key = ? AND undelivered = 1 AND merged = 0 AND number < ?"
    )
    connection.execute(stale, (channel, alert.dedup_key, number))
    told = (channel, alert.dedup_key, alert.id, alert.is_raised, number)
    connection.execute("INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?, ?)", told)
    connection.execute(_FORGET_TOLD, (channel, channel, KEPT_AS_TOLD))
    connection.execute(_COUNT, (channel, "delivered", 1))


def outdated(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM alerts WHERE number = ?", (number,))


def put_back(
    connection: sqlite3.Connection, channel: str, number: int, alert: Alert, *, reason: str, again_at: float
) -> None:
    """To be tried again; if something newer of its key waits by now, that one alone."""
    newer = "SELECT 1 FROM alerts WHERE channel = ? AND dedup_key = ? AND undelivered = 0 AND number > ?"
    if connection.execute(newer, (channel, alert.dedup_key, number)).fetchone() is not None and not _counts(alert):
        connection.execute("DELETE FROM alerts WHERE number = ?", (number,))
        return
    connection.execute(
        "UPDATE alerts SET held = 0, due = ?, reason = ? WHERE number = ?", (again_at, reason, number)
    )


def _counts(alert: Alert) -> bool:
    """Two messages about many are both needed: each has counted others."""
    return alert.rule == MERGED_RULE


def give_up(connection: sqlite3.Connection, channel: str, number: int, reason: str, now: datetime) -> None:
    gone = "UPDATE alerts SET undelivered = 1, held = 0, due = ?, reason = ? WHERE number = ? AND undelivered = 0"
    changed = connection.execute(gone, (now.timestamp(), reason, number)).rowcount
    connection.execute(_COUNT, (channel, "given_up", changed))


def forget_oldest(connection: sqlite3.Connection, channel: str, limit: int) -> None:
    forgotten = connection.execute(
        "DELETE FROM alerts WHERE channel = ? AND undelivered = 1 AND number <= (SELECT number FROM alerts "
        "WHERE channel = ? AND undelivered = 1 ORDER BY number DESC LIMIT 1 OFFSET ?)",
        (channel, channel, limit),
    ).rowcount
    if forgotten:
        connection.execute(_COUNT, (channel, "forgotten", forgotten))


def undelivered(connection: sqlite3.Connection, channel: str | None) -> list[Row]:
    found = connection.execute(
        f"SELECT {_ROW} FROM alerts WHERE undelivered = 1 AND (:channel IS NULL OR channel = :channel) "  # noqa: S608  a constant
        "ORDER BY number",
        {"channel": channel},
    )
    return [_row(each) for each in found]


def tried_again(connection: sqlite3.Connection, number: int, reason: str) -> None:
    again = "UPDATE alerts SET attempts = attempts + 1, reason = ? WHERE number = ? AND undelivered = 1"
    connection.execute(again, (reason, number))


def drop(connection: sqlite3.Connection, numbers: Iterable[int]) -> int:
    dropped = 0
    for number in numbers:
        gone = "DELETE FROM alerts WHERE number = ? AND undelivered = 1 RETURNING channel"
        for (channel,) in connection.execute(gone, (number,)).fetchall():
            connection.execute(_COUNT, (channel, "dropped", 1))
            dropped += 1
    return dropped


def figures(connection: sqlite3.Connection) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for channel, name, value in connection.execute("SELECT channel, name, value FROM counters"):
        setattr(found.setdefault(channel, Figures()), name, value)
    for channel, apart, number in connection.execute(
        "SELECT channel, undelivered, count(*) FROM alerts GROUP BY channel, undelivered"
    ):
        setattr(found.setdefault(channel, Figures()), "undelivered" if apart else "waiting", number)
    return found


def note(connection: sqlite3.Connection, name: str, text: bytes | None) -> None:
    if text is None:
        connection.execute("DELETE FROM notes WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, text))


def noted(connection: sqlite3.Connection, name: str) -> bytes | None:
    found = connection.execute("SELECT note FROM notes WHERE name = ?", (name,)).fetchone()
    return None if found is None else bytes(found[0])


def _row(found: tuple[int, str, bytes, float, int, str]) -> Row:
    number, channel, alert, due, attempts, reason = found
    return Row(number, channel, read(alert), due, attempts, reason)
