"""The connection an inbox lends to a handler, and takes back.

A handler may read, write and use savepoints. It may not end the transaction, for then its writes or the mark
would stand alone; and it may not write when its time is over. A plain handler that ran into its timeout cannot
be stopped: its thread runs on, connection in hand. So every statement asks, under a lock, whether the connection
is still lent.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NoReturn, cast

from redrive.errors import Permanent

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUSY_SECONDS = 10.0


class TransactionMisused(Permanent):
    """The handler tried to end the transaction that its inbox ends."""

    def __init__(self) -> None:
        super().__init__(
            "a handler may not end its inbox's transaction (commit, rollback, `with connection`, executescript): "
            "the inbox commits when it returns and rolls back when it raises; savepoints are allowed"
        )


class _Stage(Enum):
    MADE = auto()
    LENT = auto()
    ENDED = auto()


class InboxConnection(sqlite3.Connection):
    """What a `sqlite3.Connection` offers, within the limits above. The inbox itself uses the second half."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_use = threading.RLock()
        self._stage = _Stage.MADE

    @classmethod
    def open(cls, path: str) -> InboxConnection:
        """Every commit reaches the disk whatever the file's journal mode, which is the team's own choice."""
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS, factory=cls
        )
        connection.execute("PRAGMA synchronous=EXTRA")
        return connection

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _Cursor)

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        return self.cursor().executemany(sql, parameters)

    def executescript(self, _script: str, /) -> NoReturn:
        raise TransactionMisused  # it commits before it begins

    def commit(self) -> NoReturn:
        raise TransactionMisused

    def rollback(self) -> NoReturn:
        raise TransactionMisused

    def __enter__(self) -> NoReturn:
        raise TransactionMisused

    @contextmanager
    def statement(self, sql: str) -> Iterator[None]:
        """Around one statement of a handler."""
        with self._in_use:
            if self._stage is _Stage.ENDED:
                raise sqlite3.ProgrammingError("the transaction of this message has ended")
            if self._stage is _Stage.LENT and _ends_transaction(sql):
                raise TransactionMisused
            try:
                yield
            finally:
                self._notice_end()

    def _notice_end(self) -> None:
        # SQLite itself ends a transaction on a full disk or by ON CONFLICT ROLLBACK: what came after would
        # be committed statement by statement, without the mark.
        if self._stage is _Stage.LENT and not self.in_transaction:
            self._stage = _Stage.ENDED

    def begin(self) -> None:
        self.ours("BEGIN IMMEDIATE")

    def ours(self, sql: str, parameters: tuple[Any, ...] = ()) -> int:
        """A statement of the inbox, and the number of rows it changed."""
        return super().cursor(sqlite3.Cursor).execute(sql, parameters).rowcount

    def lend(self) -> None:
        self._stage = _Stage.LENT

    def finish(self) -> None:
        """Commits. Raises if there is nothing to commit any more."""
        with self._in_use:
            self._stage = _Stage.ENDED
            if not self.in_transaction:
                raise sqlite3.DatabaseError("the transaction ended before the handler did: nothing is marked")
            super().commit()

    def take_back(self) -> None:
        """Rolls back."""
        with self._in_use:
            self._stage = _Stage.ENDED
            super().rollback()

    def fence(self) -> None:
        """Rolls back, cutting short a statement that runs in another thread. Raises nothing."""
        with suppress(sqlite3.Error):
            self.interrupt()
            self.take_back()


class _Cursor(sqlite3.Cursor):
    def execute(self, sql: str, parameters: Any = (), /) -> _Cursor:
        with self._connection.statement(sql):
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> _Cursor:
        with self._connection.statement(sql):
            return super().executemany(sql, parameters)

    def executescript(self, _script: str, /) -> NoReturn:
        raise TransactionMisused

    @property
    def _connection(self) -> InboxConnection:
        return cast("InboxConnection", self.connection)


def _ends_transaction(sql: str) -> bool:
    words = sql.replace(";", " ").upper().split()
    return words[:1] in (["COMMIT"], ["END"]) or (words[:1] == ["ROLLBACK"] and "TO" not in words)
