"""One database file of ours: found by its URL, made, brought up to date, opened.

1. A missing file is made, readable by its owner only.
2. A file with somebody else's tables is refused before anything in it is touched.
3. A schema that is missing or old is made new in one transaction that waits for other processes doing the same;
   whoever comes second finds nothing left to do, and a process killed in between has done nothing.
4. A schema from a newer Redrive is refused, unless it says that ours may work on it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import NullPool, QueuePool, StaticPool, create_engine, make_url
from sqlalchemy.exc import ArgumentError

from redrive import faults
from redrive.errors import ConfigurationError, NoStoreYet, Unreachable
from redrive.group_commit import connect_sqlite, explain_sqlite, make_private, open_sqlite
from redrive.stores.schema import VERSION_TABLE
from redrive.stores.schema_version import migrating, schema_version
from redrive.stores.sql_search_sqlite import make_searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from redrive.finding import Finding

T = TypeVar("T")

MEMORY = ":memory:"
_KEPT_OPEN = 4


class SqliteFile:
    """`:memory:` is one database per instance, gone when it is closed. `wipes`: what is deleted or replaced is
    overwritten in the file too.
    """

    def __init__(self, url: str, *, wipes: bool = False) -> None:
        self.path = path_of(url)
        self._wipes = wipes
        self.in_memory = self.path == MEMORY
        self._engine = self._make_engine()
        self._ready = False

    def connect(self) -> Connection:
        """A connection without transactions of its own: BEGIN and COMMIT are the caller's to say."""
        self.prepare()
        return self._engine.connect()

    def prepare(self) -> None:
        """Safe to repeat. Raises Unreachable with the remedy if the file cannot be used."""
        if self._ready:
            return
        with migrating:
            if not self.in_memory:
                make_private(self.path)
                self._refuse_foreign()
            with self._engine.connect() as connection:
                if self.in_memory:
                    _fill(connection)
                else:
                    _bring_up_to_date(connection, self.path)
            self._ready = True

    def upgrade(self) -> str:
        """Makes the file or brings it up to date; its version."""
        self.prepare()
        return self.look(lambda connection: schema_version(connection).current or "")

    def look(self, unit: Callable[[Connection], T]) -> T:
        """At one moment of the file as it is, whatever its version. Changes nothing, and makes no file."""
        with self._connect_as_it_is() as connection, one_moment(connection):
            return unit(connection)

    def _connect_as_it_is(self) -> Connection:
        if not self.in_memory:
            if not Path(self.path).exists():
                raise NoStoreYet(f"there is no {self.path}", remedy="`redrive db upgrade` makes it")
            self._refuse_foreign()
        plain = create_engine("sqlite://", creator=lambda: open_sqlite(self.path), poolclass=NullPool, **_OPTIONS)
        return plain.connect()

    def problems(self, _connection: Connection) -> Iterator[str]:
        """Nothing: all that is ours is in the tables."""
        yield from ()

    def examine(self, within: float) -> list[Finding]:  # noqa: ARG002  a server needs time
        """Nothing: it is a file, and looked at with the other files of ours."""
        return []

    def explain(self, error: BaseException) -> BaseException:
        """Our error for whatever SQLite or the system says about the file; anything else as it is."""
        return explain_sqlite(error, self.path)

    def dispose(self) -> None:
        self._engine.dispose()

    def _make_engine(self) -> Engine:
        pool = {"poolclass": StaticPool} if self.in_memory else _POOL
        return create_engine("sqlite://", creator=self._open, **pool, **_OPTIONS)

    def _open(self) -> sqlite3.Connection:
        opened = make_searchable(connect_sqlite(self.path))
        if self._wipes:
            opened.execute("PRAGMA secure_delete=ON").fetchall()
        return opened

    def _refuse_foreign(self) -> None:
        with contextlib.closing(open_sqlite(self.path)) as connection:
            query = (
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            )
            names = {name for (name,) in connection.execute(query)}
        if names and VERSION_TABLE not in names:
            raise Unreachable(
                f"{self.path} is another application's database: it has tables, and none of them is ours",
                remedy="give store.url a file of its own; a missing one is made",
            )


_POOL: dict[str, Any] = {"poolclass": QueuePool, "pool_size": _KEPT_OPEN, "max_overflow": -1}
_OPTIONS: dict[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "hide_parameters": True,  # they hold payloads, so that errors must not quote them
}


@contextlib.contextmanager
def one_moment(connection: Connection) -> Iterator[None]:
    """Whatever is read inside is of one moment, whoever writes meanwhile."""
    connection.exec_driver_sql("BEGIN")
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # SQLite may have ended it by itself
            connection.exec_driver_sql("ROLLBACK")


def _bring_up_to_date(connection: Connection, path: str) -> None:
    if schema_version(connection).is_usable:
        return
    from redrive.stores.upgrade import migrate  # noqa: PLC0415  Alembic is slow to import, rarely needed

    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        migrate(connection, path)
        faults.point("migrate.before_commit")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with contextlib.suppress(Exception):
            connection.exec_driver_sql("ROLLBACK")
        raise
    faults.point("migrate.after_commit")


def _fill(connection: Connection) -> None:
    """The tables of a database in memory: made once in a process, then copied. Whoever tests an application makes
    hundreds of them, and Alembic takes longer than most of such tests.
    """
    raw: Any = connection.connection.driver_connection
    if not _empty:
        _bring_up_to_date(connection, MEMORY)
        made = sqlite3.connect(MEMORY, check_same_thread=False)
        raw.backup(made)
        _empty.append(made)
    elif not schema_version(connection).is_usable:
        _empty[0].backup(raw)


_empty: list[sqlite3.Connection] = []
"""The one that is copied. Used by one thread at a time: `migrating` is locked."""


def path_of(url: str) -> str:
    """The file's absolute path, or `:memory:`."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or not parsed.database or parsed.host or parsed.query:
        raise ConfigurationError(
            f"{url!r} is no URL of a SQLite file",
            remedy="write sqlite:///redrive.db, sqlite:////var/lib/redrive.db or sqlite:///:memory:",
        )
    return MEMORY if parsed.database == MEMORY else str(Path(parsed.database).absolute())
