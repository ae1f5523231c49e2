"""An inbox makes a handler's effect happen once per message id, however often the message is delivered (G4).

It works because the mark "this message is handled" and the handler's own writes are one transaction in one
database: both are there or neither is. So it promises nothing about writes made elsewhere, and it needs a
producer that never uses one id for two messages.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from redrive import faults
from redrive.clock import Clock, SystemClock
from redrive.duration import Duration, seconds
from redrive.errors import ConfigurationError
from redrive.group_commit import explain_sqlite
from redrive.inbox_connection import InboxConnection, TransactionMisused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

__all__ = ["Inbox", "SqliteInbox", "TransactionMisused"]

T = TypeVar("T")

_OLD_MARKS_PER_USE = 100
_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS {table} (
        message_id NOT NULL, handler NOT NULL, at REAL NOT NULL, PRIMARY KEY (message_id, handler)
    )
    """,
    "CREATE INDEX IF NOT EXISTS {table}_at ON {table} (at)",
)
_MARK = "INSERT INTO {table} VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_FORGET = "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE at < ? LIMIT ?)"


class Inbox(Protocol):
    """For any database that has transactions."""

    @property
    def provides(self) -> type:
        """The type of the transaction: a handler's parameter of this type receives it."""
        ...

    def once(self, message_id: str, handler: str) -> AbstractAsyncContextManager[Any]:
        """A transaction in which the message is marked as handled by this handler; None if it was so before,
        and then the handler is not to run. Leaving it commits the handler's writes and the mark together; an
        exception takes both back. Raises Unreachable when the database is away.
        """
        ...

    async def close(self) -> None: ...


class SqliteInbox:
    """In the SQLite file the handlers write to. They get a `sqlite3.Connection` in an open transaction.

    One transaction at a time: inside the process by a lock, between processes by SQLite's own. `prepare` is
    called with every new connection, for PRAGMAs, row factories and functions. A mark is kept for `keep`, which
    must be longer than any message may come late.
    """

    provides = sqlite3.Connection

    def __init__(
        self,
        path: str | Path,
        table: str = "redrive_inbox",
        *,
        keep: Duration = "30d",
        prepare: Callable[[sqlite3.Connection], object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._marks = _Marks(str(path), table, seconds(keep), prepare, clock or SystemClock())
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="redrive-inbox")

    @asynccontextmanager
    async def once(self, message_id: str, handler: str) -> AsyncIterator[sqlite3.Connection | None]:
        async with self._turn:
            connection = await self._in_thread(partial(self._marks.begin, message_id, handler))
            if connection is None:
                yield None
                return
            try:
                yield connection
            except BaseException as error:
                await self._undo(error)
                raise
            await self._in_thread(self._marks.commit)

    async def close(self) -> None:
        """Safe to repeat."""
        await asyncio.to_thread(self._thread.shutdown)
        self._marks.close()

    async def _undo(self, error: BaseException) -> None:
        if isinstance(error, Exception) and not isinstance(error, TimeoutError):
            await self._in_thread(self._marks.roll_back)
        else:  # a plain handler that was given up on may still run in its thread, connection in hand
            self._thread.submit(self._marks.abandon)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except asyncio.CancelledError:
            self._thread.submit(self._marks.abandon)  # behind the work, which cannot be stopped
            raise


class _Marks:
    """The blocking part, for one thread: marks and transactions on one connection at a time."""

    def __init__(
        self,
        path: str,
        table: str,
        keep: float,
        prepare: Callable[[sqlite3.Connection], object] | None,
        clock: Clock,
    ) -> None:
        if not (table.isidentifier() and table.isascii()):
            raise ConfigurationError(f"{table!r} cannot be a table's name", remedy="use letters, digits and '_'")
        self._path = path
        self._table = table
        self._keep = keep
        self._prepare = prepare
        self._clock = clock
        self._connection: InboxConnection | None = None

    def begin(self, message_id: str, handler: str) -> InboxConnection | None:
        """The open transaction, or None if the mark was there."""
        with self._closing_on_error():
            self._connection = connection = self._connection or self._connect()
            connection.begin()
            if self._mark(connection, message_id, handler):
                connection.lend()
                return connection
            connection.take_back()
        return None

    def commit(self) -> None:
        with self._closing_on_error():
            faults.point("inbox.before_commit")
            if self._connection is None:
                raise sqlite3.DatabaseError("the transaction is gone: nothing is committed and nothing marked")
            self._connection.finish()
        faults.point("inbox.after_commit")

    def roll_back(self) -> None:
        try:
            if self._connection is not None:
                self._connection.take_back()
        except sqlite3.Error:  # closing it rolls back as well
            self.close()

    def abandon(self) -> None:
        """Rolls back and lets go of the connection: whoever still has it can do nothing more with it. It closes
        when the last of them is gone, for closing it under a running statement is not safe.
        """
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.fence()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.close()
            explained = explain_sqlite(error, self._path)
            if explained is error:
                raise
            raise explained from error

    def _connect(self) -> InboxConnection:
        connection = InboxConnection.open(self._path)
        try:
            if self._prepare is not None:
                self._prepare(connection)
            for statement in _SCHEMA:
                connection.ours(statement.format(table=self._table))
        except BaseException:
            connection.close()
            raise
        return connection

    def _mark(self, connection: InboxConnection, message_id: str, handler: str) -> bool:
        """Whether it is new. Some old marks go on the way, so that the table does not grow for ever."""
        now = self._clock.now().timestamp()
        connection.ours(_FORGET.format(table=self._table), (now - self._keep, _OLD_MARKS_PER_USE))
        mark = (_storable(message_id), _storable(handler), now)
        return connection.ours(_MARK.format(table=self._table), mark) == 1


def _storable(text: str) -> str | bytes:
    """Text, readable in the table; bytes for what is not valid Unicode."""
    raw = text.encode("utf-8", "surrogatepass")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
