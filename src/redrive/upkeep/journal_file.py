"""The journal's SQLite file: opened, checked, and replaced when it is damaged.

Several processes share it, so opening, checking and moving aside happen under one lock, and a process that has
the moved file open notices and goes over to the new one. Closing a moved file is safe: SQLite then leaves the
write-ahead log alone, which is the new file's by name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from redrive.errors import CorruptFile
from redrive.group_commit import connect_sqlite, explain_sqlite, make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.clock import Clock

_MEMORY = ":memory:"
_TABLE = """
CREATE TABLE IF NOT EXISTS probable_deaths (
    identity BLOB PRIMARY KEY,
    deaths INTEGER NOT NULL,
    at REAL NOT NULL
)
"""


class JournalFile:
    """One connection to the file, and whether it is still the file everybody uses."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._number: int | None = None

    @property
    def moved(self) -> bool:
        """Somebody found it damaged, or deleted it, after it was opened here. Unreachable: nobody can tell."""
        try:
            return self._number is not None and self._number != _file_number(self._path)
        except OSError as error:
            raise self.explain(error) from error

    def connect(self) -> sqlite3.Connection:
        """A damaged file is moved aside, with a warning, and a new one begun."""
        if self._path == _MEMORY:
            return _open(self._path)
        folder = Path(self._path).parent
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder):
            connection = self._open_or_start_anew()
            self._number = _file_number(self._path)
        return connection

    def explain(self, error: BaseException) -> BaseException:
        return explain_sqlite(error, self._path)

    def _open_or_start_anew(self) -> sqlite3.Connection:
        try:
            return _open(self._path)
        except sqlite3.DatabaseError as error:
            if not isinstance(self.explain(error), CorruptFile):
                raise
            self._move_aside(str(error))
        return _open(self._path)

    def _move_aside(self, why: str) -> None:
        aside = f"{self._path}.corrupt-{self._clock.now():%Y%m%dT%H%M%S.%fZ}"
        for suffix in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                Path(self._path + suffix).rename(aside + suffix)
        _warn("the journal is damaged: moved aside, counting starts anew", kept=aside, error=why)


def _open(path: str) -> sqlite3.Connection:
    if path != _MEMORY:
        make_private(path)
    connection = connect_sqlite(path)
    try:
        _check(connection)
        connection.execute(_TABLE)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    verdict = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != [("ok",)]:
        raise sqlite3.DatabaseError(f"database disk image is malformed: {verdict[0][0]}")


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """No other process opens or moves a journal in this folder meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _file_number(path: str) -> int:
    try:
        return Path(path).stat().st_ino
    except FileNotFoundError:
        return -1


def _warn(event: str, **facts: object) -> None:
    import structlog  # noqa: PLC0415  slow to import, and needed only when something is wrong

    structlog.get_logger("redrive.journal").warning(event, **facts)
