"""The ledger's rows, each written in the transaction of what it tells about.

The head's row is locked until the transaction ends, so that numbers have no gaps and rows stand in the order of
their commits. It is the LAST lock of every transaction: who holds it waits for nobody, and nobody in a circle.

The head says where the chain ended when the last row was written. If it says something else than the rows do, or
its seal is broken, somebody has changed the database: work goes on, and the first row that is written then says so
for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, Boolean, Integer, Text, and_, column, select, table, true, type_coerce, update

from redrive.dead_letter import Actor
from redrive.ledger import (
    GENESIS,
    ITSELF,
    KEY_CHANGED,
    LEDGER,
    SEAL_BROKEN,
    Deed,
    Head,
    LedgerPage,
    StoredRow,
    Subject,
    entry_of,
    written,
)
from redrive.message import cut
from redrive.stores.columns import escape, microseconds, unescape
from redrive.stores.schema_ledger import ledger_head
from redrive.stores.sql_audit import NAME_BUDGET, REASON_BUDGET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Select

    from redrive.ledger import LedgerEntry, LedgerKey, LedgerQuery

TEXT_BUDGET = 4096
"""Characters of `before` and of `after`."""

_TYPES = {"seq": BigInteger, "at": BigInteger, "allowed": Boolean}
# Past our own column types: a mac is over what is stored, and somebody may have stored what they cannot read.
_rows = table("ledger", *(column(name, _TYPES.get(name, Text)) for name in StoredRow._fields))
_AS_STORED = tuple(type_coerce(each, Integer) if each.name == "allowed" else each for each in _rows.c)
_HEAD = select(ledger_head.c.seq, ledger_head.c.mac, ledger_head.c.key_id, ledger_head.c.seal)
_LOCKED_HEAD = _HEAD.with_for_update()
_LAST = select(*_AS_STORED).order_by(_rows.c.seq.desc()).limit(1)
_INSERT, _NEW_HEAD, _NEXT_HEAD = _rows.insert(), ledger_head.insert().values(id=1), update(ledger_head)
_BEFORE_ALL = StoredRow._make([0, *[""] * (len(StoredRow._fields) - 2), GENESIS])


class Ledger:
    """Without a key nothing is written."""

    def __init__(self, key: LedgerKey | None) -> None:
        self._key = key

    def write(self, connection: Connection, deed: Deed, *, by: Actor, now: datetime, once: bool = False) -> None:
        """The last thing that a transaction does. `once`: unless the same of the same moment is there, for then
        somebody asks again.
        """
        if self._key is None:
            return
        head = _locked(connection)
        row = _row(deed, by, now)
        if once and _is_there(connection, row):
            return
        last = _last(connection)
        _append(connection, self._key, head, last, [*_remarks(head, last, self._key, now), row])


NO_LEDGER = Ledger(None)


def _append(
    connection: Connection, key: LedgerKey, head: Head | None, last: StoredRow, new: list[StoredRow]
) -> None:
    for row in new:
        last = row._replace(seq=last.seq + 1, key_id=key.id, previous=last.mac).sealed(key)
        connection.execute(_INSERT, {**last._asdict(), "allowed": bool(last.allowed)})
    values = Head.of(last, key)._asdict()
    connection.execute(_NEW_HEAD if head is None else _NEXT_HEAD, values)


def _row(deed: Deed, by: Actor, now: datetime) -> StoredRow:
    """Without its place in the chain."""
    return StoredRow(
        seq=0,
        at=microseconds(now),
        who=escape(cut(by.name, NAME_BUDGET)),
        token=escape(cut(by.token, NAME_BUDGET)),
        what=escape(deed.what),
        kind=escape(deed.subject.kind),
        subject=written(deed.subject),
        before=escape(cut(deed.before, TEXT_BUDGET)),
        after=escape(cut(deed.after, TEXT_BUDGET)),
        reason=escape(cut(by.reason, REASON_BUDGET)),
        request_id=escape(cut(by.request_id, NAME_BUDGET)),
        allowed=int(deed.allowed),
        key_id="",
        previous="",
    )


def _locked(connection: Connection) -> Head | None:
    row = connection.execute(_LOCKED_HEAD).one_or_none()
    return None if row is None else Head(*row)


def _last(connection: Connection) -> StoredRow:
    """A statement of its own: it has to see what whoever held the lock before has committed."""
    row = connection.execute(_LAST).one_or_none()
    return _BEFORE_ALL if row is None else StoredRow(*row)


def _is_there(connection: Connection, row: StoredRow) -> bool:
    same = ("at", "who", "token", "what", "kind", "subject", "before", "after", "reason", "request_id")
    query = select(_rows.c.seq).where(*(_rows.c[name] == getattr(row, name) for name in same))
    return connection.scalar(query.where(_rows.c.allowed == bool(row.allowed)).limit(1)) is not None


def _remarks(head: Head | None, last: StoredRow, key: LedgerKey, now: datetime) -> Iterator[StoredRow]:
    """What has to be said before anything else is written."""
    if head is None or (head.seq, head.mac) != (last.seq, last.mac):
        place = "it had no end" if head is None else f"it ended at row {head.seq}"
        yield _remark(SEAL_BROKEN, now, before=f"{place}, the last row was {last.seq}")
    elif head.key_id == key.id and not head.is_sealed(key):
        yield _remark(SEAL_BROKEN, now, before=f"row {head.seq} was not sealed as the last one")
    elif head.key_id != key.id and head != Head():
        # Whether the other key has sealed it, who has that key can tell.
        yield _remark(KEY_CHANGED, now, head.seal, before=head.key_id, after=key.id)


def _remark(what: str, now: datetime, *ids: str, before: str, after: str = "") -> StoredRow:
    return _row(Deed(what=what, subject=Subject(LEDGER, ids), before=before, after=after), Actor(ITSELF), now)


def page(connection: Connection, after: int, limit: int) -> LedgerPage:
    query = select(*_AS_STORED).where(_rows.c.seq > after).order_by(_rows.c.seq).limit(limit)
    rows = [_stored(row) for row in connection.execute(query)]
    head = connection.execute(_HEAD).one_or_none()
    return LedgerPage(rows, None if head is None else Head(*head))


def find(connection: Connection, query: LedgerQuery, limit: int) -> list[LedgerEntry]:
    wanted: Select[tuple[object, ...]] = select(*_AS_STORED).where(_wanted(query)).limit(limit)
    ordered = wanted.order_by(_rows.c.seq.desc() if query.after is None else _rows.c.seq)
    return [entry_of(_readable(_stored(row))) for row in connection.execute(ordered)]


def _readable(row: StoredRow) -> StoredRow:
    values = row._asdict().items()
    return row._replace(**{name: unescape(value) for name, value in values if isinstance(value, str)})


def _stored(row: object) -> StoredRow:
    """One database has 1 and 0 for what the other calls true and false."""
    stored = StoredRow(*row)  # type: ignore[misc]  # a row of SQLAlchemy is a tuple
    return stored._replace(allowed=int(stored.allowed)) if isinstance(stored.allowed, bool) else stored


def _wanted(query: LedgerQuery) -> ColumnElement[bool]:
    columns = _rows.c
    conditions = {name: getattr(query, name) for name in ("who", "what", "kind")}
    wanted = [columns[name] == escape(text) for name, text in conditions.items() if text is not None]
    if query.since is not None:
        wanted.append(columns.at >= microseconds(query.since))
    if query.until is not None:
        wanted.append(columns.at < microseconds(query.until))
    if query.allowed is not None:
        wanted.append(columns.allowed == query.allowed)
    if query.before is not None:
        wanted.append(columns.seq < query.before)
    if query.after is not None:
        wanted.append(columns.seq > query.after)
    return and_(true(), *wanted)
